package audit

import (
	"cmp"
	"time"

	"hekla.sh/hekla/pkg/apis/bounds"
)

// Sighting is an object as a watch of the API server shows it.
type Sighting struct {
	// At is when it was seen. No sighting may be older than the one before.
	At time.Time
	// Object is the object in JSON, with its kind.
	Object []byte
	// IsGone says that the object is not stored any more.
	IsGone bool
}

// Watched takes in what a watch shows, in place of a log, and returns what that proves. Sightings must come in the
// order of their resource versions; [Auditor.Know] has told of the objects from which the watches began.
//
// A watch does not show who did something. A pod that is seen on a node was bound by the scheduler that it names, and
// a pod that begins to be deleted was evicted by its scheduler if its condition DisruptionTarget has the reason
// PreemptionByScheduler. Whether it was deleted or evicted by the eviction API cannot be seen, and of two bindings
// only what they made. So [RuleBudget] and [RuleDoubleBind] prove nothing.
//
// An error is of this object alone.
func (a *Auditor) Watched(s Sighting) ([]Violation, error) {
	a.report.Lines++
	m := &meta{}
	err := bounds.UnmarshalKubernetesJSON(s.Object, m)
	k, isLooked := kindNames[m.Kind]
	if err != nil || !isLooked {
		return nil, a.unreadable(err)
	}
	c := change{at: s.At, kind: k, key: key{m.Metadata.Namespace, m.Metadata.Name}, uid: m.Metadata.UID, what: deleted}
	if !s.IsGone {
		c.what = observed
		if c.object, err = decode(k, s.Object); err != nil {
			return nil, a.unreadable(err)
		}
	}
	return a.proven(func() {
		if p, is := c.object.(*pod); is {
			a.infer(p, c)
		}
		a.take(&c)
	}), nil
}

// infer takes in the requests that have made a pod what it is: a binding, and an eviction.
func (a *Auditor) infer(p *pod, c change) {
	before := a.pods[p.uid]
	c.user, c.object = p.scheduler, nil
	if before != nil && before.node == "" && p.node != "" {
		c.what, c.node = bound, p.node
		a.take(&c)
	}
	if before != nil && !before.isLeaving && p.isLeaving && (before.isMarked || p.isMarked) {
		if len(a.options.Schedulers) == 0 {
			a.schedulers[c.user] = true
		}
		c.what = evicted
		a.take(&c)
	}
}

// Advance has time pass in which watches showed nothing, and returns what that proves.
func (a *Auditor) Advance(to time.Time) []Violation {
	if a.begin.IsZero() {
		a.begin = to
	}
	return a.proven(func() { a.pass(to) })
}

// proven returns the violations that are found meanwhile.
func (a *Auditor) proven(meanwhile func()) []Violation {
	before := len(a.report.Violations)
	meanwhile()
	a.latest = a.now
	return a.report.Violations[before:]
}

// unreadable counts an object that could not be read.
func (a *Auditor) unreadable(err error) error {
	if err != nil {
		a.report.Unreadable++
		a.report.Problem = cmp.Or(a.report.Problem, err.Error())
	}
	return err
}
