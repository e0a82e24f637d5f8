package placement

import (
	"testing"

	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/internal/placement/limit"
	"hekla.sh/hekla/pkg/cluster"
)

// What is stored for classes with volumes is dropped by its size, however many classes there are.
func TestStoredVolumesAreBoundedByTheirSize(t *testing.T) {
	e := &Engine{supplied: map[*cluster.Class]*supplied{}}
	add := func() {
		k := &cluster.Class{}
		s := &supplied{class: k, question: &kube.Supplies{}}
		e.makeSpaceForSupplied()
		e.supplied[k] = s
		s.count(e)
	}
	most := limit.Bytes / suppliedBytes
	for range most {
		add()
	}
	if len(e.supplied) != most {
		t.Errorf("%d of %d classes are stored, which have space", len(e.supplied), most)
	}
	add()
	if len(e.supplied) != 1 || e.suppliedBytes != suppliedBytes {
		t.Errorf("%d classes with %d bytes are stored after those without pods were dropped", len(e.supplied), e.suppliedBytes)
	}
}
