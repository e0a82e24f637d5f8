package cache

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster"
)

// Names finds jobs by the names that users call them. Users call a job by the object for which a controller made its
// PodGroup, such as a Volcano Job, whose PodGroup has another name. It holds the jobs whose name differs from that of
// their PodGroup, and no others. The zero value is empty.
type Names struct {
	jobs  map[types.NamespacedName][]*cluster.Job
	names map[*cluster.Job]types.NamespacedName
}

// nameOf is what users call a job, none if that is the name of its PodGroup.
func nameOf(j *cluster.Job) (name types.NamespacedName) {
	if j.Group != nil && len(j.Group.OwnerReferences) > 0 {
		if own := strings.TrimPrefix(j.Name(), j.ID.Namespace+"/"); own != j.ID.Text() {
			name = types.NamespacedName{Namespace: j.ID.Namespace, Name: own}
		}
	}
	return name
}

// follow reads the name of a job again.
func (x *Names) follow(j *cluster.Job) {
	name := nameOf(j)
	old, isHeld := x.names[j]
	if old == name {
		return
	}
	if isHeld {
		delete(x.names, j)
		left := slices.DeleteFunc(x.jobs[old], func(other *cluster.Job) bool { return other == j })
		if x.jobs[old] = left; len(left) == 0 {
			delete(x.jobs, old)
		}
	}
	if name.Name == "" {
		return
	}
	if x.names == nil {
		x.names, x.jobs = map[*cluster.Job]types.NamespacedName{}, map[types.NamespacedName][]*cluster.Job{}
	}
	x.names[j] = name
	x.jobs[name] = append(x.jobs[name], j)
}

// Youngest returns the youngest job of a name, nil if there is none.
func (x *Names) Youngest(name types.NamespacedName) *cluster.Job {
	jobs := x.jobs[name]
	if len(jobs) == 0 {
		return nil
	}
	return slices.MaxFunc(jobs, cluster.CompareJobs)
}

// audit compares the index with all jobs, and returns what is wrong, one sentence each.
func (x *Names) audit(jobs []*cluster.Job) (found []string) {
	named := 0
	for _, j := range jobs {
		name := nameOf(j)
		if name.Name == "" {
			continue
		}
		named++
		if !slices.Contains(x.jobs[name], j) {
			found = append(found, "job "+j.ID.String()+" is not found by its name "+name.String())
		}
	}
	if named != len(x.names) {
		found = append(found, "jobs are found by names that they no longer have")
	}
	return found
}
