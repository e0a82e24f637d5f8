package called

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster"
)

// Index has jobs by name. The zero value is empty, and ready for use.
type Index struct {
	jobs  map[types.NamespacedName][]*cluster.Job
	names map[*cluster.Job]types.NamespacedName
}

// nameOf is what users call a job, none if that is the name of its PodGroup.
func nameOf(j *cluster.Job) (name types.NamespacedName) {
	if j.Group != nil && len(j.Group.OwnerReferences) > 0 {
		if own := strings.TrimPrefix(j.Name(), j.ID.Namespace+"/"); own != j.ID.Name {
			name = types.NamespacedName{Namespace: j.ID.Namespace, Name: own}
		}
	}
	return name
}

// Follow reads the name of a job again.
func (x *Index) Follow(j *cluster.Job) {
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
func (x *Index) Youngest(name types.NamespacedName) *cluster.Job {
	jobs := x.jobs[name]
	if len(jobs) == 0 {
		return nil
	}
	return slices.MaxFunc(jobs, cluster.CompareJobs)
}

// Audit compares the index with all jobs, and returns what is wrong, one sentence each.
func (x *Index) Audit(jobs []*cluster.Job) (found []string) {
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
