package job

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

func TestManyPodsThatLeftForOneReasonAreCounted(t *testing.T) {
	var events []corev1.Event
	for i := range 23 {
		events = append(events, corev1.Event{InvolvedObject: corev1.ObjectReference{Namespace: "n", Name: fmt.Sprintf("p-%02d", i)}, Message: "by rule Q1"})
	}
	events = append(events, corev1.Event{InvolvedObject: corev1.ObjectReference{Namespace: "n", Name: "q"}, Message: "by rule J1"})
	var text strings.Builder
	(&lines{out: &text}).evictions("Evicted", events)
	got := text.String()
	if !strings.HasPrefix(got, "Evicted:\n  by rule Q1\n    n/p-00\t") || strings.Contains(got, "p-20") ||
		!strings.HasSuffix(got, "    and 3 more\n  by rule J1\n    n/q\t- ago\n") {
		t.Errorf("it says\n%s", got)
	}
}

func TestThePodsOfAJobAreKnownByTheirNames(t *testing.T) {
	made := metav1.NewTime(time.Now().Truncate(time.Second))
	v := &view{job: &batch.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", CreationTimestamp: made},
		Spec:       batch.JobSpec{Tasks: []batch.TaskSpec{{Name: "b"}, {}}},
	}}
	for name, want := range map[string]bool{
		"n/a-b-0": true, "n/a-b-12": true, "n/a-default1-3": true, "n/a-b-": false, "n/a-b-c-0": false, "n/a-c-0": false, "n/a-default0-3": false,
		"m/a-b-0": false,
	} {
		namespace, pod, _ := strings.Cut(name, "/")
		event := &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: pod}, LastTimestamp: made}
		if got := v.owns(event); got != want {
			t.Errorf("%s: %t", name, got)
		}
		event.LastTimestamp = metav1.NewTime(made.Add(-time.Minute))
		if v.owns(event) {
			t.Errorf("%s belongs to the job though it left before the job was there", name)
		}
	}
}

func TestControlCharactersAreNotWrittenToATerminal(t *testing.T) {
	var text strings.Builder
	(&lines{out: &text}).line("Message:\t%s", "\x1b[2Jnothing to see")
	if got := text.String(); strings.Contains(got, "\x1b") || !strings.HasSuffix(got, "nothing to see\n") {
		t.Errorf("it says %q", got)
	}
}
