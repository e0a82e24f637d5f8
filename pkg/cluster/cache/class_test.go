package cache

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func inNamespace(name string) podOption { return func(p *corev1.Pod) { p.Namespace = name } }

func selects(label, value string) podOption {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{label: value} }
}

func tolerates(taint string) podOption {
	return func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: taint}} }
}

func image(name string) podOption {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Image = name }
}

func listensOn(port int32) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: port}}
	}
}

func initListensOn(port int32, stays bool) podOption {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "init", Ports: []corev1.ContainerPort{{HostPort: port}}}}
		if stays {
			p.Spec.InitContainers[0].RestartPolicy = &always
		}
	}
}

func mounts(image string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: image}}}}
	}
}

func spreadBy(label string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone",
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: label, Operator: metav1.LabelSelectorOpExists}}}}}
	}
}

func sameClass(c *Cache, a, b string) bool { return c.Task(key(a)).Class == c.Task(key(b)).Class }

func TestPodsShareAClassExactlyIfTheyAreEqualToPlacement(t *testing.T) {
	for name, test := range map[string]struct {
		a, b podOption
		same bool
	}{
		"equal":                          {asks("cpu=1"), asks("cpu=1000m"), true},
		"names of labels nobody selects": {labelled("a", "1"), labelled("a", "2"), true},
		"gangs and roles":                {in("g"), role("worker"), true},
		"zero and absent, to the node":   {asks("cpu=1 nvidia.com/gpu=0"), asks("cpu=1"), true},
		"ports that are not the host's":  {listensOn(0), asks("cpu=1"), true},
		"ports of what is over by then":  {initListensOn(8080, false), initListensOn(8081, false), true},
		"ports of sidecars":              {initListensOn(8080, true), initListensOn(8081, true), false},
		"images that are mounted":        {mounts("a"), mounts("b"), false},
		"requests":                       {asks("cpu=1"), asks("cpu=2"), false},
		"what balance assumes":           {asks("cpu=1 memory=0"), asks("cpu=1"), false},
		"selectors":                      {selects("zone", "a"), selects("zone", "b"), false},
		"tolerations":                    {tolerates("a"), tolerates("b"), false},
		"images":                         {image("a"), image("b"), false},
		"ports of the host":              {listensOn(8080), listensOn(8081), false},
		"affinity":                       {keepsAwayFrom("app", "a"), keepsAwayFrom("app", "b"), false},
		"the labels their spread counts": {
			func(p *corev1.Pod) { spreadBy("app")(p); labelled("app", "a")(p) },
			func(p *corev1.Pod) { spreadBy("app")(p); labelled("app", "b")(p) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Set{group("g", "")}, Set{pod("a", test.a)}, Set{pod("b", test.b)})
			if have := sameClass(c, "a", "b"); have != test.same {
				t.Errorf("share a class: %t", have)
			}
			sound(t, c)
		})
	}
}

func TestAResourceThatBecomesKnownDoesNotSplitAClass(t *testing.T) {
	c := newCluster(Set{pod("a")}, Set{node("n", "cpu=4 example.com/device=2")}, Set{pod("b")})
	if !sameClass(c, "a", "b") {
		t.Error("two equal pods have two classes, because a resource became known between them")
	}
}

// apart checks that pods a and b, of gang g, which differ in a label only, are told apart by a selector that asks for
// it.
func apart(t *testing.T, c *Cache) {
	t.Helper()
	sound(t, c)
	if sameClass(c, "a", "b") {
		t.Fatal("pods that a selector tells apart share a class")
	}
	for name, want := range map[string]bool{"a": true, "b": false} {
		if have := c.DependsOnPods(c.Task(key(name)).Class); have != want {
			t.Errorf("placing pod %s depends on other pods: %t, want %t", name, have, want)
		}
	}
}

func TestLabelsThatASelectorAsksForTellClassesApart(t *testing.T) {
	a, b := Set{pod("a", in("g"), labelled("app", "a"))}, Set{pod("b", in("g"), labelled("app", "b"))}
	gang, n := Set{group("g", "")}, Set{node("n", "cpu=4")}
	selector := Set{pod("s", keepsAwayFrom("app", "a"))}
	for name, play := range map[string]func(c *Cache){
		"known before the pods": func(c *Cache) { c.Apply(selector, gang, a, b) },
		"known after the pods":  func(c *Cache) { c.Apply(gang, a, b); c.Settle(); c.Apply(selector) },
		"known after the pods, whose gang is late": func(c *Cache) {
			c.Apply(a, b)
			c.Settle()
			c.Apply(selector)
			c.Settle()
			c.Apply(gang)
		},
		"known while pods were assumed, and bindings are refused": func(c *Cache) {
			c.Apply(gang, n, a, b)
			c.Settle()
			c.bind("a", "n")
			c.bind("b", "n")
			c.Apply(selector)
			c.Settle()
			c.Apply(BindFailed{Pod: key("a"), UID: "a-uid", At: birth}, BindFailed{Pod: key("b"), UID: "b-uid", At: birth})
		},
		"known before pods were assumed and resized, and refused": func(c *Cache) {
			c.Apply(selector, gang, n, a, b)
			c.Settle()
			for _, name := range []string{"a", "b"} {
				c.bind(name, "n")
				c.Apply(Set{pod(name, in("g"), labelled("app", name), asks("cpu=2"))})
				c.Apply(BindFailed{Pod: key(name), UID: c.Task(key(name)).UID(), At: birth})
			}
		},
		"forgotten and known again": func(c *Cache) {
			c.Apply(selector, gang, a, b)
			c.Settle()
			c.Apply(Delete(selector))
			c.Settle()
			c.Apply(a, b)
			c.Settle()
			c.Apply(selector)
		},
		"known while the pods were gated": func(c *Cache) {
			c.Apply(gang, Set{pod("a", in("g"), labelled("app", "a"), gated)}, Set{pod("b", in("g"), labelled("app", "b"), gated)})
			c.Settle()
			c.Apply(selector)
			c.Settle()
			c.Apply(a, b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			play(c)
			c.Settle()
			apart(t, c)
		})
	}
}

func TestOnlySelectorsOfTheRightNamespaceMatter(t *testing.T) {
	c := newCluster(Set{pod("s", keepsAwayFrom("app", "a"))}, Set{pod("near", labelled("app", "a"))},
		Set{pod("far", labelled("app", "a"), inNamespace("far"))})
	far := c.Task(podKey(pod("far", inNamespace("far"))))
	if !c.DependsOnPods(c.Task(key("near")).Class) || c.DependsOnPods(far.Class) {
		t.Error("a selector means pods of its own namespace, unless it names others")
	}
}

func TestAResizeKeepsTheConstraintsOfAPodThatIsAssumed(t *testing.T) {
	c := newCluster(Set{node("n", "cpu=4")}, Set{group("g", "")}, Set{pod("p", in("g"), selects("zone", "a"))})
	c.bind("p", "n")
	c.Apply(Set{pod("p", in("g"), selects("zone", "a"), asks("cpu=2"))})
	c.Apply(BindFailed{Pod: key("p"), UID: "p-uid", At: birth})
	c.Apply(Set{pod("twin", in("g"), selects("zone", "a"), asks("cpu=2"))})
	if !sameClass(c, "p", "twin") {
		t.Error("the pod waits again, and is not of the class of an equal pod")
	}
	sound(t, c)
}

func TestAPodKeepsItsClassWhenItGetsItsNode(t *testing.T) {
	c := newCluster(Set{pod("p", selects("zone", "a"))})
	before := c.Task(key("p")).Class
	c.Apply(Set{pod("p", selects("zone", "a"), on("n"))})
	if c.Task(key("p")).Class != before {
		t.Error("the class of a pod changed when it was bound")
	}
	c.Apply(Set{pod("p", selects("zone", "a"), on("n"), asks("cpu=2"))})
	if c.Task(key("p")).Class == before || before.InUse() || c.writer.Classes().Len() != 1 {
		t.Error("a resized pod keeps a class that takes something else")
	}
	c.Apply(Delete{pod("p")})
	if c.writer.Classes().Len() != 0 {
		t.Error("a class that nobody has is kept")
	}
}

func TestATermMattersWhileAPodThatIsNotOverHasIt(t *testing.T) {
	match := func(c *Cache) bool { return c.DependsOnPods(c.Task(key("p")).Class) }
	c := newCluster(Set{pod("p", labelled("app", "a"))}, Set{pod("s", keepsAwayFrom("app", "a"), on("n"))},
		Set{pod("r", keepsAwayFrom("app", "a"), on("n"))})
	c.Apply(Delete{pod("r")})
	if !match(c) {
		t.Error("a term that one of two pods still has is forgotten")
	}
	c.Apply(Set{pod("s", keepsAwayFrom("app", "a"), on("n"), phase(corev1.PodSucceeded))})
	if match(c) {
		t.Error("the term of a pod that is over still matters")
	}
	sound(t, c)
}

func TestAnUpdateThatKeepsTheTermsOfAPodWakesNoJob(t *testing.T) {
	c := newCluster(Set{pod("s", keepsAwayFrom("app", "a"))}, Set{pod("p", labelled("app", "a"))})
	c.Apply(Set{pod("s", keepsAwayFrom("app", "a"), on("n"))})
	if c.writer.Classes().IsStale {
		t.Error("the classes are worked out again, though no term came or went")
	}
	c.Settle()
	if !c.DependsOnPods(c.Task(key("p")).Class) {
		t.Error("the term is forgotten")
	}
}
