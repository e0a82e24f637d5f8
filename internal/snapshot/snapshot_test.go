package snapshot_test

import (
	"bytes"
	"compress/gzip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/internal/snapshot"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

func written(t *testing.T, header *snapshot.Header, objects ...runtime.Object) string {
	t.Helper()
	var b bytes.Buffer
	if err := snapshot.Write(&b, header, slices.Values(objects)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func header() *snapshot.Header {
	return &snapshot.Header{Taken: fixture.Birth, Cycle: 7, SchedulerNames: []string{"volcano"}, Configuration: "actions: allocate\ntiers: [{plugins: [{name: secret-job, arguments: {of: secret-queue}}]}]", DefaultQueue: "secret-queue",
		Journal: []journal.Entry{{Cycle: 7, Kind: journal.Bound, Job: "work/secret-job", Queue: "secret-queue", Pod: "work/secret-job-0", Node: "secret-node",
			Message: "job work/secret-job came first"}}}
}

func secretive() *corev1.Pod {
	pod := fixture.Pod("secret-job-0", fixture.In("secret-job"), fixture.On("secret-node"), fixture.Asks("cpu=1"))
	pod.Annotations[corev1.LastAppliedConfigAnnotation] = "PASSWORD"
	pod.Annotations["volcano.sh/template-uid"] = "secret-job-worker"
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "PASSWORD"}}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", Value: "PASSWORD"}}
	pod.Spec.Containers[0].Args, pod.Spec.Containers[0].Command = []string{"PASSWORD"}, []string{"PASSWORD"}
	pod.Spec.InitContainers = []corev1.Container{{Name: "init", Args: []string{"PASSWORD"}}}
	return pod
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	pod := secretive()
	text := written(t, header(), fixture.Node("secret-node", "cpu=2"), fixture.Queue("secret-queue"), fixture.Group("secret-job", "secret-queue", 1), pod)
	if strings.Contains(text, "PASSWORD") {
		t.Errorf("what containers run is in the file:\n%s", text)
	}
	if pod.Spec.Containers[0].Args == nil {
		t.Error("the pod itself was changed")
	}
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	for name, file := range map[string]string{"plain": text, "compressed": compressed.String()} {
		s, leftOut, err := snapshot.Read(strings.NewReader(file))
		if err != nil || len(leftOut) > 0 || len(s.Objects) != 4 || s.Cycle != 7 || !s.Taken.Equal(fixture.Birth) || len(s.Journal) != 1 {
			t.Fatalf("%s: %+v, %v, %v", name, s, leftOut, err)
		}
		read, ok := s.Objects[3].(*corev1.Pod)
		if !ok || read.Spec.NodeName != "secret-node" || read.Spec.Containers[0].Resources.Requests.Cpu().String() != "1" || read.UID != pod.UID {
			t.Errorf("%s: the pod is %+v", name, s.Objects[3])
		}
	}
}

func TestWhatIsNoSnapshotIsAnError(t *testing.T) {
	whole := written(t, header(), fixture.Node("n", "cpu=1"))
	for name, test := range map[string]struct{ text, want string }{
		"nothing":         {"", "no snapshot"},
		"half a file":     {whole[:len(whole)-20], "no snapshot, or a part of one"},
		"a pod":           {`{"apiVersion":"v1","kind":"Pod"}`, "this is Pod of v1"},
		"another version": {strings.Replace(whole, "v1alpha1", "v9", 1), "answers.hekla.sh/v9"},
		"no names":        {strings.Replace(whole, `"schedulerNames":["volcano"]`, `"schedulerNames":[]`, 1), "lacks schedulerNames"},
		"a broken object": {strings.Replace(whole, `"cpu":"1"`, `"cpu":"one"`, 1), "objects[0]"},
		"broken gzip":     {"\x1f\x8bxxxxxxxxxxxxxxx", "compressed and broken"},
	} {
		if _, _, err := snapshot.Read(strings.NewReader(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	unknown := strings.Replace(whole, `"kind":"Node","apiVersion":"v1"`, `"kind":"Toad","apiVersion":"v1"`, 1)
	if s, leftOut, err := snapshot.Read(strings.NewReader(unknown)); err != nil || len(leftOut) != 1 || leftOut[0] != "Toad of v1" || len(s.Objects) != 0 {
		t.Errorf("an unknown kind: %v, %v, %v", s, leftOut, err)
	}
}

func TestNamesAreHiddenInTheSameOrder(t *testing.T) {
	names := []string{"secret-a", "secret-b", "secret-job", "secret-node", "secret-queue"}
	objects := []runtime.Object{fixture.Node("secret-node", "cpu=2"), fixture.Queue("secret-queue", func(q *schedulingv1beta1.Queue) { q.Spec.Parent = "root" }),
		fixture.Group("secret-job", "secret-queue", 1), secretive(), fixture.Node("secret-a", "cpu=2"), fixture.Node("secret-b", "cpu=2")}
	for _, o := range objects {
		o.(metav1.Object).SetUID("2b5f") // that of a real object says nothing
	}
	var hidden bytes.Buffer
	if err := snapshot.Rename(strings.NewReader(written(t, header(), objects...)), &hidden); err != nil {
		t.Fatal(err)
	}
	// A plugin that has the name of a job is no job.
	if text := strings.Replace(hidden.String(), `name: secret-job\n`, "", 1); strings.Contains(text, "secret") {
		at := strings.Index(text, "secret")
		t.Errorf("a name is in the file: …%s…", text[max(at-80, 0):at+40])
	}
	s, _, err := snapshot.Read(&hidden)
	if err != nil || !s.NamesHidden {
		t.Fatal(err)
	}
	node, queue, group, pod := s.Objects[0].(*corev1.Node), s.Objects[1].(*schedulingv1beta1.Queue), s.Objects[2].(*schedulingv1beta1.PodGroup), s.Objects[3].(*corev1.Pod)
	if pod.Spec.NodeName != node.Name || group.Spec.Queue != queue.Name || pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] != group.Name || queue.Spec.Parent != "root" {
		t.Errorf("references are lost: %s on %s, %s in %s, %v", pod.Spec.NodeName, node.Name, group.Spec.Queue, queue.Name, pod.Annotations)
	}
	if e := s.Journal[0]; e.Job != group.Namespace+"/"+group.Name || e.Node != node.Name || e.Kind != journal.Bound || e.Message != "job "+e.Job+" came first" {
		t.Errorf("the journal is %+v", e)
	}
	if s.DefaultQueue != queue.Name || !strings.Contains(s.Configuration, "of: "+queue.Name) || !strings.Contains(s.Configuration, "name: secret-job") {
		t.Errorf("the default queue is %s, the configuration\n%s", s.DefaultQueue, s.Configuration)
	}
	if node.Status.Allocatable.Cpu().String() != "2" || pod.Spec.Containers[0].Resources.Requests.Cpu().String() != "1" {
		t.Error("amounts are lost")
	}
	order := []string{s.Objects[4].(*corev1.Node).Name, s.Objects[5].(*corev1.Node).Name, group.Name, node.Name, queue.Name}
	if !slices.IsSorted(order) {
		t.Errorf("%v were in order, and are %v", names, order)
	}
}
