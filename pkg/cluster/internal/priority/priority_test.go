package priority_test

import (
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/cluster/internal/priority"
)

func TestTheLowestPriorityIsThatOfThePodsThatAreThere(t *testing.T) {
	var c priority.Counts
	if _, ok := c.Lowest(); ok {
		t.Error("no pods have a lowest priority")
	}
	for _, p := range []int32{5, -3, 5} {
		c.Add(p, +1)
	}
	if lowest, ok := c.Lowest(); !ok || lowest != -3 {
		t.Errorf("the lowest is %d, %t", lowest, ok)
	}
	c.Add(-3, -1)
	c.Add(5, -1)
	if lowest, ok := c.Lowest(); !ok || lowest != 5 {
		t.Errorf("after two have gone the lowest is %d, %t", lowest, ok)
	}
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
