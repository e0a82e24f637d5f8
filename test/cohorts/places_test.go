package cohorts

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/cohorts/nodes"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/plugins/nodeorder"
	"hekla.sh/hekla/pkg/plugins/predicates"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

const namespace = "work"

// cluster makes the nodes and pods of a case, and gives flavors their labels.
func clusterOf(t *testing.T, m *model, c *theCase) *harness.Model {
	t.Helper()
	h := harness.ForPlugins(t, harness.Entry{Factory: predicates.Factory()}, harness.Entry{Factory: nodeorder.Factory()}).Placing()
	for name, flavor := range m.flavors {
		flavor.NodeLabels = map[string]string{"flavor/" + name: "yes"}
	}
	for _, w := range m.workloads {
		w.Namespace = namespace
	}
	for _, s := range c.Nodes {
		n := fixture.Node(s.Name, requestsOf(s.Allocatable))
		for _, f := range s.Flavors {
			n.Labels["flavor/"+f] = "yes"
		}
		n.Spec.Unschedulable = s.Unschedulable
		h.Set(n)
	}
	for i, p := range c.OtherPods {
		h.Set(fixture.Pod(fmt.Sprintf("other-%d", i), fixture.Asks(requestsOf(p.Requests)), fixture.On(p.Node)))
	}
	for _, a := range c.Admitted {
		for i, p := range a.Pods {
			pod := fixture.Pod(fmt.Sprintf("%s-%d", a.Name, i), fixture.Asks(requestsOf(p.Requests)), fixture.On(p.Node),
				fixture.Annotated(v1beta2.WorkloadAnnotation, a.Name), fixture.Labelled(v1beta2.PodSetLabel, "main"))
			pod.Namespace, pod.Status.Phase = namespace, corev1.PodRunning
			if a.Evicted {
				end := metav1.NewTime(h.Now.Add(time.Minute))
				pod.DeletionTimestamp = &end
			}
			h.Set(pod)
		}
	}
	return h
}

func requestsOf(amounts map[string]string) string {
	var words []string
	for name, amount := range amounts {
		words = append(words, name+"="+amount)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// onCluster lets the cycle of a model decide on the nodes of a cluster. What is decided is kept, as the action admit
// does.
func onCluster(m *model, h *harness.Model) *nodes.Places {
	p := nodes.New(h.Open(), &nodes.Forms{})
	m.cycle.Use(p)
	m.note = func(n *workload.Nomination) { keep(p, h, n) }
	return p
}

func keep(p *nodes.Places, h *harness.Model, n *workload.Nomination) {
	switch n.Outcome {
	case workload.Admitted:
		p.Keep()
	case workload.Preempting, workload.Deferred:
		p.Plan(&cluster.Plan{ID: h.Plans().NewID(h.Now), Action: "admit", Since: h.Now, Deadline: h.Now.Add(time.Minute)}, n.Victims)
	}
}
