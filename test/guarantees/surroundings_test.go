package guarantees

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/harness"
)

// surroundings are what goes on around the scheduler in a story: policies that restart jobs of which a pod is evicted,
// and nodes of plans that are cordoned while the victims leave.
type surroundings struct {
	restarts map[string]bool // by job: all its pods begin again when one is evicted
	evicted  []string        // those of these jobs of which a pod was evicted since
	vain     harness.Vain
	cycles   int

	isAwaited bool   // a node of the next plan is to be cordoned
	node      string // that is cordoned or about to be, "" for none
	closesIn  int    // steps
	opensIn   int    // steps after that
}

// watch looks at the decisions of a cycle.
func (s *story) watch(d *decision.Decisions) {
	o := &s.around
	o.cycles++
	if pod := o.vain.Observe(o.cycles, d); pod != "" && s.breach == nil && s.judge != nil {
		s.breach = fmt.Errorf("S1: %s", pod)
	}
	for _, p := range d.Plans {
		for _, e := range p.Evictions {
			if o.restarts[e.VictimJob.Name] {
				o.evicted = append(o.evicted, e.VictimJob.Name)
			}
		}
		if o.isAwaited && o.node == "" && len(p.Evictions) > 0 && len(p.Nominations) > 0 {
			o.isAwaited, o.node, o.closesIn, o.opensIn = false, p.Nominations[0].Node, 1+s.random.IntN(8), 4+s.random.IntN(20)
		}
	}
}

// restart applies the policies of jobs whose pods are evicted.
func (s *story) restart() {
	groups := s.around.evicted
	s.around.evicted = nil
	for _, o := range s.led.Objects() {
		pod, ok := o.(*corev1.Pod)
		if ok && pod.DeletionTimestamp == nil && slices.Contains(groups, pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey]) {
			s.led.Terminate(pod)
			s.around.vain.ForgetJob(pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey])
			s.count["pods that restart"]++
		}
	}
}

// cordon cordons a node of a plan when its time has come, and opens it again.
func (s *story) cordon() {
	o := &s.around
	set := func(isCordoned bool) {
		node, _ := s.led.Get(&corev1.Node{}, "", o.node).(*corev1.Node)
		if node == nil {
			return
		}
		node = node.DeepCopy()
		node.Spec.Unschedulable = isCordoned
		if err := s.led.Set(node); err != nil {
			panic(err)
		}
		s.around.vain.Forget()
		s.count["cordons"]++
	}
	switch {
	case o.node == "":
	case o.closesIn > 0:
		if o.closesIn--; o.closesIn == 0 {
			set(true)
		}
	default:
		if o.opensIn--; o.opensIn == 0 {
			set(false)
			o.node = ""
		}
	}
}

// addJobWithoutMaster adds a job that needs a master to start, which waits for a device claim that never comes.
func (s *story) addJobWithoutMaster() error {
	s.made++
	name, queue, now := fmt.Sprintf("s%d", s.made), s.leaves[s.random.IntN(len(s.leaves))], metav1.NewTime(s.led.Now())
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "work", CreationTimestamp: now, Generation: 1}}
	group.Spec = schedulingv1beta1.PodGroupSpec{MinMember: 1, MinTaskMember: map[string]int32{"master": 1}, Queue: queue, PriorityClassName: fmt.Sprintf("p%d", s.random.IntN(2)*10)}
	group.Status.Phase = schedulingv1beta1.PodGroupInqueue
	if err := s.led.Set(group); err != nil {
		return err
	}
	s.jobs = append(s.jobs, name)
	for k, role := range strings.Fields("worker master") {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, k), Namespace: "work", CreationTimestamp: now, Generation: 1,
			Annotations:     map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: name, batchv1alpha1.TaskSpecKey: role},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: types.UID(name), Controller: new(true)}}}}
		if role == "master" {
			pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: new("missing")}}
		}
		if err := s.addPod(pod, queue, 1+s.random.IntN(2)); err != nil {
			return err
		}
	}
	return nil
}

// isTried reports whether the next cycle tries a job, which waits for no plan and no time.
func (s *story) isTried(j *cluster.Job) bool {
	return j.Plan == nil && j.NotBefore.Before(s.led.Now()) && j.Admission.Revisit.IsZero() && (j.Verdict == nil || j.Verdict.RetryAt.IsZero())
}
