package queued_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/fixture"
)

// submitPods makes a Workload of some pods.
func (k *kueue) submitPods(name, queue string, pods, cpus int) {
	k.tb.Helper()
	k.Now = k.Now.Add(time.Second)
	k.Apply(fmt.Sprintf("{kind: Workload, metadata: {name: %s}, spec: {queueName: %s, priority: 0, podSets: [{name: main, count: %d,"+
		" template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: %d}}}]}}}]}}", name, queue, pods, cpus))
}

// helps are the messages by kind.
func (k *kueue) helps(name string) map[string]string {
	k.tb.Helper()
	e := k.Cache.Workloads.Find(fixture.Key(name))
	w := k.of(name)
	found := map[string]string{}
	for _, h := range queued.Helps(k.index(), k.Cache.Workloads.Registry(), e, &w) {
		found[h.Kind] = h.Message
	}
	return found
}

// What is proposed is tried: the Workload is admitted with it, and not with a little more.
func TestWhatHelpsAWorkloadIsExact(t *testing.T) {
	k := newKueue(t, 4)
	k.Apply(`{kind: ClusterQueue, metadata: {name: third}, spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 9}]}]}]}}
---
{kind: LocalQueue, metadata: {name: third}, spec: {clusterQueue: third}}
---
{kind: LocalQueue, metadata: {name: held}, spec: {clusterQueue: third, stopPolicy: Hold}}`)
	k.submit("runs", "q", 0, 3)
	k.Rest(50)
	k.submitPods("waits", "q", 4, 2)
	k.Rest(50)
	got := k.helps("waits")
	for kind, want := range map[string]string{
		"fewerPods":       "with 2 instead of 4 pods there would be quota now",
		"smallerRequests": "if each of its pods requested cpu 1250m instead of 2 there would be quota now",
		"anotherQueue":    "in LocalQueue third, of ClusterQueue third, there would be quota now",
		"moreQuota":       "ClusterQueue q needs a nominalQuota of 7 cpu of flavor default instead of 4",
	} {
		if got[kind] != want {
			t.Errorf("of %s it is said %q, want %q", kind, got[kind], want)
		}
	}
	for name, test := range map[string]struct {
		queue      string
		pods, cpus int
		is         bool
	}{
		"two-pods":   {"q", 2, 2, true},
		"three-pods": {"q", 3, 2, false},
		"third":      {"third", 4, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			k.submitPods(name, test.queue, test.pods, test.cpus)
			k.Rest(50)
			if admitted := k.of(name).State == queued.Admitted || k.of(name).State == queued.Reserved; admitted != test.is {
				t.Errorf("it is admitted: %t, want %t", admitted, test.is)
			}
			k.Delete(k.Workload(name))
			k.Rest(50)
		})
	}
	larger := k.Object("v1beta2.ClusterQueue/q").(*v1beta2.ClusterQueue).DeepCopy()
	larger.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = resource.MustParse("7")
	k.Replace(larger)
	k.Rest(50)
	if state := k.of("waits").State; state != queued.Admitted && state != queued.Reserved {
		t.Errorf("with the quota that helps it is %s", state)
	}
}
