package nodes_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"hekla.sh/hekla/internal/cohorts/nodes"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/plugins/nodeorder"
	"hekla.sh/hekla/pkg/plugins/predicates"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// spot is a flavor of nodes with a label.
var spot = &workload.Flavor{Name: "spot", NodeLabels: map[string]string{"kind": "spot"},
	Tolerations: []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}}}

// newModel has two nodes with two cores each, one of them of the flavor spot.
func newModel(t *testing.T) *harness.Model {
	h := harness.ForPlugins(t, harness.Entry{Factory: predicates.Factory()}, harness.Entry{Factory: nodeorder.Factory()}).Placing()
	n := fixture.Node("spot-1", "cpu=2")
	n.Labels["kind"] = "spot"
	return h.Set(fixture.Node("plain-1", "cpu=2"), n)
}

// ask makes a Workload of some pods of one core, and what is to be placed of it.
func ask(name string, pods int32, flavors ...*workload.Flavor) (*workload.Workload, []workload.Part) {
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}}}
	w := &workload.Workload{UID: name, Namespace: fixture.Namespace, Name: name,
		PodSets: []workload.PodSet{{Name: "main", Count: pods, MinCount: pods, Template: template}}}
	return w, []workload.Part{{Count: pods, Flavors: flavors}}
}

// standing is which nodes have how many stand-ins.
func standing(h *harness.Model) string {
	var names []string
	for _, n := range h.Cluster.Nodes() {
		for _, t := range n.Tasks() {
			if t.IsStandIn {
				names = append(names, n.Name)
			}
		}
	}
	return strings.Join(names, " ")
}

func TestPlaces(t *testing.T) {
	for name, test := range map[string]struct {
		pods     int32
		flavors  []*workload.Flavor
		can, not bool // now, and if the nodes were empty
	}{
		"all nodes":                      {3, nil, true, false},
		"more than is free":              {4, nil, false, false},
		"more than there is":             {5, nil, false, true},
		"the nodes of a flavor":          {2, []*workload.Flavor{spot}, true, false},
		"more than the flavor has nodes": {3, []*workload.Flavor{spot}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newModel(t).Set(fixture.Pod("other", fixture.Asks("cpu=1"), fixture.On("plain-1")))
			p := nodes.New(h.Open(), &nodes.Forms{})
			w, parts := ask("w", test.pods, test.flavors...)
			if can, could := p.CanPlace(w, parts), p.CouldPlace(w, parts); can != test.can || could == test.not {
				t.Errorf("it fits now: %t, on empty nodes: %t", can, could)
			}
			p.End()
			if got := standing(h); got != "" {
				t.Errorf("after the questions there are stand-ins on %s", got)
			}
			h.Check()
		})
	}

	t.Run("what is promised is kept", func(t *testing.T) {
		h := newModel(t)
		p := nodes.New(h.Open(), &nodes.Forms{})
		w, parts := ask("w", 2, spot)
		if !p.Promise(w, parts) {
			t.Fatal("nothing is promised")
		}
		p.Keep()
		other, more := ask("other", 3)
		if p.CanPlace(other, more) {
			t.Error("another Workload fits next to the stand-ins")
		}
		p.End()
		if got := standing(h); got != "spot-1 spot-1" {
			t.Errorf("the stand-ins are on %s", got)
		}
		h.Check()
	})

	t.Run("while one has left its nodes count as free", func(t *testing.T) {
		h := newModel(t)
		p := nodes.New(h.Open(), &nodes.Forms{})
		victim, held := ask("victim", 4)
		p.Promise(victim, held)
		p.Keep()
		w, parts := ask("w", 3)
		p.Leave(victim)
		fits := p.CanPlace(w, parts)
		p.Return(victim)
		if !fits || p.CanPlace(w, parts) || !p.Opens(victim, w, parts) {
			t.Errorf("it fits meanwhile: %t, and afterwards: %t", fits, p.CanPlace(w, parts))
		}
		p.End()
		h.Check()
	})

	t.Run("a refusal says what nodes lack", func(t *testing.T) {
		h := newModel(t)
		p := nodes.New(h.Open(), &nodes.Forms{})
		w, parts := ask("w", 3, spot)
		if left, why := p.Left(w, parts); left != 1 || !strings.Contains(why, "Insufficient cpu") {
			t.Errorf("without a node are %d pods: %s", left, why)
		}
		p.End()
	})
}

func TestFormsOfStandIns(t *testing.T) {
	w, parts := ask("w", 2, spot)
	w.PodSets[0].Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}, {Name: "own"}}
	parts[0].Added = &workload.Addition{NodeSelector: map[string]string{"zone": "a"}}
	var forms nodes.Forms
	index := resources.NewIndex()
	form := forms.Of(index, w, &parts[0])
	selector := form.Spec.NodeSelector
	if selector["kind"] != "spot" || selector["zone"] != "a" {
		t.Errorf("the nodes are selected by %v", selector)
	}
	if again := forms.Of(index, w, &parts[0]); again != form {
		t.Error("the form is made a second time")
	}
}

func TestFormsThatAreNotAskedForAreDropped(t *testing.T) {
	w, parts := ask("w", 1)
	other, otherParts := ask("other", 1)
	var forms nodes.Forms
	index, now := resources.NewIndex(), fixture.Birth
	forms.Age(now)
	asked, dropped := forms.Of(index, w, &parts[0]), forms.Of(index, other, &otherParts[0])
	for range 5 * 60 { // minutes
		now = now.Add(time.Minute)
		forms.Age(now)
		if forms.Of(index, w, &parts[0]) != asked {
			t.Fatalf("%s after its making a form is gone that is asked for each minute", now.Sub(fixture.Birth))
		}
	}
	if forms.Of(index, other, &otherParts[0]) == dropped {
		t.Error("a form is kept that was not asked for for hours")
	}
}
