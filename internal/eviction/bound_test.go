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
	// No job asks for more of everything than another, so that no failure stands for the next.
	if cycle := cycleOfTheLast(t, func(i int) int { return 1000 - i }); cycle == 0 {
		t.Error("room is made for the last in the first cycle: the search is not limited, or not by these jobs")
	}
}

// A job whose pods ask for more than those of one that finds no victims finds none either, so it is not searched for.
func TestFailuresAreThoseOfLargerPodsToo(t *testing.T) {
	if cycle := cycleOfTheLast(t, func(i int) int { return i + 1 }); cycle != 0 {
		t.Errorf("room is made for the last in cycle %d: each of the others was searched for", cycle)
	}
}

// cycleOfTheLast returns in which cycle room is made for the last of 150 jobs, which alone wants one pod only and can
// have it. size is the memory that the pods of a job ask for, in Mi.
func cycleOfTheLast(t *testing.T, size func(job int) int) int {
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
			objects = append(objects, fixture.Pod(fmt.Sprintf("%s-%d", name, k), fixture.In(name), fixture.As("worker", k),
				fixture.Asks(fmt.Sprintf("cpu=%dm memory=%dMi nvidia.com/gpu=8", 1000+i, size(i)))))
		}
	}
	waiting := events(objects)
	for cycle := range 10 {
		now = now.Add(time.Second)
		result := s.Cycle(now, waiting)
		waiting = nil
		if plans := result.Decisions.Plans; len(plans) > 0 {
			if plans[0].Job.Name != last {
				t.Errorf("in cycle %d room is made for %s", cycle, plans[0].Job.Name)
			}
			return cycle
		}
		if result.Wake.IsZero() || result.Wake.Sub(now) > time.Second {
			t.Fatalf("after cycle %d nobody looks for the last preemptor before %s", cycle, result.Wake)
		}
	}
	t.Fatal("the last preemptor was never looked at")
	return 0
}
