package simulator

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/simulator/manifests"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
	"hekla.sh/hekla/pkg/cluster"
)

// shownKey names an object of the virtual cluster.
type shownKey struct {
	kind string
	types.NamespacedName
}

// shown are the objects as the API server would show them. Each write has a new resource version, and the generation
// grows with changes of the spec, not of the status. Otherwise the scheduler would take its own status writes for
// changes, and try jobs again although nothing has happened.
type shown struct {
	objects map[shownKey]runtime.Object
	version int64
}

func shownKeyOf(o runtime.Object, m metav1.Object) shownKey {
	return shownKey{kind: kindOf(o), NamespacedName: keyOf(m)}
}

// kindsOf knows the kinds of all objects that a simulation understands.
var kindsOf = manifests.NewScheme()

// kindOf is the kind of an object.
func kindOf(o runtime.Object) string {
	kinds, _, err := kindsOf.ObjectKinds(o)
	if err != nil {
		panic("invariant: a simulation holds only what it understands: " + err.Error())
	}
	return kinds[0].Kind
}

// NameOf is what a person calls an object, such as "Pod work/a" or "Node n1".
func NameOf(o runtime.Object) string {
	return kindOf(o) + " " + strings.TrimPrefix(keyOf(o.(metav1.Object)).String(), "/")
}

// write stores an object that no other code holds, with the version and the generation that the API server would give
// it. What is wished for is compared only if it may have changed.
func (s *shown) write(o runtime.Object, mayDiffer bool) {
	m := o.(metav1.Object)
	key := shownKeyOf(o, m)
	before, _ := s.objects[key].(metav1.Object)
	switch {
	case before == nil || before.GetUID() != m.GetUID():
		m.SetGeneration(max(m.GetGeneration(), 1))
	case mayDiffer && !equality.Semantic.DeepEqual(wishedFor(s.objects[key]), wishedFor(o)):
		m.SetGeneration(before.GetGeneration() + 1)
	default:
		m.SetGeneration(before.GetGeneration())
	}
	s.version++
	m.SetResourceVersion(strconv.FormatInt(s.version, 10))
	s.objects[key] = o
}

func (s *shown) drop(o runtime.Object) { delete(s.objects, shownKeyOf(o, o.(metav1.Object))) }

// all returns every object, by kind and name.
func (s *shown) all() []runtime.Object {
	keys := slices.SortedFunc(maps.Keys(s.objects), func(a, b shownKey) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cluster.CompareNames(a.NamespacedName, b.NamespacedName))
	})
	objects := make([]runtime.Object, len(keys))
	for i, key := range keys {
		objects[i] = s.objects[key]
	}
	return objects
}

// wishedFor is the part of an object by which its generation goes, nil for kinds of which the generation is not read.
func wishedFor(o runtime.Object) any {
	switch o := o.(type) {
	case *corev1.Pod:
		return o.Spec
	case *corev1.ResourceQuota:
		return o.Spec
	case *policyv1.PodDisruptionBudget:
		return o.Spec
	case *schedulingv1beta1.PodGroup:
		return o.Spec
	case *schedulingv1beta1.Queue:
		return o.Spec
	case *v1beta2.Workload:
		return o.Spec
	case *topologyv1alpha1.HyperNode:
		return o.Spec
	}
	return nil
}
