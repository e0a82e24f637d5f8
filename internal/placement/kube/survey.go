package kube

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"hekla.sh/hekla/internal/placement/kube/domains"
	"hekla.sh/hekla/pkg/cluster"
)

// around is the state of a question about pods elsewhere, with its last survey.
type around struct {
	seen  uint64 // how far Cluster.Changes has been followed
	epoch uint64 // the mirror's, when all nodes were looked at; 0 if they never were
	wants []want
	views []*view // by slot, nil where there is no node
	nodes lister  // the views
	// isListed is set if the nodes with terms among them are listed.
	isListed bool

	counts *domains.Counts // by which the filters are answered; nil if one of them cannot read the pod

	state   fwk.CycleState
	refusal string             // of a plugin that cannot read the pod
	filters []fwk.FilterPlugin // those that have a say, where there are no counts

	readable   bool // by the scorers, as far as it was asked for
	surveyed   bool // what follows is true of the pods as they are
	candidates []*cluster.Node
	refusals   []string
	scores     []int64
}

// Survey asks the plugins that look at pods elsewhere, PodTopologySpread and InterPodAffinity, about nodes that pass
// everything else. For each node, it returns why the class does not fit, in the words of kube-scheduler, "" if it does. It
// also returns the plugins' scores times their weights, normalised over the nodes that fit, 0 for a node that is refused.
// The answer is for the current model. It must not be changed, and is valid until the next survey of the question. Asking
// again is cheap if no pod that matters to the class has changed.
func (q *Question) Survey(candidates []*cluster.Node) (refusals []string, scores []int64) {
	a := &q.around
	changed := q.lookAround()
	if !changed && a.surveyed && slices.Equal(candidates, a.candidates) {
		return a.refusals, a.scores
	}
	a.surveyed = true
	a.candidates = append(a.candidates[:0], candidates...)
	q.look(changed, q.answer)
	return a.refusals, a.scores
}

// answer asks the plugins about the candidates.
func (q *Question) answer() {
	a := &q.around
	a.refusals = append(a.refusals[:0], make([]string, len(a.candidates))...)
	a.scores = append(a.scores[:0], make([]int64, len(a.candidates))...)
	left := make([]fwk.NodeInfo, 0, len(a.candidates))
	for i, n := range a.candidates {
		if a.refusals[i] = q.refuse(n); a.refusals[i] == "" {
			left = append(left, a.views[n.Slot])
		}
	}
	q.rate(left)
}

// Around returns why the class does not fit on a node because of pods elsewhere, as [Question.Survey] does. It is cheap if
// no pod that matters to the class has changed.
func (q *Question) Around(n *cluster.Node) (refusal string) {
	a := &q.around
	changed := q.lookAround()
	if changed {
		a.surveyed = false
	}
	q.look(changed, func() {
		refusal = q.refuse(n)
		if refusal == "" && !a.readable {
			var say []scorer
			refusal = q.readScores([]fwk.NodeInfo{a.views[n.Slot]}, &say)
			a.readable = refusal == ""
		}
	})
	return refusal
}

// look shows the plugins the views while a function asks them.
func (q *Question) look(changed bool, ask func()) {
	m, a := q.plugins.mirror, &q.around
	m.shown = &a.nodes
	defer func() { m.shown = &m.own }()
	// Should a plugin panic, the epoch stays unset: the next survey begins anew, and does not take half an answer for a
	// whole one.
	epoch := a.epoch
	a.epoch = 0
	if changed {
		q.prepare()
	}
	ask()
	a.epoch = epoch
}

// refuse returns why the class does not fit on a node because of pods elsewhere.
func (q *Question) refuse(n *cluster.Node) string {
	a := &q.around
	switch {
	case !q.plugins.mirror.of(n).exists():
		return unknown
	case a.refusal != "":
		return a.refusal
	case a.counts == nil:
		return q.plugins.filter(a.filters, a.state, q.pod, a.views[n.Slot])
	}
	for _, filter := range q.plugins.filters[looksAround] {
		if why := a.counts.Refusal(filter.Name(), n.Object); why != "" {
			return why
		}
	}
	return ""
}

// prepare runs PreFilter of the filters.
func (q *Question) prepare() {
	a := &q.around
	a.state, a.refusal, a.filters = framework.NewCycleState(), q.refusal, a.filters[:0]
	if a.counts != nil {
		return
	}
	a.list()
	for _, filter := range q.plugins.filters[looksAround] {
		if a.refusal == "" {
			a.refusal = q.plugins.preFilter(filter, a.state, q.pod, a.nodes.all, &a.filters)
		}
	}
}

// readScores runs PreScore of the scorers, and adds those that do not skip the pod. It returns the message of one that
// fails.
func (q *Question) readScores(left []fwk.NodeInfo, say *[]scorer) string {
	q.around.list()
	for _, s := range q.plugins.scorers[looksAround] {
		if refusal := q.plugins.preScore(s, q.around.state, q.pod, left, say); refusal != "" {
			return refusal
		}
	}
	return ""
}

// rate scores the remaining candidates. A plugin that cannot read the pod refuses them.
func (q *Question) rate(left []fwk.NodeInfo) {
	if len(left) == 0 {
		return
	}
	a := &q.around
	var say []scorer
	if refusal := q.readScores(left, &say); refusal != "" {
		for i := range a.refusals {
			a.refusals[i] = cmp.Or(a.refusals[i], refusal)
		}
		return
	}
	if len(say) == 0 {
		return
	}
	totals := make([]int64, len(left))
	for _, s := range say {
		q.plugins.score(s, a.state, q.pod, left, totals)
	}
	next := 0
	for i := range a.scores {
		if a.refusals[i] == "" {
			a.scores[i] = totals[next]
			next++
		}
	}
}

// view is a node with only those of its pods that matter to a question.
type view struct {
	*framework.NodeInfo
	generation uint64 // of the node, for which the pods are valid
	epoch      uint64 // of the mirror, for which the pods are valid

	known     []fwk.PodInfo   // all pods of the node
	roles     []domains.Role  // what each is to the class
	countedBy *domains.Counts // that hold the pods
	counted   []bool          // by spread constraint of the counts: whether its pods count

	pods, withTerms, withAntiTerms []fwk.PodInfo
}

// GetPods returns the pods on the node that matter.
func (v *view) GetPods() []fwk.PodInfo { return v.pods }

// GetPodsWithAffinity returns those of them whose affinity terms may select the class.
func (v *view) GetPodsWithAffinity() []fwk.PodInfo { return v.withTerms }

// GetPodsWithRequiredAntiAffinity returns those of them whose required anti-affinity may select the class.
func (v *view) GetPodsWithRequiredAntiAffinity() []fwk.PodInfo { return v.withAntiTerms }

// lookAround updates the views and reports whether a change may change an answer.
func (q *Question) lookAround() bool {
	m, a := q.plugins.mirror, &q.around
	m.followPods()
	slots, next, ok := m.cluster.Changes(a.seen)
	a.seen = next
	if a.epoch == m.epoch && ok {
		changed := false
		for _, slot := range slots {
			// A slot beyond the views has a node without an object. With an object, the epoch would have changed.
			if int(slot) < len(a.views) && a.views[slot] != nil && q.sift(a.views[slot], m.bySlot[slot]) {
				changed = true
			}
		}
		a.isListed = a.isListed && !changed
		return changed
	}
	if a.epoch == 0 {
		a.wants = wantsOf(q.pod)
	}
	var filters []string
	for _, filter := range q.plugins.filters[looksAround] {
		filters = append(filters, filter.Name())
	}
	a.counts = domains.New(q.pod, filters, m.cluster.Namespaces(), q.plugins.features)
	a.epoch = m.epoch
	before := a.views
	space := make([]view, len(m.cluster.Nodes())) // one by one they would take half of the time
	a.views = make([]*view, len(m.bySlot))
	a.nodes.all = a.nodes.all[:0]
	for i, n := range m.cluster.Nodes() {
		r := m.bySlot[n.Slot]
		if !r.exists() {
			continue
		}
		v := &space[i]
		v.NodeInfo = r.info
		if n.Slot < len(before) && before[n.Slot] != nil && before[n.Slot].NodeInfo == r.info {
			v = before[n.Slot]
		}
		q.sift(v, r)
		a.views[n.Slot] = v
		a.nodes.all = append(a.nodes.all, v)
	}
	a.isListed = false
	return true
}

// list lists the views that have pods with terms, for plugins that are shown them.
func (a *around) list() {
	if a.isListed {
		return
	}
	a.isListed = true
	a.nodes.withTerms, a.nodes.withAntiTerms = a.nodes.withTerms[:0], a.nodes.withAntiTerms[:0]
	for _, node := range a.nodes.all {
		if len(node.GetPodsWithAffinity()) > 0 {
			a.nodes.withTerms = append(a.nodes.withTerms, node)
		}
		if len(node.GetPodsWithRequiredAntiAffinity()) > 0 {
			a.nodes.withAntiTerms = append(a.nodes.withAntiTerms, node)
		}
	}
}

// sift finds the pods on a node that matter, counts those that have come and gone, and reports whether there are any.
func (q *Question) sift(v *view, r *reflection) bool {
	a := &q.around
	isCounted := v.epoch == a.epoch && v.countedBy == a.counts
	if v.generation == r.pods && isCounted {
		return false
	}
	if !isCounted { // everything is counted anew
		v.known, v.roles = v.known[:0], v.roles[:0]
		if a.counts != nil {
			v.counted = a.counts.Include(v.Node())
		}
	}
	v.generation, v.epoch, v.countedBy = r.pods, a.epoch, a.counts
	hadPods := len(v.pods) > 0
	v.pods, v.withTerms, v.withAntiTerms = v.pods[:0:0], v.withTerms[:0:0], v.withAntiTerms[:0:0]
	isChanged := q.follow(v, r.info.Pods)
	for i, role := range v.roles {
		if role == 0 {
			continue
		}
		v.pods = append(v.pods, v.known[i])
		if role&(domains.Repels|domains.Attracts) != 0 {
			v.withTerms = append(v.withTerms, v.known[i])
		}
		if role&domains.Repels != 0 {
			v.withAntiTerms = append(v.withAntiTerms, v.known[i])
		}
	}
	return isChanged || hadPods && len(v.pods) == 0
}

// follow takes over the pods that are on a node now, and reports whether any that matters has come or gone. Pods mostly keep their places.
func (q *Question) follow(v *view, now []fwk.PodInfo) (isChanged bool) {
	before, roles := v.known, v.roles
	isSame := func(i int) bool { return i < len(now) && i < len(before) && now[i] == before[i] }
	gone, come := map[fwk.PodInfo]domains.Role(nil), []int(nil)
	for i, pod := range before {
		if !isSame(i) && roles[i] != 0 {
			if gone == nil {
				gone = map[fwk.PodInfo]domains.Role{}
			}
			gone[pod] = roles[i]
		}
	}
	for i := range now {
		if !isSame(i) {
			come = append(come, i)
		}
	}
	if len(come) == 0 && len(now) == len(before) {
		return false
	}
	v.known = append(before[:0], now...)
	v.roles = append(roles[:min(len(now), len(roles))], make([]domains.Role, max(0, len(now)-len(roles)))...)
	for _, i := range come {
		if known, ok := gone[now[i]]; ok {
			delete(gone, now[i]) // it has only moved
			v.roles[i] = known
			continue
		}
		if v.roles[i] = q.roleOf(now[i]); v.roles[i] != 0 {
			isChanged = true
			if q.around.counts != nil {
				q.around.counts.Count(v.Node(), v.counted, now[i], v.roles[i], +1)
			}
		}
	}
	for pod, role := range gone { // in any order: these are sums
		isChanged = true
		if q.around.counts != nil {
			q.around.counts.Count(v.Node(), v.counted, pod, role, -1)
		}
	}
	return isChanged
}

// roleOf returns what a pod is to the class.
func (q *Question) roleOf(pod fwk.PodInfo) (r domains.Role) {
	var space labels.Set
	if namespace := q.plugins.mirror.cluster.Namespace(q.pod.Namespace); namespace != nil {
		space = namespace.Labels
	}
	if anyTerm(pod.GetRequiredAntiAffinityTerms(), q.pod, space) {
		r |= domains.Repels
	}
	if anyTerm(pod.GetRequiredAffinityTerms(), q.pod, space) || anyWeightedTerm(pod.GetPreferredAffinityTerms(), q.pod, space) ||
		anyWeightedTerm(pod.GetPreferredAntiAffinityTerms(), q.pod, space) {
		r |= domains.Attracts
	}
	if q.around.asksFor(pod.GetPod()) {
		r |= domains.Asked
	}
	return r
}

// MayScore reports whether the scores of the plugins may differ between nodes.
func (q *Question) MayScore() bool {
	a := &q.around
	if q.lookAround() {
		a.surveyed = false
		q.look(true, func() {})
	}
	if len(q.plugins.scorers[looksAround]) == 0 {
		return false
	}
	if a.counts == nil || a.counts.MayScore() {
		return true
	}
	for i := range q.pod.Spec.TopologySpreadConstraints {
		if q.pod.Spec.TopologySpreadConstraints[i].WhenUnsatisfiable == corev1.ScheduleAnyway {
			return true
		}
	}
	affinity := q.pod.Spec.Affinity
	return affinity != nil && (affinity.PodAffinity != nil && len(affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
		affinity.PodAntiAffinity != nil && len(affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0)
}

func anyTerm(terms []fwk.AffinityTerm, pod *corev1.Pod, space labels.Set) bool {
	for i := range terms {
		if terms[i].Matches(pod, space) {
			return true
		}
	}
	return false
}

func anyWeightedTerm(terms []fwk.WeightedAffinityTerm, pod *corev1.Pod, space labels.Set) bool {
	for i := range terms {
		if terms[i].Matches(pod, space) {
			return true
		}
	}
	return false
}

// want is what a term or constraint of the class selects: pods with some labels in some namespaces.
type want struct {
	selector   labels.Selector
	namespaces sets.Set[string] // nil means any
}

// asksFor reports whether the class may select a pod. If in doubt it says yes.
func (a *around) asksFor(pod *corev1.Pod) bool {
	for i := range a.wants {
		w := &a.wants[i]
		if (w.namespaces == nil || w.namespaces.Has(pod.Namespace)) && w.selector.Matches(labels.Set(pod.Labels)) {
			return true
		}
	}
	return false
}

// wantsOf reads the terms and constraints of a pod. One that cannot be read selects nothing here, and its plugin refuses
// the pod.
func wantsOf(pod *corev1.Pod) []want {
	var wants []want
	add := func(term *fwk.AffinityTerm) {
		w := want{selector: term.Selector, namespaces: term.Namespaces}
		// The namespaces that a selector selects may change, so it counts as any namespace. Without a selector there are
		// none.
		if _, selects := term.NamespaceSelector.Requirements(); selects {
			w.namespaces = nil
		}
		wants = append(wants, w)
	}
	info, _ := framework.NewPodInfo(pod)
	for _, terms := range [][]fwk.AffinityTerm{info.RequiredAffinityTerms, info.RequiredAntiAffinityTerms} {
		for i := range terms {
			add(&terms[i])
		}
	}
	for _, terms := range [][]fwk.WeightedAffinityTerm{info.PreferredAffinityTerms, info.PreferredAntiAffinityTerms} {
		for i := range terms {
			add(&terms[i].AffinityTerm)
		}
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		// Match label keys only narrow what the selector selects.
		selector, err := metav1.LabelSelectorAsSelector(pod.Spec.TopologySpreadConstraints[i].LabelSelector)
		if err == nil {
			wants = append(wants, want{selector: selector, namespaces: sets.New(pod.Namespace)})
		}
	}
	return wants
}
