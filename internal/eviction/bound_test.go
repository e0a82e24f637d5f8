package eviction_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/test/fixture"
)

// The search of a cycle is limited. A preemptor beyond the limit is tried in a later cycle, though no event happens.
func TestWhoHadNoTurnInACycleHasItInALaterOne(t *testing.T) {
	const nodes, preemptors = 2000, 150
	s, now := full(t, nodes, nil)
	var objects []runtime.Object
	for n := 1; n < nodes; n++ { // pods may be evicted only from the first node
		node := fmt.Sprintf("n%05d", n)
		for i := range 8 {
			objects = append(objects, fixture.Pod(fmt.Sprintf("p%05d-%d", n, i), fixture.In("g"+node), fixture.As("worker", i),
				fixture.On(node), fixture.Asks("cpu=4 memory=16Gi nvidia.com/gpu=1")))
		}
	}
	last := fmt.Sprintf("w%03d", preemptors-1)
	for i := range preemptors {
		name := fmt.Sprintf("w%03d", i)
		group := fixture.Group(name, "low", 2)
		if name == last {
			group.Spec.MinMember = 1
		}
		group.Spec.PriorityClassName = "high"
		objects = append(objects, group)
		for k := range int(group.Spec.MinMember) {
			// Each shape is different, so that no failure stands for the next.
			objects = append(objects, fixture.Pod(fmt.Sprintf("%s-%d", name, k), fixture.In(name), fixture.As("worker", k),
				fixture.Asks(fmt.Sprintf("cpu=1 memory=%dMi nvidia.com/gpu=8", i+1))))
		}
	}
	waiting := events(objects)
	for cycle := range 10 {
		now = now.Add(time.Second)
		result := s.Cycle(now, waiting)
		waiting = nil
		if plans := result.Decisions.Plans; len(plans) > 0 {
			if plans[0].Job.Name != last || cycle == 0 {
				t.Errorf("in cycle %d room is made for %s", cycle, plans[0].Job.Name)
			}
			return
		}
		if result.Wake.IsZero() || result.Wake.Sub(now) > time.Second {
			t.Fatalf("after cycle %d nobody looks for the last preemptor before %s", cycle, result.Wake)
		}
	}
	t.Error("the last preemptor was never looked at")
}
