package cache

import (
	"testing"

	"hekla.sh/hekla/pkg/cluster"

	"hekla.sh/hekla/pkg/resources"
)

func TestOneTaskOfEachClassSpeaksForTheOthers(t *testing.T) {
	a, b, c := &cluster.Class{}, &cluster.Class{}, &cluster.Class{}
	name := map[*cluster.Class]string{a: "a", b: "b", c: "c"}
	for want, classes := range map[string][]*cluster.Class{"": nil, "a": {a, a, a}, "abc": {a, b, a, b, c, c, b}, "bca": {b, c, a}} {
		var tasks []*cluster.Task
		for _, k := range classes {
			tasks = append(tasks, &cluster.Task{Class: k})
		}
		got := ""
		for _, task := range cluster.OnePerClass(tasks) {
			got += name[task.Class]
		}
		if got != want {
			t.Errorf("of %d tasks %q speak, should %q", len(tasks), got, want)
		}
	}
}

func TestTheLargestTaskIsTheOneThatTakesMostOfAnyResource(t *testing.T) {
	c := newCluster()
	c.Total = resources.Vector{100, 1000}
	small, wide, tall := &cluster.Task{Class: &cluster.Class{Request: resources.Vector{1, 10}}}, &cluster.Task{Class: &cluster.Class{Request: resources.Vector{0, 900}}},
		&cluster.Task{Class: &cluster.Class{Request: resources.Vector{50, 0}}}
	if got := cluster.LargestFirst([]*cluster.Task{small, tall, wide}, c.Total); got[0] != wide || got[1] != tall || got[2] != small {
		t.Errorf("the order is %v", got)
	}
}
