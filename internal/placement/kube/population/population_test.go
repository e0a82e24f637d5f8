package population

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/placement/kube/domains"
	"hekla.sh/hekla/test/fixture"
)

func residentOf(pod *corev1.Pod) *Pod {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		panic(err)
	}
	return &Pod{PodInfo: info}
}

// wantsOf is what a class selects.
func wantsOf(class *corev1.Pod, namespaces []*corev1.Namespace) []domains.Want {
	policy := domains.Policy{FiltersSpread: true, FiltersAffinity: true, SpreadWeight: 1, AffinityWeight: 1}
	return domains.New(class, policy, &domains.Topology{}, namespaces).Wants()
}

// found are the names of the pods that a search finds, sorted.
func (p *Population) found(class *corev1.Pod) (names []string) {
	p.Search(class, wantsOf(class, nil), func(r *Pod) { names = append(names, r.GetPod().Name) })
	slices.Sort(names)
	return names
}

func ExamplePopulation() {
	p := New()
	for i := range 100 {
		p.Add(residentOf(fixture.Pod(fmt.Sprint("pod-", i), fixture.Labelled("app", fmt.Sprint(i%50)))))
	}
	p.Add(residentOf(fixture.Pod("alone", fixture.ApartFrom("app", "web"))))
	p.Add(residentOf(fixture.Pod("other", fixture.ApartFrom("app", "db"))))
	fmt.Println(p.found(fixture.Pod("waits", fixture.Labelled("app", "web"), fixture.Near("app", "7"))))
	// Output: [alone pod-57 pod-7]
}

// namespaces are those of the property test. The class is in the first.
var namespaces = []*corev1.Namespace{
	{ObjectMeta: metav1.ObjectMeta{Name: fixture.Namespace, Labels: map[string]string{"team": "red"}}},
	{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{"team": "blue"}}},
}

// drawPod draws a pod with labels of a few and with terms about such labels.
func drawPod(r *rapid.T, name string) *corev1.Pod {
	value := rapid.SampledFrom([]string{"1", "2", "3"})
	key := rapid.SampledFrom([]string{"app", "tier"})
	p := fixture.Pod(name)
	p.Namespace = rapid.SampledFrom(namespaces).Draw(r, "namespace").Name
	for range rapid.IntRange(0, 2).Draw(r, "labels") {
		p.Labels[key.Draw(r, "key")] = value.Draw(r, "value")
	}
	term := rapid.Custom(func(r *rapid.T) corev1.PodAffinityTerm {
		t := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{}}
		switch rapid.IntRange(0, 4).Draw(r, "selector") {
		case 0: // selects all
		case 1:
			t.LabelSelector.MatchLabels = map[string]string{"app": value.Draw(r, "value"), "tier": value.Draw(r, "value")}
		case 2:
			t.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: key.Draw(r, "key"), Operator: metav1.LabelSelectorOpNotIn, Values: []string{value.Draw(r, "value")}}}
		case 3:
			t.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: key.Draw(r, "key"), Operator: metav1.LabelSelectorOpIn, Values: []string{value.Draw(r, "value"), value.Draw(r, "another")}}}
		case 4:
			t.LabelSelector.MatchLabels = map[string]string{key.Draw(r, "key"): value.Draw(r, "value")}
		}
		switch rapid.IntRange(0, 3).Draw(r, "of") {
		case 1:
			t.Namespaces = []string{"other"}
		case 2:
			t.NamespaceSelector = &metav1.LabelSelector{}
		case 3:
			t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": rapid.SampledFrom([]string{"red", "blue"}).Draw(r, "team")}}
		}
		return t
	})
	terms := func(of string) (required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for range rapid.IntRange(0, 1).Draw(r, of) {
			required = append(required, term.Draw(r, "required"))
		}
		for range rapid.IntRange(0, 1).Draw(r, of) {
			preferred = append(preferred, corev1.WeightedPodAffinityTerm{Weight: 1, PodAffinityTerm: term.Draw(r, "preferred")})
		}
		return required, preferred
	}
	near, apart := &corev1.PodAffinity{}, &corev1.PodAntiAffinity{}
	near.RequiredDuringSchedulingIgnoredDuringExecution, near.PreferredDuringSchedulingIgnoredDuringExecution = terms("near")
	apart.RequiredDuringSchedulingIgnoredDuringExecution, apart.PreferredDuringSchedulingIgnoredDuringExecution = terms("apart")
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: near, PodAntiAffinity: apart}
	return p
}

// mustFind reports whether a class selects a pod, or the pod has a term about the class.
func mustFind(class *corev1.Pod, wants []domains.Want, r *Pod) bool {
	pod := r.GetPod()
	isWanted := slices.ContainsFunc(wants, func(w domains.Want) bool {
		return (w.Namespaces == nil || w.Namespaces.Has(pod.Namespace)) && w.Selector.Matches(labels.Set(pod.Labels))
	})
	isAbout := func(t fwk.AffinityTerm) bool { return t.Matches(class, namespaces[0].Labels) }
	isAboutWeighted := func(t fwk.WeightedAffinityTerm) bool { return isAbout(t.AffinityTerm) }
	return isWanted || slices.ContainsFunc(r.GetRequiredAffinityTerms(), isAbout) || slices.ContainsFunc(r.GetRequiredAntiAffinityTerms(), isAbout) ||
		slices.ContainsFunc(r.GetPreferredAffinityTerms(), isAboutWeighted) || slices.ContainsFunc(r.GetPreferredAntiAffinityTerms(), isAboutWeighted)
}

// audit says what is wrong with the numbers that a population keeps of its indexes, "" if nothing is.
func (p *Population) audit() string {
	indexed, pods := 0, 0
	for name, s := range p.spaces {
		pods += len(s.pods)
		having := map[string]int{}
		for r := range s.pods {
			for key := range r.GetPod().Labels {
				having[key]++
			}
		}
		if !maps.Equal(having, s.having) || len(s.pods) == 0 {
			return fmt.Sprintf("of namespace %s it counts labels %v of %d pods, want %v", name, s.having, len(s.pods), having)
		}
		for key, values := range s.byLabel {
			for value, pods := range values {
				if indexed += len(pods); len(pods) == 0 {
					return fmt.Sprintf("there is an index of no pods of %s=%s", key, value)
				}
			}
		}
	}
	if pods != p.pods {
		return fmt.Sprintf("it counts %d pods, and there are %d", p.pods, pods)
	}
	if indexed != p.indexed {
		return fmt.Sprintf("it counts %d pods in indexes by label, and there are %d", p.indexed, indexed)
	}
	return ""
}

func TestASearchFindsEveryPodThatMattersOnce(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p, here, next := New(), []*Pod{}, 0
		add := func(pod *corev1.Pod) {
			here = append(here, residentOf(pod))
			p.Add(here[len(here)-1])
			next++
		}
		if rapid.Bool().Draw(r, "many") { // so many that indexes are made
			for i := range 2 * fewPods {
				pod := fixture.Pod(fmt.Sprint("filler-", i), fixture.Labelled("app", "filler"))
				pod.Namespace = namespaces[i%2].Name
				add(pod)
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"add": func(r *rapid.T) { add(drawPod(r, fmt.Sprint("p-", next))) },
			"remove": func(r *rapid.T) {
				if len(here) == 0 {
					return
				}
				i := rapid.IntRange(0, len(here)-1).Draw(r, "pod")
				p.Remove(here[i])
				here = slices.Delete(here, i, i+1)
			},
			"search": func(r *rapid.T) {
				class := drawPod(r, "class")
				class.Namespace = fixture.Namespace
				wants, times := wantsOf(class, namespaces), map[*Pod]int{}
				p.Search(class, wants, func(r *Pod) { times[r]++ })
				for _, one := range here {
					if times[one] > 1 || times[one] == 0 && mustFind(class, wants, one) {
						r.Fatalf("pod %+v is found %d times for %+v", one.GetPod(), times[one], class)
					}
					delete(times, one)
				}
				if len(times) > 0 {
					r.Fatalf("%d pods are found that are gone", len(times))
				}
			},
			"": func(r *rapid.T) {
				if wrong := p.audit(); wrong != "" {
					r.Fatal(wrong)
				}
			},
		})
	})
}

func TestTheSizeOfIndexesIsBounded(t *testing.T) {
	p := New()
	for i := range 2 * fewPods {
		p.Add(residentOf(fixture.Pod(fmt.Sprint("pod-", i), fixture.Labelled("app", fmt.Sprint(i)), fixture.Labelled("tier", "x"))))
	}
	if p.indexed != 0 {
		t.Fatalf("%d pods are in indexes before one is asked for", p.indexed)
	}
	find := func(key, value string, want int) {
		t.Helper()
		if found := p.found(fixture.Pod("waits", fixture.Near(key, value))); len(found) != want {
			t.Errorf("with %s=%s are found %v, want %d", key, value, found, want)
		}
	}
	find("app", "7", 1)
	find("none", "7", 0)
	if p.indexed != 2*fewPods {
		t.Errorf("%d pods are in indexes, and %d have the label that was asked for", p.indexed, 2*fewPods)
	}
	p.indexed = maxIndexed // as if there were others
	find("tier", "x", 2*fewPods)
	if wrong := p.audit(); wrong != "" || p.indexed != 2*fewPods {
		t.Errorf("beyond the bound %d pods are in indexes: %s", p.indexed, wrong)
	}
	find("app", "7", 1)
}

func TestWhoIsTooFarBehindIsTold(t *testing.T) {
	p := New()
	p.pods = maxChanges // as if there were so many
	begin := p.End()
	for i := range int32(maxChanges) {
		p.Note(Change{Slot: i, By: +1})
	}
	if changes, ok := p.Since(begin); !ok || len(changes) != maxChanges || changes[5].Slot != 5 {
		t.Fatalf("of %d changes are kept %d: %t", maxChanges, len(changes), ok)
	}
	position := p.End()
	p.Note(Change{Slot: -1, By: -1})
	if changes, ok := p.Since(position); !ok || !slices.Equal(changes, []Change{{Slot: -1, By: -1}}) {
		t.Errorf("since then there are the changes %v: %t", changes, ok)
	}
	if changes, ok := p.Since(p.End()); !ok || len(changes) != 0 {
		t.Errorf("at the end there are the changes %v: %t", changes, ok)
	}
	if changes, ok := p.Since(begin); ok {
		t.Errorf("%d changes are said to be all, and %d were noted", len(changes), maxChanges+1)
	}
}

func TestPodsThatAreGoneAreNotKeptForTheirChanges(t *testing.T) {
	p := New()
	for i := range 1 << 10 {
		pod := residentOf(fixture.Pod(fmt.Sprint("pod-", i)))
		p.Add(pod)
		p.Note(Change{Pod: pod.PodInfo, By: +1})
		p.Note(Change{Pod: pod.PodInfo, By: -1})
		p.Remove(pod)
	}
	kept := 0
	for _, c := range p.changes[:cap(p.changes)] {
		if c.Pod != nil {
			kept++
		}
	}
	if most := 2 * Worth(1, 1); kept > most {
		t.Errorf("of pods that come and go one by one %d changes are kept, at most %d may be", kept, most)
	}
	position := p.End()
	for range Worth(0, 1) {
		p.Note(Change{By: +1})
	}
	if changes, ok := p.Since(position); !ok || len(changes) != Worth(0, 1) {
		t.Errorf("of the changes that are worth to be followed %d are kept: %t", len(changes), ok)
	}
}
