package cluster

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
