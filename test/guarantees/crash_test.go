package guarantees

import (
	"fmt"
	"maps"
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

// policyOf returns a function that makes the policy of a configuration anew.
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

// lead leads a cluster to its rest. The scheduler ends when it wants to make the write after some number of them, and another
// begins; with a negative number it does not end. It returns whether it has ended.
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

// running are the pods that have a node. Which one it is may differ after a crash, if a binding was decided and not written.
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

func TestAfterACrashAtAnyWriteNoOtherPodsAreEvicted(t *testing.T) {
	tried, fewer, evictions := 0, 0, 0
	for seed := uint64(1); seed <= 60; seed++ {
		c := draw(seed)
		want, _, err := lead(c.documents, -1)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(want.evicted) == 0 {
			continue
		}
		evictions += len(want.evicted)
		for writes := 0; ; writes++ {
			got, hasEnded, err := lead(c.documents, writes)
			if err != nil {
				t.Fatalf("seed %d, after %d writes: %v", seed, writes, err)
			}
			if !hasEnded {
				break
			}
			tried++
			// Room may be given to another job than it was, if that was decided and not written. Then fewer may have to leave.
			extra := slices.DeleteFunc(slices.Clone(got.evicted), func(uid string) bool { return slices.Contains(want.evicted, uid) })
			switch {
			case len(extra) > 0:
				t.Errorf("seed %d: after a crash at write %d %v leave, without it %v", seed, writes, got.evicted, want.evicted)
			case len(got.evicted) < len(want.evicted):
				fewer++
			case !slices.Equal(got.running(), want.running()):
				t.Errorf("seed %d: after a crash at write %d %v run, without it %v", seed, writes, got.running(), want.running())
			}
		}
	}
	if tried < 100 || evictions < 10 || fewer > tried/20 {
		t.Errorf("%d crashes in clusters with %d evictions, after %d of which fewer pods left: they test little", tried, evictions, fewer)
	}
	t.Logf("%d crashes in clusters with %d evictions; after %d of them fewer pods left", tried, evictions, fewer)
}
