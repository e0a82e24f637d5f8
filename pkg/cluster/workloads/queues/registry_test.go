package queues_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads/queues"
	"hekla.sh/hekla/pkg/resources"
)

// recorder is a listener that records its calls. No Workload names or uses anything.
type recorder []string

func (l *recorder) ChangedLocalQueue(q *queues.LocalQueue)     { *l = append(*l, q.Key.String()) }
func (l *recorder) ChangedClusterQueue(q *queues.ClusterQueue) { *l = append(*l, q.Name) }
func (l *recorder) Leave(q *queues.ClusterQueue, _ bool)       { *l = append(*l, "leave "+q.Name) }
func (l *recorder) ChangedTrees(func(*workload.Queue) bool)    { *l = append(*l, "trees") }
func (l *recorder) IsNamed(*queues.LocalQueue) bool            { return false }
func (l *recorder) HoldsIn(*queues.ClusterQueue) bool          { return false }

func (l *recorder) take() []string {
	taken := *l
	*l = nil
	return taken
}

// clusterQueue has cores of the flavor default, in a Cohort.
func clusterQueue(name, in string, cores string) *v1beta2.ClusterQueue {
	q := &v1beta2.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	q.Spec.CohortName = in
	q.Spec.ResourceGroups = []v1beta2.ResourceGroup{{CoveredResources: []corev1.ResourceName{corev1.ResourceCPU}, Flavors: []v1beta2.FlavorQuotas{{
		Name: "default", Resources: []v1beta2.ResourceQuota{{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse(cores)}}}}}}
	return q
}

func TestRegistry(t *testing.T) {
	var l recorder
	r := queues.New(resources.NewIndex(), &l)

	r.SetClusterQueue(clusterQueue("a", "all", "2"))
	r.SetLocalQueue(&v1beta2.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "mine"}, Spec: v1beta2.LocalQueueSpec{ClusterQueue: "a"}})
	r.Settle()
	a := r.ClusterQueue("a")
	if len(a.Causes) != 1 || a.Queue.Inactive == "" {
		t.Errorf("without its flavor the queue is inactive because of %v", a.Causes)
	}

	r.SetFlavor(&v1beta2.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	r.Settle()
	fr := r.Queues.Index.OfFlavor("default", corev1.ResourceCPU)
	if len(a.Causes) != 0 || a.Queue.Nominal(fr) != 2000 {
		t.Errorf("with its flavor it is inactive because of %v, and has %d", a.Causes, a.Queue.Nominal(fr))
	}

	l.take()
	r.SetClusterQueue(clusterQueue("a", "all", "2"))
	if r.Settle(); len(l) > 0 {
		t.Errorf("the same again changes %v", l.take())
	}

	r.SetClusterQueue(clusterQueue("b", "all", "1"))
	r.Settle()
	if got := l.take(); !slices.Equal(got, []string{"b", "b", "trees"}) && !slices.Equal(got, []string{"b", "trees"}) {
		t.Errorf("another queue changes %v", got)
	}
	if !a.Queue.Fits(nil) || a.Queue.Tree() != r.ClusterQueue("b").Queue.Tree() {
		t.Error("queues of one Cohort are in different trees")
	}

	r.DropClusterQueue("a")
	if got := l.take(); !slices.Equal(got, []string{"leave a", "a"}) {
		t.Errorf("its end changes %v", got)
	}
	if r.Settle(); len(r.Queues.All()) != 1 || r.ClusterQueue("a").Queue != nil {
		t.Errorf("%d queues are left", len(r.Queues.All()))
	}
}

func TestCohortsThatNameEachOtherInACircle(t *testing.T) {
	var l recorder
	r := queues.New(resources.NewIndex(), &l)
	r.SetFlavor(&v1beta2.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	for name, parent := range map[string]string{"x": "y", "y": "x"} {
		c := &v1beta2.Cohort{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.ParentName = parent
		r.SetCohort(c)
	}
	r.SetClusterQueue(clusterQueue("a", "x", "1"))
	r.SetClusterQueue(clusterQueue("b", "all", "1"))
	r.Settle()
	if r.ClusterQueue("a").Queue.Inactive == "" || r.ClusterQueue("b").Queue.Inactive != "" {
		t.Errorf("a is inactive because of %q, and b of %q", r.ClusterQueue("a").Queue.Inactive, r.ClusterQueue("b").Queue.Inactive)
	}
}
