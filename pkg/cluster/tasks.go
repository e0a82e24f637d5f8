package cluster

// OnePerClass returns the first of some tasks of each class.
func OnePerClass(tasks []*Task) []*Task {
	var first []*Task
	var seen map[*Class]bool // beside the class of the first: most often there is no other
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
