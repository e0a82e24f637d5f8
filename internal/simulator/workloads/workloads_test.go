package workloads_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/internal/simulator/workloads"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/fixture"
)

// recorded is a cluster that keeps the pods, and notes what is done to it in that order.
type recorded struct {
	pods  map[types.NamespacedName]*corev1.Pod
	notes []string
}

func (r *recorded) note(what string, o client.Object) {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", o), "*")
	r.notes = append(r.notes, fmt.Sprintf("%s %s %s", what, kind[strings.Index(kind, ".")+1:], o.GetName()))
}

// take returns what was done since the last call.
func (r *recorded) take() []string {
	notes := r.notes
	r.notes = nil
	return notes
}

func (r *recorded) Now() time.Time { return fixture.Birth }

func (r *recorded) Write(o client.Object) {
	r.note("write", o)
	o.SetResourceVersion(fmt.Sprint(len(r.notes)))
	if pod, is := o.(*corev1.Pod); is {
		r.pods[client.ObjectKeyFromObject(pod)] = pod
	}
}

func (r *recorded) Drop(o client.Object) { r.note("drop", o) }

func (r *recorded) Pods() map[types.NamespacedName]*corev1.Pod { return r.pods }

func (r *recorded) MakePod(pod *corev1.Pod) bool {
	key := client.ObjectKeyFromObject(pod)
	if r.pods[key] != nil {
		return false
	}
	r.note("make", pod)
	r.pods[key] = pod
	return true
}

// EndPod ends a pod at once.
func (r *recorded) EndPod(pod *corev1.Pod) {
	r.note("end", pod)
	delete(r.pods, client.ObjectKeyFromObject(pod))
}

func (r *recorded) PriorityClass(string) *schedulingv1.PriorityClass { return nil }

// start returns controllers of Workloads, and the cluster that they act on. It has a LocalQueue "lq" and a flavor
// "fast" of nodes with a label.
func start() (*workloads.Controllers, *recorded) {
	r := &recorded{pods: map[types.NamespacedName]*corev1.Pod{}}
	c := &workloads.Controllers{Cluster: r, Policy: queueing.Policy{IsOn: true}, Schedulers: []string{"volcano"},
		NamespaceLabels: func(string) map[string]string { return nil }}
	queue := &v1beta2.LocalQueue{Spec: v1beta2.LocalQueueSpec{ClusterQueue: "all"}}
	queue.Namespace, queue.Name = fixture.Namespace, "lq"
	flavor := &v1beta2.ResourceFlavor{Spec: v1beta2.ResourceFlavorSpec{NodeLabels: map[string]string{"kind": "fast"}}}
	flavor.Name = "fast"
	all := &v1beta2.ClusterQueue{}
	all.Name = "all"
	for _, o := range []client.Object{queue, flavor, all} {
		c.Set(o)
	}
	return c, r
}

// job is a Job of Kubernetes in the LocalQueue, with two pods.
func job(name string) *batchv1.Job {
	j := &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: new(int32(2)), Completions: new(int32(2))}}
	j.ObjectMeta = fixture.Pod(name, fixture.Labelled(v1beta2.QueueNameLabel, "lq")).ObjectMeta
	j.Spec.Template.Spec = fixture.Pod("form").Spec
	return j
}

// grouped is a pod of a group of so many pods in the LocalQueue.
func grouped(name, group, total string) *corev1.Pod {
	return fixture.Pod(name, fixture.Labelled(v1beta2.QueueNameLabel, "lq"), fixture.Labelled(v1beta2.PodGroupNameLabel, group),
		fixture.Annotated(v1beta2.PodGroupTotalCountAnnotation, total))
}

// hold holds a pod back, and adds it to the cluster.
func hold(c *workloads.Controllers, r *recorded, pods ...*corev1.Pod) {
	for _, pod := range pods {
		c.HoldPod(pod)
		r.pods[client.ObjectKeyFromObject(pod)] = pod
	}
}

// noClasses finds no PriorityClass.
type noClasses struct{ queueing.Lookup }

func (noClasses) PriorityClass(string) (*schedulingv1.PriorityClass, error) { return nil, nil }

func always(bool) bool { return true }

// admit admits a Workload, on the flavor "fast".
func admit(w *v1beta2.Workload) decision.WorkloadStatus {
	a := &v1beta2.Admission{ClusterQueue: "all"}
	for _, set := range w.Spec.PodSets {
		a.PodSetAssignments = append(a.PodSetAssignments, v1beta2.PodSetAssignment{Name: set.Name, Count: new(set.Count),
			Flavors: map[corev1.ResourceName]string{corev1.ResourceCPU: "fast"}})
	}
	return decision.WorkloadStatus{Workload: client.ObjectKeyFromObject(w), UID: w.UID, Reserve: a, Admit: true, At: fixture.Birth}
}

func evict(w *v1beta2.Workload) decision.WorkloadStatus {
	return decision.WorkloadStatus{Workload: client.ObjectKeyFromObject(w), UID: w.UID, At: fixture.Birth,
		Evict: &decision.WorkloadEviction{Reason: v1beta2.ReasonPreempted, By: fixture.Key("winner")}}
}

func carry(c *workloads.Controllers, all ...decision.WorkloadStatus) []cache.Event {
	return c.Carry(&decision.Decisions{Workloads: all}, always)
}

// step lets the controllers act until nothing changes. It fails if they act on what has not changed, or do not rest.
func step(t *testing.T, c *workloads.Controllers, r *recorded) []string {
	t.Helper()
	for range 10 {
		before := len(r.notes)
		starts, changed, err := c.Step()
		if err != nil {
			t.Fatal(err)
		}
		if acts := len(r.notes) > before; acts != (starts || changed) {
			t.Fatalf("it says that pods start: %t, and that something changes: %t, and has done %v", starts, changed, r.notes[before:])
		}
		if !starts && !changed {
			return r.take()
		}
	}
	t.Fatalf("it does not come to rest: %v", r.notes)
	return nil
}

func expect(t *testing.T, what string, have []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("%s (-want +done):\n%s", what, diff)
	}
}

func Example() {
	c, r := start()
	step := func() {
		if _, _, err := c.Step(); err != nil {
			panic(err)
		}
	}
	j := job("train")
	fmt.Println("held back:", c.HoldJob(j), *j.Spec.Suspend)
	step()
	w := c.Workloads()[0]
	fmt.Println(r.take())
	carry(c, admit(w)) // the scheduler has decided so
	step()
	fmt.Println(r.take(), "suspended:", *j.Spec.Suspend)
	// Output:
	// held back: true true
	// [write Workload job-train-47c56]
	// [write Workload job-train-47c56 make Pod train-0 make Pod train-1] suspended: false
}

func TestAJobRunsWhileItsWorkloadIsAdmitted(t *testing.T) {
	c, r := start()
	j := job("train")
	before := j.Spec.Template.Spec.DeepCopy()
	c.HoldJob(j)
	step(t, c, r)
	w := c.Workloads()[0]
	name := "write Workload " + w.Name
	made, err := queueing.NewWorkload(queueing.BatchJob{Job: j}, noClasses{})
	if diff := cmp.Diff(made.Spec, w.Spec); err != nil || diff != "" {
		t.Errorf("the Workload (-by the controllers +here): %v\n%s", err, diff)
	}
	var evicted []string
	c.Evicted = func(w *v1beta2.Workload, by types.NamespacedName) { evicted = append(evicted, w.Name+" for "+by.Name) }

	carry(c, admit(w))
	expect(t, "admitted", step(t, c, r), name, "make Pod train-0", "make Pod train-1")
	pod := r.pods[fixture.Key("train-0")]
	if pod.Annotations[v1beta2.WorkloadAnnotation] != w.Name || pod.Spec.NodeSelector["kind"] != "fast" || pod.Spec.SchedulerName != "volcano" || queueing.IsGated(pod) {
		t.Errorf("the pod of a Workload is %+v %+v", pod.ObjectMeta, pod.Spec)
	}

	carry(c, evict(c.Workload(client.ObjectKeyFromObject(w))))
	expect(t, "told as evicted", evicted, w.Name+" for winner")
	expect(t, "evicted", step(t, c, r), name, "end Pod train-0", "end Pod train-1", name)
	if after := c.Workload(client.ObjectKeyFromObject(w)); conditions.Is(after, v1beta2.QuotaReserved) || after.Status.Admission != nil {
		t.Errorf("it holds quota without a pod: %+v", after.Status)
	}
	before.SchedulerName = "volcano"
	if diff := cmp.Diff(*before, j.Spec.Template.Spec); diff != "" || !*j.Spec.Suspend {
		t.Errorf("the job is suspended: %t, and its template (-before +after):\n%s", *j.Spec.Suspend, diff)
	}
}

func TestAGroupOfPodsWaitsUntilItIsAdmitted(t *testing.T) {
	c, r := start()
	hold(c, r, grouped("b", "g", "2"))
	expect(t, "one of two", step(t, c, r))
	hold(c, r, grouped("a", "g", "2"))
	expect(t, "both", step(t, c, r), "write Workload g")
	for _, pod := range r.pods {
		if !queueing.IsGated(pod) || !c.IsOfWorkload(pod) {
			t.Errorf("pod %s is not held back", pod.Name)
		}
	}
	carry(c, admit(c.Workloads()[0]))
	expect(t, "admitted", step(t, c, r), "write Workload g", "write Pod a", "write Pod b")
	for _, pod := range r.pods {
		if queueing.IsGated(pod) || pod.Spec.NodeSelector["kind"] != "fast" {
			t.Errorf("pod %s does not start: %+v", pod.Name, pod.Spec)
		}
	}
}

func TestAWorkloadWithoutItsJobGetsPodsByItsTemplates(t *testing.T) {
	c, r := start()
	w := &v1beta2.Workload{Spec: v1beta2.WorkloadSpec{QueueName: "lq", PodSets: []v1beta2.PodSet{{Name: "main", Count: 2}}}}
	w.Namespace, w.Name, w.UID = fixture.Namespace, "alone", "alone"
	w.Spec.PodSets[0].Template.Spec = fixture.Pod("form").Spec
	w.CreationTimestamp.Time = fixture.Birth
	c.Set(w)
	step(t, c, r)
	carry(c, admit(c.Workload(client.ObjectKeyFromObject(w))))
	expect(t, "admitted", step(t, c, r), "write Workload alone", "make Pod alone-main-0", "make Pod alone-main-1")
	delete(r.pods, fixture.Key("alone-main-0"))
	expect(t, "a pod is gone", step(t, c, r), "make Pod alone-main-0")
}

func TestWhatCannotBeQueuedIsAnErrorThatNamesIt(t *testing.T) {
	for _, total := range []string{"", "none", "0"} {
		c, r := start()
		hold(c, r, grouped("a", "g", total))
		_, _, err := c.Step()
		want := fmt.Sprintf(`pod work/a: annotation %s is %q`, v1beta2.PodGroupTotalCountAnnotation, total)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

func TestADecisionIsWrittenOnlyForWhatWasDecidedOn(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*decision.WorkloadStatus)
		mayWrite bool
		want     string // the type of the event, and the Workload is written
	}{
		"the same Workload":     {func(*decision.WorkloadStatus) {}, true, "cache.WorkloadWritten"},
		"another of its name":   {func(s *decision.WorkloadStatus) { s.UID = "another" }, true, "cache.WorkloadFailed"},
		"one that is gone":      {func(s *decision.WorkloadStatus) { s.Workload.Name = "gone" }, true, ""},
		"the scheduler crashes": {func(*decision.WorkloadStatus) {}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, r := start()
			c.HoldJob(job("train"))
			step(t, c, r)
			s := admit(c.Workloads()[0])
			test.change(&s)
			events, said := c.Carry(&decision.Decisions{Workloads: []decision.WorkloadStatus{s}}, func(bool) bool { return test.mayWrite }), ""
			for _, e := range events {
				said += fmt.Sprintf("%T", e)
			}
			if isWritten := len(r.take()) > 0; said != test.want || isWritten != (test.want == "cache.WorkloadWritten") {
				t.Errorf("the scheduler learns %q, and the Workload is written: %t", said, isWritten)
			}
		})
	}
}

func TestTheSameInputGivesTheSameObjectsInAnyOrder(t *testing.T) {
	done := func(reversed bool) (all []string) {
		c, r := start()
		names := []string{"c", "a", "b"}
		if reversed {
			slices.Reverse(names)
		}
		for _, name := range names {
			c.HoldJob(job(name))
			hold(c, r, grouped("p-"+name, "g", "3"), fixture.Pod("alone-"+name, fixture.Labelled(v1beta2.QueueNameLabel, "lq")))
		}
		all = step(t, c, r)
		var decided []decision.WorkloadStatus
		for _, w := range c.Workloads() {
			decided = append(decided, admit(w))
		}
		carry(c, decided...)
		all = append(all, step(t, c, r)...)
		for _, key := range slices.SortedFunc(maps.Keys(r.pods), cluster.CompareNames) {
			all = append(all, fmt.Sprintf("%s %s %v", key, r.pods[key].UID, r.pods[key].Annotations))
		}
		return all
	}
	first := done(false)
	if len(first) < 30 {
		t.Fatalf("only this is done: %v", first)
	}
	if ofJobs, ofPods := first[:3], first[3:7]; !slices.IsSorted(ofJobs) || !slices.IsSorted(ofPods) {
		t.Errorf("not in the order of names are made %v and then %v", ofJobs, ofPods)
	}
	for i := range 10 {
		if diff := cmp.Diff(first, done(i%2 == 0)); diff != "" {
			t.Fatalf("in another order (-first +then):\n%s", diff)
		}
	}
}

func TestNothingIsHeldBackIfWorkloadsAreNotAdmitted(t *testing.T) {
	c, r := start()
	c.Policy.IsOn = false
	j, pod := job("train"), grouped("a", "g", "1")
	hold(c, r, pod)
	if c.HoldJob(j) || j.Spec.Suspend != nil || queueing.IsGated(pod) || c.IsOfWorkload(pod) {
		t.Errorf("held back are job %+v or pod %+v", j.Spec, pod.Spec)
	}
	expect(t, "nothing is made", step(t, c, r))
}
