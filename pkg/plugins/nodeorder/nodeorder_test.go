package nodeorder_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	kubeframework "k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/nodeorder"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// handle is all that the kube-scheduler's plugins of resources ask for.
type handle struct{ fwk.Handle }

func (handle) SharedDRAManager() fwk.SharedDRAManager { return nil }

var features = feature.Features{EnablePodLevelResources: true, EnableInPlacePodVerticalScaling: true, EnableSidecarContainers: true,
	EnableInPlacePodLevelResourcesVerticalScaling: true}

// originals are the kube-scheduler's own scores, by the argument that weighs ours.
func originals(t *testing.T) map[string]fwk.ScorePlugin {
	weighed := []config.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "memory", Weight: 1}}
	made := map[string]fwk.ScorePlugin{}
	add := func(argument string, plugin fwk.Plugin, err error) {
		if err != nil {
			t.Fatal(err)
		}
		made[argument] = plugin.(fwk.ScorePlugin)
	}
	fit := func(strategy config.ScoringStrategyType) (fwk.Plugin, error) {
		return noderesources.NewFit(context.Background(), &config.NodeResourcesFitArgs{
			ScoringStrategy: &config.ScoringStrategy{Type: strategy, Resources: weighed}}, handle{}, features)
	}
	plugin, err := fit(config.LeastAllocated)
	add("leastrequested.weight", plugin, err)
	plugin, err = fit(config.MostAllocated)
	add("mostrequested.weight", plugin, err)
	plugin, err = noderesources.NewBalancedAllocation(context.Background(), &config.NodeResourcesBalancedAllocationArgs{Resources: weighed}, handle{}, features)
	add("balancedresource.weight", plugin, err)
	return made
}

// only gives one score a weight, and none to the others.
func only(argument string) string {
	text := ""
	for _, name := range []string{"leastrequested.weight", "mostrequested.weight", "balancedresource.weight"} {
		weight := 0
		if name == argument {
			weight = 1
		}
		text += fmt.Sprintf("%s: %d\n", name, weight)
	}
	return text
}

func ours(t testing.TB, arguments string, node *corev1.Node, held []*corev1.Pod, p *corev1.Pod) float64 {
	t.Helper()
	w := harness.ForPlugin(t, nodeorder.Factory(), arguments).Set(node, p)
	for _, other := range held {
		w.Set(other)
	}
	s := w.Open()
	return float64(s.Policy.Scorers[0].ScoreNode(w.TaskNamed(p.Name).Class, w.Node(node.Name))) / framework.Point
}

func theirs(t testing.TB, plugin fwk.ScorePlugin, node *corev1.Node, held []*corev1.Pod, p *corev1.Pod) float64 {
	t.Helper()
	info := kubeframework.NewNodeInfo(held...)
	info.SetNode(node)
	score, status := plugin.Score(context.Background(), kubeframework.NewCycleState(), p, info)
	if !status.IsSuccess() {
		t.Fatal(status.Message())
	}
	return float64(score)
}

// rounding is what theirs may lose: whole points for each resource, for the mean, and for the difference of two
// balances.
const rounding = 2

func TestScoresAreThoseOfTheKubeScheduler(t *testing.T) {
	plugins := originals(t)
	for argument, plugin := range plugins {
		t.Run(argument, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				requests := func(what string) func(*corev1.Pod) {
					return fixture.Asks(rapid.SampledFrom([]string{"", "cpu=100m", "cpu=1 memory=1Gi", "memory=3Gi", "cpu=2", "cpu=3 memory=512Mi"}).Draw(r, what))
				}
				node := fixture.Node("n0", fmt.Sprintf("cpu=%d memory=%dGi", rapid.IntRange(1, 32).Draw(r, "cpu"), rapid.IntRange(1, 64).Draw(r, "memory")))
				var held []*corev1.Pod
				for i := range rapid.IntRange(0, 4).Draw(r, "held") {
					held = append(held, fixture.Pod(fmt.Sprintf("held-%d", i), requests("held"), fixture.On("n0")))
				}
				p := fixture.Pod("p", requests("asks"))
				if a, b := ours(t, only(argument), node, held, p), theirs(t, plugin, node, held, p); a < b-rounding || a > b+rounding {
					r.Fatalf("ours is %.3f, theirs %.0f", a, b)
				}
			})
		})
	}
}

func TestScoresAreAsWorkedOutByHand(t *testing.T) {
	held := []*corev1.Pod{fixture.Pod("held", fixture.On("n0"), fixture.Asks("cpu=1 memory=4Gi"))}
	p := fixture.Pod("p", fixture.Asks("cpu=1 memory=2Gi"))
	node := fixture.Node("n0", "cpu=4 memory=8Gi")
	for arguments, want := range map[string]float64{
		only("leastrequested.weight"):   37.5, // (2/4 + 2/8) / 2
		only("mostrequested.weight"):    62.5, // (2/4 + 6/8) / 2
		only("balancedresource.weight"): 75,   // the distance of a quarter stays a quarter
		"balancedresource.weight: 0\nleastrequested.weight: 3\nmostrequested.weight: 1": 175,
		"": 112.5,
	} {
		if got := ours(t, arguments, node, held, p); got != want {
			t.Errorf("with %q the score is %v, want %v", arguments, got, want)
		}
	}
}

func TestTheOtherScoresAreNamedWithTheirWeights(t *testing.T) {
	for text, want := range map[string][]framework.KubeScore{
		"": {{Name: "NodeAffinity", Weight: 2}, {Name: "InterPodAffinity", Weight: 2}, {Name: "TaintToleration", Weight: 3},
			{Name: "ImageLocality", Weight: 1}, {Name: "PodTopologySpread", Weight: 2}},
		"nodeaffinity.weight: 0\npodaffinity.weight: 7\ntainttoleration.weight: 0\nimagelocality.weight: 0\npodtopologyspread.weight: 0": {
			{Name: "InterPodAffinity", Weight: 7}},
	} {
		arguments, err := conf.ParseArguments([]byte(text), nodeorder.Factory().Spec)
		if err != nil {
			t.Fatal(err)
		}
		plugin, err := nodeorder.Factory().New(conf.Switches{}, arguments)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, plugin.(framework.KubeScorer).KubeScores()); diff != "" {
			t.Errorf("with %q the scores differ (-want +got):\n%s", text, diff)
		}
	}
}

func TestANegativeWeightIsAnError(t *testing.T) {
	for _, argument := range nodeorder.Factory().Spec.Arguments {
		if _, err := conf.ParseArguments([]byte(argument.Name+": -1"), nodeorder.Factory().Spec); err == nil {
			t.Errorf("%s: -1 is accepted", argument.Name)
		}
	}
}
