package cluster

import (
	"testing"

	"hekla.sh/hekla/pkg/resources"
)

func TestOneTaskOfEachClassSpeaksForTheOthers(t *testing.T) {
	a, b, c := &Class{}, &Class{}, &Class{}
	name := map[*Class]string{a: "a", b: "b", c: "c"}
	for want, classes := range map[string][]*Class{"": nil, "a": {a, a, a}, "abc": {a, b, a, b, c, c, b}, "bca": {b, c, a}} {
		var tasks []*Task
		for _, k := range classes {
			tasks = append(tasks, &Task{Class: k})
		}
		got := ""
		for _, task := range OnePerClass(tasks) {
			got += name[task.Class]
		}
		if got != want {
			t.Errorf("of %d tasks %q speak, should %q", len(tasks), got, want)
		}
	}
}

func TestTheLargestTaskIsTheOneThatTakesMostOfAnyResource(t *testing.T) {
	c := &Cluster{Totals: Totals{Total: resources.Vector{100, 1000}}}
	small, wide, tall := &Task{Class: &Class{Request: resources.Vector{1, 10}}}, &Task{Class: &Class{Request: resources.Vector{0, 900}}},
		&Task{Class: &Class{Request: resources.Vector{50, 0}}}
	if got := c.LargestFirst([]*Task{small, tall, wide}); got[0] != wide || got[1] != tall || got[2] != small {
		t.Errorf("the order is %v", got)
	}
}
