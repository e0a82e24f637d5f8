package cluster

import (
	"slices"

	"hekla.sh/hekla/pkg/resources"
)

// Waiting returns those of some tasks that wait for a node, in a slice of its own.
func Waiting(tasks []*Task) []*Task {
	var waiting []*Task
	for _, t := range tasks {
		if t.Status == Pending {
			waiting = append(waiting, t)
		}
	}
	return waiting
}

// RequestOf returns what some tasks request together.
func RequestOf(tasks []*Task) (sum resources.Vector) {
	for _, t := range tasks {
		sum.Add(t.Request())
	}
	return sum
}

// LeastRequest returns the least that so many of some tasks request together, of each resource by itself.
func LeastRequest(tasks []*Task, count int) resources.Vector {
	var least resources.Vector
	if count = min(count, len(tasks)); count == 0 {
		return resources.Vector{}
	}
	classes := OnePerClass(tasks)
	if len(classes) == 1 {
		least.AddScaled(classes[0].Request(), int64(count))
		return least
	}
	dims := 0
	for _, t := range classes {
		dims = max(dims, len(t.Request()))
	}
	amounts := make([]int64, len(tasks))
	for i := range dims {
		d := resources.Dim(i)
		for at, t := range tasks {
			amounts[at] = t.Request().At(d)
		}
		slices.Sort(amounts)
		sum := int64(0)
		for _, amount := range amounts[:count] {
			sum += amount
		}
		least.Set(d, sum)
	}
	return least
}

// OnePerClass returns the first task of each class.
func OnePerClass(tasks []*Task) []*Task {
	var first []*Task
	var seen map[*Class]bool // without the class of the first task, which usually is the only one
	for i, t := range tasks {
		switch {
		case i == 0:
		case t.Class == tasks[0].Class || seen[t.Class]:
			continue
		case seen == nil:
			seen = map[*Class]bool{}
			fallthrough
		default:
			seen[t.Class] = true
		}
		first = append(first, t)
	}
	return first
}
