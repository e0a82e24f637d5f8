package guarantees

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/simulator/manifests"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/harness"
)

// clustersEnv says how many random clusters are tried.
const clustersEnv = "HEKLA_GUARANTEES_CLUSTERS"

// run simulates documents to their rest. observe is called before each cycle.
func run(documents []string, observe func(cycle int, l *simulator.Led) error) (*simulator.Report, error) {
	input, err := manifests.Read([]string{"-"}, strings.NewReader(strings.Join(documents, "---\n")))
	if err != nil {
		return nil, err
	}
	registry := scheduler.NewRegistry()
	configuration, err := conf.Parse([]byte(input.Configuration), registry.Catalogue())
	if err != nil {
		return nil, err
	}
	policy, err := registry.Build(configuration)
	if err != nil {
		return nil, err
	}
	return simulator.Run(input, policy, simulator.Options{SchedulerNames: []string{"volcano"}, UntilStable: true, MaxCycles: 300,
		Now: birth.Add(6*time.Hour + 5*time.Second), Before: observe})
}

// held is what each queue holds with all below it, by resource: pods that have a node or are promised one.
func (c *randomCluster) held(objects []runtime.Object) map[string]map[string]int {
	held := map[string]map[string]int{}
	for _, o := range objects {
		pod, ok := o.(*corev1.Pod)
		if !ok || pod.DeletionTimestamp != nil || pod.Spec.NodeName == "" && pod.Status.NominatedNodeName == "" {
			continue
		}
		c.book(held, pod.Namespace+"/"+pod.Name, +1)
	}
	return held
}

// add adds what a pod requests to what its queue and all above hold.
func (c *randomCluster) book(held map[string]map[string]int, pod string, sign int) {
	for q := c.queueOf[pod]; q != ""; q = c.parent[q] {
		if held[q] == nil {
			held[q] = map[string]int{}
		}
		for resource, amount := range c.requests[pod] {
			held[q][resource] += sign * amount
		}
	}
}

// check says what is wrong with a cycle, given what queues held before and after it.
func (c *randomCluster) check(before, after map[string]map[string]int) error {
	for q, guaranteed := range c.guaranteed {
		for resource, floor := range guaranteed {
			if was, is := before[q][resource], after[q][resource]; is < was && is < floor {
				return fmt.Errorf("G2: queue %s is guaranteed %s %d, held %d and holds %d", q, resource, floor, was, is)
			}
		}
	}
	return nil
}

// fulfilled is the sum over queues and named resources of min(held, guaranteed).
func (c *randomCluster) fulfilled(held map[string]map[string]int) (sum int) {
	for q, guaranteed := range c.guaranteed {
		for resource, floor := range guaranteed {
			sum += min(held[q][resource], floor)
		}
	}
	return sum
}

// problem returns what is wrong with the decisions about a cluster, and how many plans with evictions there were.
func (c *randomCluster) problem() (plans int, err error) {
	var before map[string]map[string]int
	first, total := 0, 0
	for _, guaranteed := range c.guaranteed {
		for _, floor := range guaranteed {
			total += floor
		}
	}
	report, err := run(c.documents, func(cycle int, l *simulator.Led) error {
		after := c.held(l.Objects())
		if cycle == 1 {
			first = c.fulfilled(after)
		} else if err := c.check(before, after); err != nil {
			return fmt.Errorf("cycle %d: %w", cycle-1, err)
		} else if was, is := c.fulfilled(before), c.fulfilled(after); is < was {
			return fmt.Errorf("cycle %d: G11: guarantees were met by %d, and are by %d", cycle-1, was, is)
		}
		before = after
		return nil
	})
	if err != nil {
		return 0, err
	}
	made := map[string]bool{}
	for _, e := range report.Evictions {
		made[fmt.Sprint(e.Cycle, e.For)] = true
	}
	if len(made) > total-first {
		return 0, fmt.Errorf("G11: %d plans, and guarantees lacked %d at first", len(made), total-first)
	}
	documents := slices.Clone(c.documents)
	slices.Reverse(documents)
	again, err := run(documents, nil)
	if err != nil {
		return 0, err
	}
	var one, other bytes.Buffer
	if err := report.WriteJSON(&one); err != nil {
		return 0, err
	}
	if err := again.WriteJSON(&other); err != nil {
		return 0, err
	}
	if one.String() != other.String() {
		return 0, fmt.Errorf("S3: with the documents reversed it decides\n%s\nand not\n%s", other.String(), one.String())
	}
	return len(made), nil
}

func TestRandomClustersKeepGuaranteesAndComeToRest(t *testing.T) {
	plans, clusters := 0, harness.Number(t, clustersEnv, 200)
	for i := range clusters {
		seed := uint64(1000 + i)
		c := draw(seed)
		made, err := c.problem()
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(c.documents, "---\n"))
		}
		plans += made
	}
	if plans < clusters/20 {
		t.Errorf("of %d clusters only %d plans were made: they test little", clusters, plans)
	}
}
