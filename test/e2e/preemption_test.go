package e2e

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"
	"hekla.sh/hekla/test/installed"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// hold is a finalizer: a pod that has it takes its time to end.
const hold = "hekla.sh/hold"

// marked lets a Job's pods be evicted.
func marked(job *batchv1alpha1.Job) *batchv1alpha1.Job {
	job.Annotations = map[string]string{schedulingv1beta1.PreemptableKey: "true"}
	return job
}

// in puts a Job into a queue.
func in(queue string, job *batchv1alpha1.Job) *batchv1alpha1.Job {
	job.Spec.Queue = queue
	return job
}

// of gives a Job a PriorityClass.
func of(class string, job *batchv1alpha1.Job) *batchv1alpha1.Job {
	job.Spec.PriorityClassName = class
	return job
}

// on ties a Job to a node.
func on(node string, job *batchv1alpha1.Job) *batchv1alpha1.Job {
	job.Spec.Tasks[0].Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	return job
}

// elastic lets a Job do with one pod.
func elastic(job *batchv1alpha1.Job) *batchv1alpha1.Job {
	job.Spec.MinAvailable = 1
	return job
}

// create creates Jobs; tidyUp removes them.
func create(t *testing.T, jobs ...*batchv1alpha1.Job) {
	t.Helper()
	for _, job := range jobs {
		if _, err := batch.BatchV1alpha1().Jobs(job.Namespace).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func createQueue(t *testing.T, name string, priority int32) {
	t.Helper()
	queue := &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: schedulingv1beta1.QueueSpec{Priority: priority}}
	if _, err := batch.SchedulingV1beta1().Queues().Create(t.Context(), queue, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func createClass(t *testing.T, name string, value int32) {
	t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	if _, err := core.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// makeRoom begins a test of evictions: two nodes of eight CPUs, both actions in the configuration.
func makeRoom(t *testing.T) {
	t.Helper()
	haveNodes(t, 2)
	tidyUp(t)
	kubectl(t, "apply", "-f", filepath.Join(root, "example/preemption/configuration.yaml"))
}

// reconfigure replaces a part of the configuration.
func reconfigure(t *testing.T, from, to string) {
	t.Helper()
	maps := core.CoreV1().ConfigMaps(installed.Namespace)
	m, err := maps.Get(t.Context(), "volcano-scheduler-configmap", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text := m.Data["volcano-scheduler.conf"]
	if !strings.Contains(text, from) {
		t.Fatalf("the configuration has no %q:\n%s", from, text)
	}
	m.Data["volcano-scheduler.conf"] = strings.Replace(text, from, to, 1)
	if _, err := maps.Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// allPods returns the pods of all Jobs.
func allPods(ctx context.Context) ([]corev1.Pod, error) {
	pods, err := core.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return pods.Items, nil
}

// leaving returns the pods that are being deleted, by UID.
func leaving(pods []corev1.Pod) map[types.UID]*corev1.Pod {
	found := map[types.UID]*corev1.Pod{}
	for i := range pods {
		if pods[i].DeletionTimestamp != nil {
			found[pods[i].UID] = &pods[i]
		}
	}
	return found
}

// staying counts the pods of a Job that run and are not being deleted.
func staying(pods []corev1.Pod, job string) int {
	count := 0
	for i := range pods {
		p := &pods[i]
		if p.Labels[batchv1alpha1.JobNameKey] == job && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			count++
		}
	}
	return count
}

// awaitStaying waits until that many pods of a Job run and are not being deleted.
func awaitStaying(t *testing.T, job string, want int) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := allPods(ctx)
		if got := staying(pods, job); err == nil && got != want {
			err = fmt.Errorf("%d pods of %s run, want %d", got, job, want)
		}
		return err
	})
}

// holdAll lets the pods of a Job end only when release is called, and returns them.
func holdAll(t *testing.T, job string) []corev1.Pod {
	t.Helper()
	pods, err := podsOf(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"metadata":{"finalizers":["` + hold + `"]}}`)
	for i := range pods {
		_, err := core.CoreV1().Pods(pods[i].Namespace).Patch(t.Context(), pods[i].Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	return pods
}

// release lets pods end that are held.
func release(ctx context.Context, pods map[types.UID]*corev1.Pod) error {
	for _, p := range pods {
		patch := []byte(`{"metadata":{"finalizers":null,"uid":"` + string(p.UID) + `"}}`)
		_, err := core.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		// Another of the same name is invalid for this UID.
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsInvalid(err) {
			return err
		}
	}
	return nil
}

// releaseAtTheEnd removes all Jobs when the test ends, and lets all of their pods end.
func releaseAtTheEnd(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := system.Kubectl(ctx, "delete", "jobs.batch.volcano.sh", "--all"); err != nil {
			t.Error(err)
		}
		for {
			pods, err := allPods(ctx)
			if err == nil && len(pods) == 0 {
				return
			}
			if err == nil {
				err = core.CoreV1().Pods(metav1.NamespaceDefault).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
			}
			if err == nil {
				err = release(ctx, leaving(pods))
			}
			if err != nil {
				t.Errorf("%d pods stay: %v", len(pods), err)
				return
			}
			time.Sleep(poll)
		}
	})
}

// plan is what the API shows of a plan: its ID, which nodes are promised, and which pods were told to leave.
type plan struct {
	id       string
	promised map[string]string
	told     map[types.UID]string
}

// planOf reads the plan of a Job, as far as it is written down.
func planOf(ctx context.Context, job string) (plan, error) {
	p := plan{promised: map[string]string{}, told: map[types.UID]string{}}
	groups, err := batch.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return p, err
	}
	for i := range groups.Items {
		g := &groups.Items[i]
		if owner := metav1.GetControllerOf(g); owner == nil || owner.Name != job {
			continue
		}
		for _, c := range g.Status.Conditions {
			if c.Type == schedulingv1beta1.PodGroupNominatedType && c.Status == corev1.ConditionTrue {
				p.id = c.TransitionID
			}
		}
	}
	pods, err := allPods(ctx)
	for i := range pods {
		pod := &pods[i]
		if pod.Labels[batchv1alpha1.JobNameKey] == job && pod.Status.NominatedNodeName != "" {
			p.promised[pod.Name] = pod.Status.NominatedNodeName
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler &&
				strings.Contains(c.Message, job) {
				p.told[pod.UID] = c.Message
			}
		}
	}
	return p, err
}

// awaitPlan waits until a plan is under way as a whole: so many pods are promised nodes, and so many are being deleted.
// It returns those.
func awaitPlan(t *testing.T, job string, promised, victims int) (plan, map[types.UID]*corev1.Pod) {
	t.Helper()
	var found plan
	var gone map[types.UID]*corev1.Pod
	apitest.Eventually(t, func(ctx context.Context) error {
		p, err := planOf(ctx, job)
		if err != nil {
			return err
		}
		pods, err := allPods(ctx)
		if err != nil {
			return err
		}
		found, gone = p, leaving(pods)
		if p.id == "" || len(p.promised) != promised || len(gone) != victims {
			return fmt.Errorf("plan %q of %s promises %d nodes, and %d pods leave; want %d and %d", p.id, job, len(p.promised), len(gone),
				promised, victims)
		}
		return nil
	})
	return found, gone
}

func TestALonePodTakesFromALowerJobOfAnotherQueue(t *testing.T) {
	makeRoom(t)
	kubectl(t, "apply", "-f", filepath.Join(root, "example/preemption/before.yaml"))
	awaitStaying(t, "regression", 9)
	awaitStaying(t, "report", 4)
	kubectl(t, "apply", "-f", filepath.Join(root, "example/preemption/lone-pod.yaml"))
	kubectl(t, "wait", "pod/alone", "--for=jsonpath={.status.phase}=Running", "--timeout=60s")
	awaitStaying(t, "regression", 8)
	awaitStaying(t, "report", 4)
	nothingWasForbidden(t)
}

// budget allows no pod of a Job to be disrupted.
func budget(t *testing.T, job string, pods int) {
	t.Helper()
	all := intstr.FromInt(pods)
	budgets := core.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault)
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: job}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: &all, Selector: metav1.SetAsLabelSelector(map[string]string{batchv1alpha1.JobNameKey: job})}}
	if _, err := budgets.Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, func(ctx context.Context) error {
		b, err := budgets.Get(ctx, job, metav1.GetOptions{})
		if err == nil && (b.Status.ObservedGeneration == 0 || b.Status.CurrentHealthy != int32(pods)) {
			err = fmt.Errorf("the disruption controller says %+v", b.Status)
		}
		return err
	})
}

// The pods under a budget would be the cheaper ones but for it.
func TestADisruptionBudgetIsKeptWhereAnotherNodeHasVictims(t *testing.T) {
	for preset, want := range map[string]struct{ covered, open int }{"kube-1.36": {8, 6}, "kube-1.8": {6, 8}} {
		t.Run(preset, func(t *testing.T) {
			makeRoom(t)
			reconfigure(t, "preset: kube-1.36", "preset: "+preset)
			createClass(t, "urgent", 1000)
			createClass(t, "normal", 100)
			create(t, on("node-1", elastic(marked(batchJob("covered", 8, "1")))),
				of("normal", on("node-2", elastic(marked(batchJob("open", 8, "1"))))))
			awaitStaying(t, "covered", 8)
			awaitStaying(t, "open", 8)
			budget(t, "covered", 8)
			create(t, of("urgent", batchJob("preemptor", 2, "1")))
			awaitStaying(t, "preemptor", 2)
			awaitStaying(t, "covered", want.covered)
			awaitStaying(t, "open", want.open)
			nothingWasForbidden(t)
		})
	}
}

func TestADisruptionBudgetIsBrokenOnlyWhereThereIsNoOtherWay(t *testing.T) {
	makeRoom(t)
	const tier = "  - name: conformance\n"
	reconfigure(t, tier, tier+"  - name: pdb\n")
	createClass(t, "urgent", 1000)
	create(t, on("node-1", elastic(marked(batchJob("covered", 8, "1")))))
	awaitStaying(t, "covered", 8)
	budget(t, "covered", 8)
	create(t, of("urgent", on("node-1", batchJob("preemptor", 2, "1"))))
	awaitReason(t, "preemptor", "BudgetSpent", "8 pods cannot be evicted for it", "disruption budget")
	// Without the plugin the budget is a matter of price.
	reconfigure(t, tier+"  - name: pdb\n", tier)
	awaitStaying(t, "preemptor", 2)
	awaitStaying(t, "covered", 6)
	nothingWasForbidden(t)
}

// A plan whose victims take their time, and a scheduler that is killed meanwhile.
func TestARestartInTheMiddleOfAPlanGoesOnWithIt(t *testing.T) {
	makeRoom(t)
	releaseAtTheEnd(t)
	createQueue(t, "low", 1)
	createQueue(t, "high", 10)
	create(t, in("low", elastic(marked(batchJob("victim", 16, "1")))))
	awaitStaying(t, "victim", 16)
	first := holdAll(t, "victim")
	create(t, in("high", batchJob("preemptor", 3, "4")))
	before, victims := awaitPlan(t, "preemptor", 3, 12)
	apitest.Eventually(t, func(ctx context.Context) error {
		p, err := planOf(ctx, "preemptor")
		for uid := range victims {
			if why := p.told[uid]; err == nil && !strings.Contains(why, "Preempted by job default/preemptor in queue high (queue priority 10): higher queue priority") {
				err = fmt.Errorf("%s was told %q", victims[uid].Name, why)
			}
		}
		return err
	})

	restartScheduler(t)
	// A job that would like the room waits, next to those that have left it, and half of it becomes free.
	create(t, in("low", batchJob("bystander", 1, "1")))
	uids := slices.Sorted(maps.Keys(victims))
	half := map[types.UID]*corev1.Pod{}
	for _, uid := range uids[:6] {
		half[uid] = victims[uid]
	}
	if err := release(t.Context(), half); err != nil {
		t.Fatal(err)
	}
	awaitReason(t, "bystander", "PromisedToOthers")
	for range 30 {
		pods, err := allPods(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for uid, p := range leaving(pods) {
			if victims[uid] == nil {
				t.Fatalf("%s leaves as well", p.Name)
			}
		}
		for i := range pods {
			p := &pods[i]
			wasThere := slices.ContainsFunc(first, func(f corev1.Pod) bool { return f.UID == p.UID })
			if p.Spec.NodeName != "" && !wasThere {
				t.Fatalf("%s got the room on %s", p.Name, p.Spec.NodeName)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	after, err := planOf(t.Context(), "preemptor")
	if err != nil {
		t.Fatal(err)
	}
	if after.id != before.id || !maps.Equal(after.promised, before.promised) {
		t.Errorf("after the restart the plan is %s (%v), before it was %s (%v)", after.id, after.promised, before.id, before.promised)
	}

	if err := release(t.Context(), victims); err != nil {
		t.Fatal(err)
	}
	awaitStaying(t, "preemptor", 3)
	pods, err := podsOf(t.Context(), "preemptor")
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods {
		if p := &pods[i]; p.Spec.NodeName != before.promised[p.Name] {
			t.Errorf("%s is on %s, and was promised %s", p.Name, p.Spec.NodeName, before.promised[p.Name])
		}
	}
	awaitStaying(t, "victim", 4)
	noNodeIsOverCommitted(t)
	nothingWasForbidden(t)
}

// Whenever the scheduler is killed, the gang gets its room, and no more pods leave than it needs.
func TestACrashWhileAPlanIsWrittenEvictsNoPodTwice(t *testing.T) {
	makeRoom(t)
	releaseAtTheEnd(t)
	createQueue(t, "low", 1)
	createQueue(t, "high", 10)
	create(t, in("low", elastic(marked(batchJob("victim", 16, "1")))))
	awaitStaying(t, "victim", 16)
	holdAll(t, "victim")
	create(t, in("high", batchJob("preemptor", 3, "4")))
	apitest.Eventually(t, func(ctx context.Context) error {
		p, err := planOf(ctx, "preemptor")
		if err == nil && p.id == "" {
			err = fmt.Errorf("no plan is written down for preemptor")
		}
		return err
	})
	restartScheduler(t)
	_, victims := awaitPlan(t, "preemptor", 3, 12)
	if err := release(t.Context(), victims); err != nil {
		t.Fatal(err)
	}
	awaitStaying(t, "preemptor", 3)
	awaitStaying(t, "victim", 4)
	noNodeIsOverCommitted(t)
	nothingWasForbidden(t)
}

func TestAPlanEndsWithTheJobThatItWasMadeFor(t *testing.T) {
	makeRoom(t)
	releaseAtTheEnd(t)
	createQueue(t, "low", 1)
	createQueue(t, "high", 10)
	create(t, in("low", elastic(marked(batchJob("victim", 16, "1")))))
	awaitStaying(t, "victim", 16)
	holdAll(t, "victim")
	create(t, in("high", batchJob("preemptor", 2, "4")))
	_, victims := awaitPlan(t, "preemptor", 2, 8)
	background := metav1.DeletePropagationBackground
	jobs := batch.BatchV1alpha1().Jobs(metav1.NamespaceDefault)
	if err := jobs.Delete(t.Context(), "preemptor", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := podsOf(ctx, "preemptor")
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d pods of preemptor are left", len(pods))
		}
		return err
	})
	// No plan holds the room any more: the pods that replace the victims get it.
	if err := release(t.Context(), victims); err != nil {
		t.Fatal(err)
	}
	awaitStaying(t, "victim", 16)
	nothingWasForbidden(t)
}
