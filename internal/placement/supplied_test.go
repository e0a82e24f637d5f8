package placement

import (
	"testing"

	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/internal/placement/limit"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/podclass"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/resources"
)

// classes are those of pods that come and go.
type classes struct{ *podclass.Table }

func newClasses() classes {
	index := resources.NewIndex()
	return classes{podclass.NewTable(index, supplies.NewServed(index))}
}

// with returns a class that a pod has.
func (c classes) with() *cluster.Class {
	k := &cluster.Class{}
	k.Plain = k
	return c.Exchange(nil, k)
}

// without takes its pod from a class.
func (c classes) without(k *cluster.Class) { c.Exchange(k, nil) }

func (e *Engine) storeSupplied(k *cluster.Class) {
	s := &supplied{class: k, question: &kube.Supplies{}}
	e.makeSpaceForSupplied()
	e.supplied[k] = s
	s.count(e)
}

// What is stored for classes with volumes is dropped by its size, however many classes there are.
func TestStoredVolumesAreBoundedByTheirSize(t *testing.T) {
	e, all := &Engine{supplied: map[*cluster.Class]*supplied{}}, newClasses()
	most := limit.Bytes / suppliedBytes
	for range most {
		e.storeSupplied(all.with())
	}
	if len(e.supplied) != most {
		t.Errorf("%d of %d classes are stored, which have space", len(e.supplied), most)
	}
	e.storeSupplied(all.with())
	if left := len(e.supplied); left != most-most/2+1 && left != most/2+1 || e.suppliedBytes != left*suppliedBytes {
		t.Errorf("%d classes with %d bytes are stored after half of them were dropped", left, e.suppliedBytes)
	}
}

// A class holds the specification of a pod. Of those that no pod has any more, as many are stored as pods have, or few.
func TestClassesWithoutPodsAreDropped(t *testing.T) {
	e, all := &Engine{supplied: map[*cluster.Class]*supplied{}, kinds: map[*cluster.Class]*kind{}}, newClasses()
	store := func() *cluster.Class {
		k := all.with()
		e.storeSupplied(k)
		e.sweep()
		e.kinds[k] = &kind{class: k}
		return k
	}
	for _, inUse := range []int{0, 100} {
		for range inUse {
			store()
		}
		for range 20 * firstSweep {
			all.without(store())
			if most := max(firstSweep, 2*(inUse+1)); len(e.kinds) > most || len(e.supplied) > most {
				t.Fatalf("%d and %d classes are stored, and pods have %d", len(e.kinds), len(e.supplied), inUse)
			}
		}
	}
}
