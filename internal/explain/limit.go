package explain

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/placement"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
)

// MaxSteps is how many steps the work for one answer may take. A step is a question of the placement engine, such as
// whether a pod fits on a node, or a pod that is supposed. A question that looks at many nodes, pods or terms takes a
// step for some microseconds of work.
const MaxSteps = 2_000_000

// ErrTooLarge is the error of an answer that would take the loop too long.
var ErrTooLarge = errors.New("too large to answer: it would hold up the scheduler; ask about fewer pods, or pods with fewer constraints")

// Abandoned is what a model panics with when the work for an answer must end. The cluster is left as it was, as after
// every trial; the model must not be asked any more.
type Abandoned struct{ Why error }

// Bound ends the work for the following answers when a function returns an error, or after [MaxSteps]. Nil is no
// bound. The function is asked at every step that may take long.
func (m *Model) Bound(mustEnd func() error) { m.mustEnd, m.steps = mustEnd, 0 }

// IsSpent reports whether a part of an answer was abandoned, so that the model must not be asked any more.
func (m *Model) IsSpent() bool { return m.isSpent }

// Attempt looks for a part of an answer that may be left out. The error is [ErrTooLarge] if it is.
func (m *Model) Attempt(part func()) (err error) {
	if m.isSpent {
		return ErrTooLarge
	}
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case Abandoned:
			if !errors.Is(cause.Why, ErrTooLarge) {
				panic(cause)
			}
			m.isSpent, err = true, ErrTooLarge
		default:
			panic(cause)
		}
	}()
	part()
	return nil
}

// small is of how many short steps one asks whether the work must end.
const small = 16

// step counts a question of the placement engine. A long one counts as many steps, so that one asks at each whether the
// work must end.
func (m *Model) step(isShort bool) {
	if isShort {
		m.works(1)
	} else {
		m.works(small)
	}
}

// works counts steps of the work, also within a question, and ends the work if it must.
func (m *Model) works(steps int) {
	if m.mustEnd == nil {
		return
	}
	before := m.steps / small
	if m.steps += steps; m.steps > MaxSteps {
		panic(Abandoned{ErrTooLarge})
	}
	if m.steps/small == before {
		return
	}
	if err := m.mustEnd(); err != nil {
		panic(Abandoned{err})
	}
}

// supposes counts a pod that is supposed.
func (m *Model) supposes() { m.step(false) }

// MaxTerms is how many labels of its node selector, affinity terms, spread constraints and expressions of their
// selectors a pod of a submission may have: what one pod takes is one step.
const MaxTerms = 1000

// mostTerms is how many of these the pod has that has the most.
func mostTerms(pods []*corev1.Pod) (most int) {
	for _, pod := range pods {
		if pod == nil {
			continue
		}
		n := len(pod.Spec.NodeSelector) + len(pod.Spec.TopologySpreadConstraints)
		for i := range pod.Spec.TopologySpreadConstraints {
			n += selectorTerms(pod.Spec.TopologySpreadConstraints[i].LabelSelector)
		}
		if a := pod.Spec.Affinity; a != nil {
			n += nodeTerms(a.NodeAffinity)
			if of := a.PodAffinity; of != nil {
				n += podTerms(of.RequiredDuringSchedulingIgnoredDuringExecution, of.PreferredDuringSchedulingIgnoredDuringExecution)
			}
			if of := a.PodAntiAffinity; of != nil {
				n += podTerms(of.RequiredDuringSchedulingIgnoredDuringExecution, of.PreferredDuringSchedulingIgnoredDuringExecution)
			}
		}
		most = max(most, n)
	}
	return most
}

func podTerms(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) (n int) {
	for i := range required {
		n += 1 + selectorTerms(required[i].LabelSelector) + selectorTerms(required[i].NamespaceSelector)
	}
	for i := range preferred {
		n += 1 + selectorTerms(preferred[i].PodAffinityTerm.LabelSelector) + selectorTerms(preferred[i].PodAffinityTerm.NamespaceSelector)
	}
	return n
}

func selectorTerms(s *metav1.LabelSelector) (n int) {
	if s == nil {
		return 0
	}
	for i := range s.MatchExpressions {
		n += 1 + len(s.MatchExpressions[i].Values)
	}
	return n + len(s.MatchLabels)
}

func nodeTerms(a *corev1.NodeAffinity) (n int) {
	if a == nil {
		return 0
	}
	count := func(t *corev1.NodeSelectorTerm) {
		for _, e := range slices.Concat(t.MatchExpressions, t.MatchFields) {
			n += 1 + len(e.Values)
		}
		n++
	}
	if a.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for i := range a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			count(&a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[i])
		}
	}
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		count(&a.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
	}
	return n
}

// metered is a placement engine of which each question is a step.
type metered struct {
	*placement.Engine
	model *Model
}

// Best implements [framework.Placer].
func (e *metered) Best(t *cluster.Task) *cluster.Node {
	e.model.step(false)
	return e.Engine.Best(t)
}

// Explain implements [framework.Placer].
func (e *metered) Explain(t *cluster.Task) ([]verdict.NodeReason, []verdict.Shortage) {
	e.model.step(false)
	return e.Engine.Explain(t)
}

// Fits implements [framework.Placer].
func (e *metered) Fits(t *cluster.Task, n *cluster.Node) bool {
	e.model.step(true)
	return e.Engine.Fits(t, n)
}

// Veto implements [framework.Placer].
func (e *metered) Veto(t *cluster.Task, n *cluster.Node) string {
	e.model.step(true)
	return e.Engine.Veto(t, n)
}

// CanOpen implements [framework.Outlook].
func (e *metered) CanOpen(t *cluster.Task, n *cluster.Node) bool {
	e.model.step(true)
	return e.Engine.CanOpen(t, n)
}
