package statuses_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// A number in the message of a waiting gang changes every second for ten minutes: on the node less and less is free.
func TestAMessageWithOtherNumbersIsWrittenAtGrowingPauses(t *testing.T) {
	w := loop.New(t, "").Set(fixture.Node("n1", "cpu=1000"), fixture.Gang("g", "default", 2, 2, fixture.Asks("cpu=2000")))
	w.Cycle()
	var groups, pods []time.Duration
	began := w.Now
	for i := range 600 {
		w.Set(fixture.Node("n1", fmt.Sprintf("cpu=%d", 900-i)))
		w.Scheduler.Cache().Reconsider() // a node that shrinks wakes no job
		d := w.Cycle()
		for range d.Groups {
			groups = append(groups, w.Now.Sub(began).Round(time.Second))
		}
		for range d.Pods {
			pods = append(pods, w.Now.Sub(began))
		}
	}
	if len(groups) < 4 || len(groups) > 8 || len(pods) > 4 {
		t.Errorf("in ten minutes the PodGroup is written at %v, and its pods at %v", groups, pods)
	}

	// Another reason is written at once.
	g := fixture.Group("g", "nowhere", 2)
	g.Generation = 2
	d := w.Set(g).Cycle()
	if reason, _ := w.Condition("g"); len(d.Groups) != 1 || reason != "QueueNotFound" {
		t.Errorf("the reason is %s, and %d statuses are written", reason, len(d.Groups))
	}
}

// The last message is written, also if nothing happens any more.
func TestTheLastMessageIsWrittenThoughNothingHappens(t *testing.T) {
	w := loop.New(t, "").Set(fixture.Node("n1", "cpu=9"), fixture.Gang("g", "default", 1, 1, fixture.Asks("cpu=20")))
	w.Cycle()
	w.Set(fixture.Node("n1", "cpu=8"))
	w.Scheduler.Cache().Reconsider() // a node that shrinks wakes no job
	if d := w.Cycle(); len(d.Groups) > 0 {
		t.Errorf("a number is written at once: %+v", d.Groups)
	}
	w.CycleFor(15 * time.Second)
	if _, message := w.Condition("g"); message == "" || message[len(message)-len("has 8, short by 12"):] != "has 8, short by 12" {
		t.Errorf("after a while the message is %q", message)
	}
}

const overcommitted = `
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: overcommit}, {name: predicates}, {name: %s}]
`

// Autoscalers act on pods that are Unschedulable. Whatever the job waits for, its pods are that if more nodes would
// help, and only then.
func TestPodsAreUnschedulableIfMoreNodesWouldHelp(t *testing.T) {
	for name, test := range map[string]struct {
		plugin, capability, cpu, reason string
		options                         []func(*corev1.Pod)
	}{
		"a full cluster":                    {"proportion", "", "4", "Unschedulable", nil},
		"larger than the cluster":           {"proportion", "", "100", "Unschedulable", nil},
		"larger than the cluster, no share": {"predicates", "", "100", "Unschedulable", nil},
		"a capability that is used up":      {"proportion", "cpu=16", "4", "OverCapability", nil},
		"larger than the capability":        {"capacity", "cpu=2", "4", "TooLargeForQueue", nil},
		"a selector that no node has": {"proportion", "", "4", "Unschedulable", []func(*corev1.Pod){func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{"no": "where"}
		}}},
		"a selector of one node":                  {"proportion", "", "4", "OverCluster", []func(*corev1.Pod){onNode("n1")}},
		"near a pod that is not there":            {"proportion", "", "4", "OverCluster", []func(*corev1.Pod){near("absent", corev1.LabelHostname)}},
		"near a pod that is there":                {"proportion", "", "4", "OverCluster", []func(*corev1.Pod){near("runs", corev1.LabelHostname)}},
		"in the zone of a pod that is there":      {"proportion", "", "4", "Unschedulable", []func(*corev1.Pod){near("runs", corev1.LabelTopologyZone)}},
		"in the zone of a pod that is not there":  {"proportion", "", "4", "OverCluster", []func(*corev1.Pod){near("absent", corev1.LabelTopologyZone)}},
		"near others of its own, the first there": {"proportion", "", "4", "Unschedulable", []func(*corev1.Pod){near("own", corev1.LabelHostname), labelled("own")}},
	} {
		t.Run(name, func(t *testing.T) {
			w := loop.New(t, fmt.Sprintf(overcommitted, test.plugin)).Set(fixture.Node("n1", "cpu=16", func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = "z" }))
			if test.capability != "" {
				w.Set(fixture.Queue("default", fixture.Capped(test.capability)))
			}
			w.Set(fixture.Group("runs", "default", 1, fixture.Wanting("cpu=16")))
			w.Set(fixture.Pod("runs-0", fixture.In("runs"), fixture.Asks("cpu=16"), fixture.On("n1"), labelled("runs")))
			w.Set(fixture.Group("g", "default", 1, fixture.PendingAdmission, fixture.Wanting("cpu="+test.cpu)))
			w.Set(fixture.Pod("g-0", append(test.options, fixture.In("g"), fixture.Asks("cpu="+test.cpu))...))
			if got := conditionsOf(w, 3*time.Second)["g-0"]; got.Reason != test.reason {
				reason, message := w.Condition("g")
				t.Errorf("the pod is %+v, want %s; its PodGroup says %s: %s", got, test.reason, reason, message)
			}
		})
	}
}

func labelled(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": app} }
}

func onNode(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: name} }
}

// near makes a pod require to be in the same domain as pods of an app.
func near(app, topology string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: topology, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}}}
	}
}

// What cannot come about however long the job waits is said first.
func TestPermanentCausesComeFirst(t *testing.T) {
	for name, test := range map[string]struct {
		plugin, capability, cpu, reason string
		options                         []func(*corev1.Pod)
	}{
		"larger than its queue":       {"proportion", "cpu=2", "4", "TooLargeForQueue", nil},
		"larger than the cluster":     {"predicates", "", "100", "TooLargeForAnyNode", nil},
		"without pods, and too large": {"predicates", "", "100", "TooLargeForCluster", nil},
		"a selector that no node has": {"proportion", "", "4", "NodeMismatch", []func(*corev1.Pod){func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{"no": "where"}
		}}},
		"larger than any node": {"proportion", "", "9", "TooLargeForAnyNode", nil},
		"nothing of the kind":  {"predicates", "", "4", "OverCommitted", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := loop.New(t, fmt.Sprintf(overcommitted, test.plugin)).Set(fixture.Node("n1", "cpu=8"), fixture.Node("n2", "cpu=8"))
			if test.capability != "" {
				w.Set(fixture.Queue("default", fixture.Capped(test.capability)))
			}
			w.Set(fixture.Queue("other"), fixture.Group("runs", "other", 2, fixture.Wanting("cpu=18")))
			for i, node := range []string{"n1", "n2"} {
				w.Set(fixture.Pod(fmt.Sprintf("runs-%d", i), fixture.In("runs"), fixture.Asks("cpu=8"), fixture.On(node)))
			}
			w.Set(fixture.Group("g", "default", 1, fixture.PendingAdmission, fixture.Wanting("cpu="+test.cpu)))
			if name != "without pods, and too large" {
				w.Set(fixture.Pod("g-0", append(test.options, fixture.In("g"), fixture.Asks("cpu="+test.cpu))...))
			}
			w.CycleFor(3 * time.Second)
			if reason, message := w.Condition("g"); reason != test.reason {
				t.Errorf("the reason is %s, want %s: %s", reason, test.reason, message)
			}
		})
	}
}
