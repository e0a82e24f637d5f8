package decision

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// JobID names a job: by the PodGroup or the Workload that it is, or that is tried. The zero value names none.
type JobID struct {
	Kind            JobKind
	Namespace, Name string
}

// JobKind is what the name of a job is one of.
type JobKind uint8

// The kinds.
const (
	OfPodGroup JobKind = iota
	OfWorkload
	OfTrial // a Workload that is tried: its stand-ins are removed again
)

// workloadPrefix stands before the name of a Workload where jobs of all kinds are recorded as text, as in
// [AccountAnnotation]. No PodGroup can have such a name.
const workloadPrefix = "workload/"

// ParseJobID reads the text of a job's name, see [JobID.Text].
func ParseJobID(namespace, text string) JobID {
	if name, isOfWorkload := strings.CutPrefix(text, workloadPrefix); isOfWorkload {
		return JobID{OfWorkload, namespace, name}
	}
	return JobID{OfPodGroup, namespace, text}
}

// Text is the name as it is recorded without the namespace: that of a Workload after "workload/".
func (id JobID) Text() string {
	switch id.Kind {
	case OfWorkload:
		return workloadPrefix + id.Name
	case OfTrial:
		return workloadPrefix + id.Name + " (trial)"
	}
	return id.Name
}

// String is the namespace and [JobID.Text].
func (id JobID) String() string { return id.Namespace + "/" + id.Text() }

// Key is the namespace and name of the object.
func (id JobID) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: id.Namespace, Name: id.Name}
}

// Compare orders by namespace, then [JobID.Text].
func (id JobID) Compare(other JobID) int {
	if c := cmp.Compare(id.Namespace, other.Namespace); c != 0 || id.Kind == other.Kind {
		return cmp.Or(c, cmp.Compare(id.Name, other.Name))
	}
	return cmp.Compare(id.Text(), other.Text())
}
