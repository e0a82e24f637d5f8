package domains_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/placement/kube/domains"
	"hekla.sh/hekla/test/fixture"
)

const (
	host      = corev1.LabelHostname
	notNear   = "node(s) didn't match pod affinity rules"
	notApart  = "node(s) didn't match pod anti-affinity rules"
	unwelcome = "node(s) didn't satisfy existing pods anti-affinity rules"
	uneven    = "node(s) didn't match pod topology spread constraints"
	noDomain  = "node(s) didn't match pod topology spread constraints (missing required label)"
)

// policy has both plugins filter and score.
var policy = domains.Policy{FiltersSpread: true, FiltersAffinity: true, SpreadWeight: 2, AffinityWeight: 2}

func infoOf(pod *corev1.Pod) *framework.PodInfo {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		panic(err)
	}
	return info
}

func ExampleCounts() {
	var topology domains.Topology
	nodes := []*corev1.Node{fixture.Node("a1", "", fixture.InZone("a")), fixture.Node("a2", "", fixture.InZone("a")), fixture.Node("b1", "", fixture.InZone("b"))}
	for slot, node := range nodes {
		topology.Show(slot, node)
	}
	class := fixture.Pod("waits", fixture.Labelled("app", "web"), fixture.Spreading("zone", "web"))
	counts := domains.New(class, policy, &topology, nil)
	counts.CountNodes()
	counts.Count(nodes[0], 0, infoOf(fixture.Pod("runs", fixture.Labelled("app", "web"))), +1)
	for slot, node := range nodes {
		fmt.Printf("%s: %q\n", node.Name, counts.Refusal(int32(slot)))
	}
	// Output:
	// a1: "node(s) didn't match pod topology spread constraints"
	// a2: "node(s) didn't match pod topology spread constraints"
	// b1: ""
}

// rule is what a pod of an app demands of the pods of another in its domains.
type rule struct{ app, key string }

// demands are those of a pod. The soft ones only matter to scores.
type demands struct {
	app                             string
	near, apart, spread             []rule
	softNear, softApart, softSpread []rule
}

func (d demands) pod() *corev1.Pod {
	p := fixture.Pod("p", fixture.Labelled("app", d.app))
	near, apart := &corev1.PodAffinity{}, &corev1.PodAntiAffinity{}
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: near, PodAntiAffinity: apart}
	term := func(r rule) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: r.key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": r.app}}}
	}
	weighted := func(rules []rule, weight int32) (terms []corev1.WeightedPodAffinityTerm) {
		for _, r := range rules {
			terms = append(terms, corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: term(r)})
		}
		return terms
	}
	for _, r := range d.near {
		near.RequiredDuringSchedulingIgnoredDuringExecution = append(near.RequiredDuringSchedulingIgnoredDuringExecution, term(r))
	}
	for _, r := range d.apart {
		apart.RequiredDuringSchedulingIgnoredDuringExecution = append(apart.RequiredDuringSchedulingIgnoredDuringExecution, term(r))
	}
	near.PreferredDuringSchedulingIgnoredDuringExecution = weighted(d.softNear, 5)
	apart.PreferredDuringSchedulingIgnoredDuringExecution = weighted(d.softApart, 3)
	for _, r := range d.spread {
		fixture.Spreading(r.key, r.app)(p)
	}
	for _, r := range d.softSpread {
		fixture.Spreading(r.key, r.app)(p)
		p.Spec.TopologySpreadConstraints[len(p.Spec.TopologySpreadConstraints)-1].WhenUnsatisfiable = corev1.ScheduleAnyway
	}
	return p
}

func drawDemands(r *rapid.T, name string) demands {
	app := rapid.SampledFrom([]string{"x", "y"})
	rules := func(of string, most int, keys ...string) []rule {
		return rapid.SliceOfN(rapid.Custom(func(r *rapid.T) rule { return rule{app.Draw(r, "app"), rapid.SampledFrom(keys).Draw(r, "key")} }), 0, most).Draw(r, name+of)
	}
	// Of one key there is one spread constraint, as the API server has it.
	once := func(all []rule) []rule {
		return slices.CompactFunc(slices.SortedFunc(slices.Values(all), func(a, b rule) int { return len(a.key) - len(b.key) }), func(a, b rule) bool { return a.key == b.key })
	}
	return demands{app: app.Draw(r, name), near: rules(" is near", 1, "zone", host), apart: rules(" is apart from", 1, "zone", host),
		spread: once(rules(" is spread from", 2, "zone", host)), softNear: rules(" likes", 2, "zone", host), softApart: rules(" avoids", 2, "zone", host),
		softSpread: once(rules(" is best spread from", 2, "zone", host))}
}

// standing is a pod on a node.
type standing struct {
	demands
	info *framework.PodInfo
	slot int32
}

// plain is a cluster of which everything is counted again for each question.
type plain struct {
	nodes []*corev1.Node
	pods  []standing
}

// inDomain counts the pods in the domain of a node.
func (p *plain) inDomain(node *corev1.Node, key string, counts func(standing) bool) (pods int) {
	for _, s := range p.pods {
		if value, is := p.nodes[s.slot].Labels[key]; is && value == node.Labels[key] && counts(s) {
			pods++
		}
	}
	return pods
}

// refusal is why a pod may not be on a node, as the pages of Kubernetes say it.
func (p *plain) refusal(d demands, node *corev1.Node) string {
	hasAll := func(n *corev1.Node, rules []rule) bool {
		return !slices.ContainsFunc(rules, func(r rule) bool { _, is := n.Labels[r.key]; return !is })
	}
	if !hasAll(node, d.spread) {
		return noDomain
	}
	for _, r := range d.spread {
		ofApp := func(s standing) bool { return s.app == r.app && hasAll(p.nodes[s.slot], d.spread) }
		least, isAny := 0, false
		for _, n := range p.nodes {
			if hasAll(n, d.spread) {
				if pods := p.inDomain(n, r.key, ofApp); !isAny || pods < least {
					least, isAny = pods, true
				}
			}
		}
		own := 0
		if d.app == r.app {
			own = 1
		}
		if p.inDomain(node, r.key, ofApp)+own-least > 1 {
			return uneven
		}
	}
	for _, r := range d.near {
		if _, is := node.Labels[r.key]; !is {
			return notNear
		}
		ofApp := func(s standing) bool { return s.app == r.app }
		isFirst := d.app == r.app && !slices.ContainsFunc(p.pods, func(s standing) bool { _, is := p.nodes[s.slot].Labels[r.key]; return is && ofApp(s) })
		if !isFirst && p.inDomain(node, r.key, ofApp) == 0 {
			return notNear
		}
	}
	for _, r := range d.apart {
		if p.inDomain(node, r.key, func(s standing) bool { return s.app == r.app }) > 0 {
			return notApart
		}
	}
	for _, key := range []string{"zone", host} {
		if p.inDomain(node, key, func(s standing) bool { return slices.Contains(s.apart, rule{d.app, key}) }) > 0 {
			return unwelcome
		}
	}
	return ""
}

// Counts that follow each pod say what counting all of them again says, and one node of a group is rated as all of it.
func TestCountsThatFollowPodsAreThoseOfAPlainLoop(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var topology domains.Topology
		p := &plain{}
		for slot := range rapid.IntRange(2, 7).Draw(r, "nodes") {
			node := fixture.Node(fmt.Sprint("n", slot), "")
			if zone := rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(r, "zone"); zone != "" {
				fixture.InZone(zone)(node)
			}
			p.nodes = append(p.nodes, node)
			topology.Show(slot, node)
		}
		class := drawDemands(r, "class")
		counts := domains.New(class.pod(), policy, &topology, nil)
		counts.CountNodes()
		groupOf := func(slot int) string { return string(counts.Group(int32(slot), nil)) }
		// change counts a pod, which may only change the group of its own node.
		change := func(r *rapid.T, s standing, by int32) {
			var before []string
			for slot := range p.nodes {
				before = append(before, groupOf(slot))
			}
			version := counts.Version()
			counts.Count(p.nodes[s.slot], s.slot, s.info, by)
			for slot := range p.nodes {
				if slot != int(s.slot) && counts.Version() == version && groupOf(slot) != before[slot] {
					r.Fatalf("with a pod on %s the group of %s changes", p.nodes[s.slot].Name, p.nodes[slot].Name)
				}
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"a pod comes": func(r *rapid.T) {
				s := standing{demands: drawDemands(r, "pod"), slot: rapid.Int32Range(0, int32(len(p.nodes)-1)).Draw(r, "slot")}
				s.info = infoOf(s.pod())
				p.pods = append(p.pods, s)
				change(r, s, +1)
			},
			"a pod goes": func(r *rapid.T) {
				if len(p.pods) == 0 {
					return
				}
				i := rapid.IntRange(0, len(p.pods)-1).Draw(r, "pod")
				s := p.pods[i]
				p.pods = slices.Delete(p.pods, i, i+1)
				change(r, s, -1)
			},
			"a node moves to another zone": func(r *rapid.T) {
				slot := rapid.IntRange(0, len(p.nodes)-1).Draw(r, "slot")
				count := func(by int32) {
					if by > 0 {
						counts.CountNode(p.nodes[slot], by)
					}
					for _, s := range p.pods {
						if s.slot == int32(slot) {
							counts.Count(p.nodes[slot], s.slot, s.info, by)
						}
					}
					if by < 0 {
						counts.CountNode(p.nodes[slot], by)
					}
				}
				count(-1)
				p.nodes[slot] = fixture.Node(p.nodes[slot].Name, "", fixture.InZone(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(r, "zone")))
				topology.Show(slot, p.nodes[slot])
				count(+1)
			},
			"": func(r *rapid.T) {
				numbers, groups, each := map[string]int{}, []domains.Front{}, make([]domains.Front, len(p.nodes))
				for slot, node := range p.nodes {
					if got, want := counts.Refusal(int32(slot)), p.refusal(class, node); got != want {
						r.Fatalf("node %s is refused by %q, want %q\nclass %+v", node.Name, got, want, class)
					}
					each[slot] = domains.Front{Slot: int32(slot), Nodes: 1}
					number, isKnown := numbers[groupOf(slot)]
					if !isKnown {
						number = len(groups)
						numbers[groupOf(slot)] = number
						groups = append(groups, domains.Front{Slot: int32(slot)})
					}
					groups[number].Nodes++
				}
				counts.Rate(each)
				counts.Rate(groups)
				for slot, node := range p.nodes {
					own, group := each[slot], groups[numbers[groupOf(slot)]]
					if own.IsRefused != (p.refusal(class, node) != "") || own.IsRefused != group.IsRefused || own.Score != group.Score {
						r.Fatalf("node %s is rated %+v, and its group %+v\nclass %+v", node.Name, own, group, class)
					}
				}
			},
		})
	})
}

func TestANodeScoresByThePodsInItsDomains(t *testing.T) {
	var topology domains.Topology
	nodes := []*corev1.Node{fixture.Node("a", "", fixture.InZone("a")), fixture.Node("b", "", fixture.InZone("b")), fixture.Node("c", "", fixture.InZone("c"))}
	for slot, node := range nodes {
		topology.Show(slot, node)
	}
	for name, test := range map[string]struct {
		class demands
		want  []int64 // with a pod of x on node a and one of y on node b, of at most 200
	}{
		"near some":               {demands{softNear: []rule{{"x", "zone"}}}, []int64{200, 0, 0}},
		"apart from some":         {demands{softApart: []rule{{"y", "zone"}}}, []int64{200, 0, 200}},
		"near some and from some": {demands{softNear: []rule{{"x", "zone"}}, softApart: []rule{{"y", "zone"}}}, []int64{200, 0, 74}},
		"spread":                  {demands{softSpread: []rule{{"x", "zone"}}}, []int64{0, 200, 200}},
		"whatever is there":       {demands{}, []int64{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			counts := domains.New(test.class.pod(), policy, &topology, nil)
			counts.CountNodes()
			for slot, app := range []string{"x", "y"} {
				counts.Count(nodes[slot], int32(slot), infoOf(demands{app: app}.pod()), +1)
			}
			fronts := []domains.Front{{Slot: 0, Nodes: 1}, {Slot: 1, Nodes: 1}, {Slot: 2, Nodes: 1}}
			counts.Rate(fronts)
			for i, want := range test.want {
				if fronts[i].Score != want {
					t.Errorf("node %s scores %d, want %d", nodes[i].Name, fronts[i].Score, want)
				}
			}
		})
	}
}

// A class that looks at hostnames has a group of the nodes without its pods, and one of those with one.
func TestNodesWithDomainsForThemselvesFallIntoFewGroups(t *testing.T) {
	var topology domains.Topology
	var nodes []*corev1.Node
	for slot := range 10 {
		nodes = append(nodes, fixture.Node(fmt.Sprint("n", slot), ""))
		topology.Show(slot, nodes[slot])
	}
	class := demands{app: "x", apart: []rule{{"x", host}}, softSpread: []rule{{"x", host}}}
	counts := domains.New(class.pod(), policy, &topology, nil)
	for slot := range 3 {
		counts.Count(nodes[slot], int32(slot), infoOf(class.pod()), +1)
	}
	groups := map[string]int{}
	for slot := range nodes {
		groups[string(counts.Group(int32(slot), nil))]++
	}
	if sizes := slices.Sorted(maps.Values(groups)); !slices.Equal(sizes, []int{3, 7}) {
		t.Errorf("ten nodes, of which three have a pod, are in groups of %v", sizes)
	}
}

func TestATermIsAboutTheNamespacesThatThereWere(t *testing.T) {
	space := func(name, team string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}
	}
	class := fixture.Pod("waits", fixture.ApartFrom("app", "x"))
	class.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}
	other := fixture.Pod("runs", fixture.Labelled("app", "x"))
	other.Namespace = "other"
	for team, want := range map[string]string{"red": notApart, "blue": ""} {
		var topology domains.Topology
		node := fixture.Node("n", "")
		topology.Show(0, node)
		counts := domains.New(class, policy, &topology, []*corev1.Namespace{space("other", team)})
		if matters := counts.Count(node, 0, infoOf(other), +1); matters != (want != "") {
			t.Errorf("that a pod of team %s matters is %t", team, matters)
		}
		if got := counts.Refusal(0); got != want {
			t.Errorf("with a pod of team %s the node is refused by %q, want %q", team, got, want)
		}
		isWanted := slices.ContainsFunc(counts.Wants(), func(w domains.Want) bool {
			return w.Namespaces.Has("other") && w.Selector.Matches(labels.Set(other.Labels))
		})
		if isWanted != (want != "") {
			t.Errorf("that the class wants pods of team %s is %t", team, isWanted)
		}
	}
}

// A pod that another scheduler has nominated to a node may never come.
func TestAPodThatMayNeverComeKeepsAwayAndHelpsNone(t *testing.T) {
	for name, test := range map[string]struct {
		class, nominee demands
		want           string
	}{
		"the class keeps away from it": {demands{apart: []rule{{"x", host}}}, demands{app: "x"}, notApart},
		"it keeps the class away":      {demands{app: "x"}, demands{apart: []rule{{"x", host}}}, unwelcome},
		"it draws none":                {demands{near: []rule{{"x", host}}}, demands{app: "x"}, notNear},
		"it evens nothing out":         {demands{app: "x", spread: []rule{{"x", host}}}, demands{app: "x"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var topology domains.Topology
			nodes := []*corev1.Node{fixture.Node("n", ""), fixture.Node("other", "")}
			for slot, node := range nodes {
				topology.Show(slot, node)
			}
			counts := domains.New(test.class.pod(), policy, &topology, nil)
			counts.CountNodes()
			before := counts.Refusal(0)
			counts.CountRepelling(nodes[0], infoOf(test.nominee.pod()), +1)
			if got := counts.Refusal(0); got != test.want {
				t.Errorf("the node is refused by %q, want %q", got, test.want)
			}
			counts.CountRepelling(nodes[0], infoOf(test.nominee.pod()), -1)
			if got := counts.Refusal(0); got != before {
				t.Errorf("without it the node is refused by %q, before it was %q", got, before)
			}
		})
	}
}

func TestAPodWithTooManyTermsIsNamed(t *testing.T) {
	with := func(keys, values int) *corev1.Pod {
		p := fixture.Pod("p")
		for i := range keys {
			fixture.Spreading(fmt.Sprint("key-", i), "x")(p)
		}
		if keys > 0 && values > 0 {
			p.Spec.TopologySpreadConstraints[0].LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
				{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: make([]string, values)}}
		}
		return p
	}
	const each = 2 // a constraint, and the label that it selects by
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"none":           {with(0, 0), ""},
		"as many keys":   {with(domains.MaxKeys, 0), ""},
		"more keys":      {with(domains.MaxKeys+1, 0), "pod has 65 topology keys in its affinity and spread constraints, and may have 64"},
		"as many values": {with(1, domains.MaxTerms-each-1), ""},
		"more values":    {with(1, domains.MaxTerms-each), "pod has 257 terms, namespaces, expressions and values in its affinity and spread constraints, and may have 256"},
	} {
		if got := domains.TooMuch(test.pod); got != test.want {
			t.Errorf("%s: it is said %q, want %q", name, got, test.want)
		}
	}
}
