package priority_test

import (
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/cluster/internal/priority"
)

func TestTheLowestPriorityIsThatOfThePodsThatAreThere(t *testing.T) {
	var c priority.Counts
	if _, _, ok := c.Lowest(); ok {
		t.Error("no pods have a lowest priority")
	}
	is := func(when string, want int32, wantNever bool) {
		t.Helper()
		if lowest, never, ok := c.Lowest(); !ok || lowest != want || never != wantNever {
			t.Errorf("%s the lowest is %d, never preempting %t, %t", when, lowest, never, ok)
		}
	}
	c.Add(priority.Rank{Priority: 5}, +1)
	c.Add(priority.Rank{Priority: -3, NeverPreempts: true}, +1)
	c.Add(priority.Rank{Priority: 5}, +1)
	is("of three", -3, false)
	c.Add(priority.Rank{Priority: -3, NeverPreempts: true}, -1)
	c.Add(priority.Rank{Priority: 5}, -1)
	is("after two have gone", 5, false)
	c.Add(priority.Rank{Priority: 2, IsOver: true}, +1)
	is("with one that has ended", 5, false)
	c.Add(priority.Rank{Priority: 5}, -1)
	c.Add(priority.Rank{Priority: 3, NeverPreempts: true, IsOver: true}, +1)
	is("when all have ended", 2, false)
	c.Add(priority.Rank{Priority: 9, NeverPreempts: true}, +1)
	is("of those that are left, which never preempt,", 9, true)
}

func TestOfSeveralDefaultClassesTheLowestCounts(t *testing.T) {
	class := func(name string, value int32, isDefault bool) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: isDefault}
	}
	c := priority.Classes{"a": class("a", 9, true), "b": class("b", 3, true), "c": class("c", 1, false)}
	if got := c.Resolve("unknown"); got == nil || got.Name != "b" {
		t.Errorf("an unknown name is %v", got)
	}
	if got := c.Resolve("c"); got == nil || got.Value != 1 {
		t.Errorf("a known name is %v", got)
	}
	if got := (priority.Classes{}).Resolve("c"); got != nil {
		t.Errorf("without classes it is %v", got)
	}
}
