package guarantees

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/simulator/manifests"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
)

// course is what has come of a cluster at rest.
type course struct {
	evicted []string          // UIDs of pods
	nodes   map[string]string // of pods
}

// policyOf returns a function that makes the policy of a configuration again.
func policyOf(input *manifests.Input) func() *framework.Policy {
	return func() *framework.Policy {
		registry := scheduler.NewRegistry()
		configuration, err := conf.Parse([]byte(input.Configuration), registry.Catalogue())
		if err != nil {
			panic(err)
		}
		policy, err := registry.Build(configuration)
		if err != nil {
			panic(err)
		}
		return policy
	}
}

// lead leads a cluster to its rest. The scheduler ends when it wants to make the write after some number of them, and
// another begins; with a negative number it does not end. It returns whether it has ended.
func lead(documents []string, writes int) (c course, hasEnded bool, err error) {
	input, err := manifests.Read([]string{"-"}, strings.NewReader(strings.Join(documents, "---\n")))
	if err != nil {
		return c, false, err
	}
	policy := policyOf(input)
	led, err := simulator.Lead(input, policy(), simulator.Options{SchedulerNames: []string{"volcano"}, Now: birth.Add(6*time.Hour + 30*time.Second), Grace: true})
	if err != nil {
		return c, false, err
	}
	if writes >= 0 {
		led.Crash(simulator.CrashPlan{Writes: writes, Policy: policy, Meanwhile: func(*simulator.Led) error { hasEnded = true; return nil }})
	}
	living := map[string]bool{}
	for quiet := 0; quiet < 45; {
		if err := led.Cycle(); err != nil {
			return c, hasEnded, err
		}
		quiet++
		nodes, now := map[string]string{}, map[string]bool{}
		for _, o := range led.Objects() {
			if pod, ok := o.(*corev1.Pod); ok {
				now[string(pod.UID)] = true
				nodes[pod.Name] = pod.Spec.NodeName
			}
		}
		for uid := range living {
			if !now[uid] {
				c.evicted = append(c.evicted, uid)
			}
		}
		if !maps.Equal(nodes, c.nodes) || !maps.Equal(now, living) || slices.ContainsFunc(led.Objects(), isLeaving) {
			quiet = 0
		}
		c.nodes, living = nodes, now
		if problems := led.Scheduler().Cache().Audit(); len(problems) > 0 {
			return c, hasEnded, fmt.Errorf("the model is wrong: %s", problems[0])
		}
	}
	slices.Sort(c.evicted)
	return c, hasEnded, nil
}

// running are the pods that have a node. Which one it is may differ after a crash, if a binding was decided and not
// written.
func (c *course) running() (names []string) {
	for name, node := range c.nodes {
		if node != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func isLeaving(o runtime.Object) bool {
	pod, ok := o.(*corev1.Pod)
	return ok && pod.DeletionTimestamp != nil
}

// crashes counts what was tried, and after how many crashes fewer pods left.
type crashes struct{ tried, fewer, evictions int }

// crashAnywhere leads a cluster to its rest with a crash at each write, and without one.
func (n *crashes) crashAnywhere(t *testing.T, name string, documents []string) {
	t.Helper()
	want, _, err := lead(documents, -1)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(want.evicted) == 0 {
		return
	}
	n.evictions += len(want.evicted)
	for writes := 0; ; writes++ {
		got, hasEnded, err := lead(documents, writes)
		if err != nil {
			t.Fatalf("%s, after %d writes: %v", name, writes, err)
		}
		if !hasEnded {
			return
		}
		n.tried++
		// Room may be given to another job than it was, if that was decided and not written. Then fewer may have to
		// leave.
		extra := slices.DeleteFunc(slices.Clone(got.evicted), func(uid string) bool { return slices.Contains(want.evicted, uid) })
		switch {
		case len(extra) > 0:
			t.Errorf("%s: after a crash at write %d %v leave, without it %v", name, writes, got.evicted, want.evicted)
		case len(got.evicted) < len(want.evicted):
			n.fewer++
		case !slices.Equal(got.running(), want.running()):
			t.Errorf("%s: after a crash at write %d %v run, without it %v", name, writes, got.running(), want.running())
		}
	}
}

// Of an application with task groups only the driver is nominated in the API. The places of its executors are found
// again.
func TestAfterACrashAnApplicationGetsTheRoomThatWasVacatedForIt(t *testing.T) {
	c := &randomCluster{queueOf: map[string]string{}, requests: map[string]map[string]int{}}
	c.documents = draw(1).documents[:3] // the configuration and two PriorityClasses
	for i, queue := range []string{"tenant", "others"} {
		guarantee := []string{`{cpu: "4"}`, `{cpu: "1"}`}[i]
		c.add("apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s, uid: %s, creationTimestamp: %q}\nspec:\n  weight: 1\n"+
			"  guarantee: {resource: %s}\nstatus: {state: Open}\n", queue, queue, stamp(i), guarantee)
	}
	for i := range 2 {
		c.add("apiVersion: v1\nkind: Node\nmetadata: {name: n%d, uid: n%d, creationTimestamp: %q}\nstatus:\n"+
			"  allocatable: {cpu: \"3\", memory: 64Gi, pods: \"20\"}\n  conditions: [{type: Ready, status: \"True\"}]\n", i, i, stamp(0))
	}
	random := rand.New(rand.NewPCG(1, 1))
	for i := range 6 {
		name := fmt.Sprintf("r%d", i)
		c.addGroup(name, "others", 1, 100+i, "Running", 0)
		c.addPod(name, name, "others", 1, 0, 100+i, fmt.Sprintf("n%d", i%2), random)
	}
	c.add(`apiVersion: v1
kind: Pod
metadata:
  name: driver
  namespace: work
  uid: u-driver
  creationTimestamp: %q
  labels: {spark-app-selector: spark, queue: tenant}
  annotations:
    yunikorn.apache.org/task-group-name: driver
    yunikorn.apache.org/task-groups: '[{"name": "driver", "minMember": 1, "minResource": {"cpu": "1"}}, {"name": "executor", "minMember": 3, "minResource": {"cpu": "1"}}]'
spec:
  schedulerName: volcano
  containers: [{name: main, image: i, resources: {requests: {cpu: "1"}}}]
status: {phase: Pending}
`, stamp(21600-60))
	var n crashes
	n.crashAnywhere(t, "application", c.documents)
	if n.evictions != 4 || n.tried < 10 {
		t.Errorf("%d crashes with %d evictions, want 4", n.tried, n.evictions)
	}
}

func TestAfterACrashAtAnyWriteNoOtherPodsAreEvicted(t *testing.T) {
	var n crashes
	for seed := uint64(1); seed <= 60; seed++ {
		n.crashAnywhere(t, fmt.Sprintf("seed %d", seed), draw(seed).documents)
	}
	tried, fewer, evictions := n.tried, n.fewer, n.evictions
	if tried < 100 || evictions < 10 || fewer > tried/20 {
		t.Errorf("%d crashes in clusters with %d evictions, after %d of which fewer pods left: they test little", tried, evictions, fewer)
	}
	t.Logf("%d crashes in clusters with %d evictions; after %d of them fewer pods left", tried, evictions, fewer)
}
