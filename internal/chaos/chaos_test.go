package chaos

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/internal/audit"
)

func planText(all []planned) (lines []string) {
	for _, p := range all {
		lines = append(lines, p.at.String()+" "+p.fault.Name)
	}
	return lines
}

func TestThePlanFollowsFromTheSeed(t *testing.T) {
	all, err := selectFaults(nil)
	if err != nil {
		t.Fatal(err)
	}
	first := planText(plan(all, 1, time.Hour))
	if difference := cmp.Diff(first, planText(plan(all, 1, time.Hour))); difference != "" {
		t.Errorf("the same seed gives another plan:\n%s", difference)
	}
	if cmp.Equal(first, planText(plan(all, 2, time.Hour))) {
		t.Error("another seed gives the same plan")
	}
	some, err := selectFaults([]string{"kill", "etcd"})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, line := range first {
		if strings.HasSuffix(line, " kill") || strings.HasSuffix(line, " etcd") {
			want = append(want, line)
		}
	}
	if difference := cmp.Diff(want, planText(plan(some, 1, time.Hour))); difference != "" {
		t.Errorf("without the others two faults happen at other times (-want +got):\n%s", difference)
	}
}

func TestEveryFaultIsUndoneBeforeItIsRepeated(t *testing.T) {
	all, err := selectFaults(nil)
	if err != nil {
		t.Fatal(err)
	}
	const total = 2 * time.Hour
	last, count := map[string]time.Duration{}, map[string]int{}
	for _, p := range plan(all, 3, total) {
		if before, was := last[p.fault.Name]; was && p.at <= before+p.fault.Lasts {
			t.Errorf("%s at %s is repeated at %s, and lasts %s", p.fault.Name, before, p.at, p.fault.Lasts)
		}
		if p.at+p.fault.Lasts >= total {
			t.Errorf("%s at %s lasts beyond the end", p.fault.Name, p.at)
		}
		last[p.fault.Name] = p.at
		count[p.fault.Name]++
	}
	for _, f := range all {
		if count[f.Name] == 0 {
			t.Errorf("%s does not happen in %s", f.Name, total)
		}
	}
}

func TestAShortRunHasEachFault(t *testing.T) {
	all, err := selectFaults(nil)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(100) {
		is := map[string]bool{}
		for _, p := range plan(all, seed, 2*time.Minute) {
			is[p.fault.Name] = true
		}
		if len(is) != len(all) {
			t.Fatalf("with seed %d there are only %v in two minutes", seed, is)
		}
	}
}

func TestAFaultThatDoesNotExistIsRefused(t *testing.T) {
	if _, err := selectFaults([]string{"kill", "kil"}); err == nil || !strings.Contains(err.Error(), `"kil"`) {
		t.Errorf("got %v", err)
	}
}

func thing(kind, name, version string, change func(*unstructured.Unstructured)) inventory {
	o := &unstructured.Unstructured{Object: map[string]any{"kind": kind}}
	o.SetName(name)
	o.SetResourceVersion(version)
	if change != nil {
		change(o)
	}
	return inventory{nameOf(o): o}
}

func messages(found []audit.Violation) (lines []string) {
	for _, v := range found {
		lines = append(lines, v.Rule+": "+strings.Join(v.Objects, ", ")+" "+v.Message)
	}
	return lines
}

func TestWhatIsLeftOverIsNamed(t *testing.T) {
	queue := func(pending int64) inventory {
		return thing("Queue", "a", "1", func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, pending, "status", "pending")
		})
	}
	deleted := thing("Workload", "w", "1", func(o *unstructured.Unstructured) {
		now := metav1.Now()
		o.SetDeletionTimestamp(&now)
		o.SetFinalizers([]string{"example.com/held"})
	})
	for name, c := range map[string]struct {
		before, now inventory
		want        string // part of the only violation, "" for none
	}{
		"nothing":               {queue(0), queue(0), ""},
		"what goes is no fault": {queue(0), inventory{}, ""},
		"a new object":          {inventory{}, thing("PodGroup", "g", "1", nil), "PodGroup g is left over"},
		"a finalizer":           {deleted, deleted, "example.com/held"},
		"a queue that counts":   {queue(0), queue(2), "Queue a says pending: 2"},
	} {
		t.Run(name, func(t *testing.T) {
			got := messages(left(c.before, c.now, time.Now()))
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatIsWrittenAtRestIsNamed(t *testing.T) {
	if got := written(thing("Job", "j", "1", nil), thing("Job", "j", "1", nil), time.Now()); len(got) > 0 {
		t.Errorf("the same is written: %q", messages(got))
	}
	if got := written(thing("Node", "n", "1", nil), thing("Node", "n", "2", nil), time.Now()); len(got) > 0 {
		t.Errorf("a node that says that it lives is a violation: %q", messages(got))
	}
	if got := messages(written(thing("Job", "j", "1", nil), thing("Job", "j", "2", nil), time.Now())); len(got) != 1 || !strings.HasPrefix(got[0], "rests: Job j") {
		t.Errorf("got %q", got)
	}
}

func TestPodsBeyondTheQuotaAreCounted(t *testing.T) {
	pod := func(node string, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}, Status: corev1.PodStatus{Phase: phase},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}}}}}
	}
	within := []corev1.Pod{pod("a", corev1.PodRunning), pod("", corev1.PodPending), pod("b", corev1.PodSucceeded), pod("b", corev1.PodFailed)}
	if v := beyondQuota(within, resource.MustParse("3"), time.Now()); v != nil {
		t.Errorf("got %s", v)
	}
	if v := beyondQuota(append(within, pod("c", corev1.PodPending)), resource.MustParse("5"), time.Now()); v == nil || v.Rule != RuleQuotaOfPods || len(v.Objects) != 2 {
		t.Errorf("got %v", v)
	}
}

// minutes is what a process held each minute for an hour; what it changes by the minute.
func minutes(from time.Time, change func(minute int, u *Usage)) []Usage {
	var all []Usage
	for minute := range 60 {
		u := Usage{Time: from.Add(time.Duration(minute) * time.Minute), HeapBytes: 40 << 20, Goroutines: 100, Descriptors: 20, Series: 500}
		change(minute, &u)
		all = append(all, u)
	}
	return all
}

func TestWhatAProcessHoldsMoreAndMoreOfIsNamed(t *testing.T) {
	from := time.Now()
	for name, test := range map[string]struct {
		change func(minute int, u *Usage)
		want   string // part of the only violation, "" for none
	}{
		"flat":                      {func(int, *Usage) {}, ""},
		"up and down":               {func(minute int, u *Usage) { u.Goroutines += float64(50 * (minute % 2)) }, ""},
		"only while it warms up":    {func(minute int, u *Usage) { u.Series -= 20 * max(0, 9-float64(minute)) }, ""},
		"a journal that fills":      {func(minute int, u *Usage) { u.HeapBytes += float64(minute) * (12 << 20) / 60 }, ""},
		"a heap that leaks":         {func(minute int, u *Usage) { u.HeapBytes += float64(minute) * (1 << 20) }, "bytes of the heap"},
		"a goroutine for each":      {func(minute int, u *Usage) { u.Goroutines += float64(minute) }, "goroutines"},
		"a connection for each":     {func(minute int, u *Usage) { u.Descriptors += float64(minute) / 4 }, "open descriptors"},
		"series for each other job": {func(minute int, u *Usage) { u.Series += float64(minute) }, "series of metrics"},
	} {
		t.Run(name, func(t *testing.T) {
			got := messages(rising("p", minutes(from, test.change), from))
			if test.want == "" && len(got) > 0 || test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	t.Run("only the last process counts", func(t *testing.T) {
		began := from.Add(20 * time.Minute)
		again := minutes(from, func(minute int, u *Usage) {
			if minute < 20 {
				u.Goroutines = 10 // an earlier one
			} else {
				u.Started = float64(began.Unix())
			}
			if minute >= 20 && minute < 30 {
				u.Series = 50 // it warms up
			}
		})
		if got := rising("p", again, from); len(got) > 0 || len(afterWarmUp(again, from)) != 30 {
			t.Errorf("of %d readings: %q", len(afterWarmUp(again, from)), messages(got))
		}
	})
	t.Run("too few answers", func(t *testing.T) {
		leaks := minutes(from, func(minute int, u *Usage) { u.HeapBytes *= float64(minute) })
		if got := rising("p", leaks[:15], from); len(got) > 0 {
			t.Errorf("got %q", messages(got))
		}
	})
}

func TestWhatAProcessHoldsIsReadFromItsMetrics(t *testing.T) {
	const metrics = `# HELP go_gc_heap_live_bytes About.
# TYPE go_gc_heap_live_bytes gauge
go_gc_heap_live_bytes 4.2e+07
# TYPE go_goroutines gauge
go_goroutines 123
# TYPE process_open_fds gauge
process_open_fds 17
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.7e+09
# TYPE hekla_jobs gauge
hekla_jobs{queue="a"} 1
hekla_jobs{queue="b"} 2
`
	now := time.Now()
	got, err := readUsage([]byte(metrics), now)
	if err != nil || got != (Usage{Time: now, Started: 1.7e9, HeapBytes: 42e6, Goroutines: 123, Descriptors: 17, Series: 6}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := readUsage([]byte(strings.ReplaceAll(metrics, "go_goroutines", "goroutines")), now); err == nil || !strings.Contains(err.Error(), "go_goroutines") {
		t.Errorf("without one of them: %v", err)
	}
}

func TestNoFaultsAreChosenByAName(t *testing.T) {
	if got, err := selectFaults([]string{NoFaults}); err != nil || len(got) > 0 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := selectFaults([]string{NoFaults, "kill"}); err == nil {
		t.Error("no faults and one of them are chosen together")
	}
}

func TestLateIsNotWrong(t *testing.T) {
	r := newReport(&Options{Seed: 4}, nil)
	r.take(&audit.Report{Lines: 7, Violations: []audit.Violation{{Rule: audit.RuleDoubleBind}, {Rule: audit.RuleOvertaken}}})
	if len(r.Violations) != 1 || r.Violations[0].Rule != audit.RuleDoubleBind || len(r.Late) != 1 {
		t.Errorf("violations %v, late %v", r.Violations, r.Late)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil || !strings.HasSuffix(text.String(), "\n1 violations\n") {
		t.Errorf("%v:\n%s", err, text.String())
	}
}
