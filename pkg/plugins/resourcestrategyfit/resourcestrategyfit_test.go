package resourcestrategyfit_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	fit "hekla.sh/hekla/pkg/plugins/resourcestrategyfit"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// put is a world with node n, which holds a pod, and a pod p that waits.
func put(tb testing.TB, arguments, node, held, asked string, options ...func(*corev1.Pod)) (*harness.Model, *framework.Session) {
	tb.Helper()
	w := harness.ForPlugin(tb, fit.Factory(), arguments)
	objects := []runtime.Object{fixture.Node("n", node), fixture.Pod("p", append(options, fixture.Asks(asked))...)}
	if held != "" {
		objects = append(objects, fixture.Pod("held", fixture.On("n"), fixture.Asks(held)))
	}
	return w, w.Set(objects).Open()
}

func score(tb testing.TB, arguments, node, held, asked string, options ...func(*corev1.Pod)) int64 {
	tb.Helper()
	w, s := put(tb, arguments, node, held, asked, options...)
	return s.Policy.Scorers[0].ScoreNode(w.TaskNamed("p").Class, w.Node("n"))
}

func typed(value string) func(*corev1.Pod) {
	return fixture.Annotated(schedulingv1beta1.ResourceStrategyTypeKey, value)
}

func weighed(value string) func(*corev1.Pod) {
	return fixture.Annotated(schedulingv1beta1.ResourceStrategyWeightKey, value)
}

func TestScoresAreAsWorkedOutByHand(t *testing.T) {
	const node = "cpu=8 memory=16Gi nvidia.com/gpu=8"
	const mixed = "resourceStrategyFitWeight: 1\nresources: {nvidia.com/gpu: {type: MostAllocated, weight: 2}, cpu: {type: LeastAllocated}}"
	for name, test := range map[string]struct {
		arguments, held, asked string
		options                []func(*corev1.Pod)
		want                   int64 // thousandths of a point
	}{
		"spread by default":                {"", "", "cpu=2 memory=4Gi", nil, 750_000},
		"a weight":                         {"resourceStrategyFitWeight: 1", "cpu=2 memory=4Gi", "cpu=2 memory=4Gi", nil, 50_000},
		"no weight":                        {"resourceStrategyFitWeight: 0", "", "cpu=2", nil, 0},
		"only what is asked for":           {"resourceStrategyFitWeight: 1", "memory=15Gi", "cpu=2", nil, 75_000},
		"filled up and spread":             {mixed, "cpu=4 nvidia.com/gpu=3", "cpu=2 nvidia.com/gpu=1", nil, 41_666}, // (2·4/8 + 2/8) / 3
		"without a strategy":               {mixed, "memory=1Gi", "memory=2Gi", nil, 0},
		"by a star":                        {"resourceStrategyFitWeight: 1\nresources: {nvidia.com/*: {type: MostAllocated}}", "", "nvidia.com/gpu=2", nil, 25_000},
		"by the longer star":               {"resourceStrategyFitWeight: 1\nresources: {nvidia.com/*: {type: MostAllocated}, nvidia.com/g*: {}}", "", "nvidia.com/gpu=2", nil, 75_000},
		"the name before the star":         {"resourceStrategyFitWeight: 1\nresources: {nvidia.com/gpu: {}, nvidia.com/gpu*: {type: MostAllocated}}", "", "nvidia.com/gpu=2", nil, 75_000},
		"the node has none of it":          {"resourceStrategyFitWeight: 1\nresources: {cpu: {}, example.com/x: {weight: 3}}", "", "cpu=4 example.com/x=1", nil, 12_500}, // (4/8) / 4
		"the pod's type":                   {mixed, "", "cpu=2 nvidia.com/gpu=1", []func(*corev1.Pod){typed("MostAllocated")}, 16_666},                                   // (2/8 + 2·1/8) / 3
		"the pod's weights":                {mixed, "", "cpu=2 nvidia.com/gpu=1", []func(*corev1.Pod){weighed(`{"cpu": 6}`)}, 59_375},                                    // (6·6/8 + 2·1/8) / 8
		"a weight only the pod gives":      {mixed, "", "memory=4Gi", []func(*corev1.Pod){weighed(`{"memory": 1}`)}, 75_000},
		"a weight of nothing":              {mixed, "", "cpu=2 nvidia.com/gpu=1", []func(*corev1.Pod){weighed(`{"nvidia.com/gpu": 0}`)}, 75_000},
		"both are the pod's":               {mixed, "", "memory=4Gi", []func(*corev1.Pod){weighed(`{"memory": 1}`), typed("MostAllocated")}, 25_000},
		"a type there is not":              {mixed, "", "cpu=2", []func(*corev1.Pod){typed("Random")}, 75_000},
		"weights that cannot be read":      {mixed, "", "cpu=2 nvidia.com/gpu=1", []func(*corev1.Pod){weighed(`cpu: 6`)}, 33_333},
		"weights below zero":               {mixed, "", "cpu=2 nvidia.com/gpu=1", []func(*corev1.Pod){weighed(`{"cpu": 6, "memory": -1}`)}, 33_333},
		"scarce, and the node has it":      {"resourceStrategyFitWeight: 0\nsra: {enable: true, resources: nvidia.com/gpu, weight: 5}", "", "cpu=2", nil, 0},
		"scarce, and the node has it not":  {"resourceStrategyFitWeight: 0\nsra: {enable: true, resources: example.com/x, weight: 5}", "", "cpu=2", nil, 500_000},
		"of two scarce ones it has one":    {"resourceStrategyFitWeight: 0\nsra: {enable: true, resources: 'nvidia.com/gpu, example.com/x', resourceWeight: {nvidia.com/gpu: 3}}", "", "cpu=2", nil, 25_000},
		"it lacks what is asked for":       {"resourceStrategyFitWeight: 0\nsra: {enable: true, resources: example.com/x}", "", "example.com/y=2", nil, 0},
		"what is scarce is not enabled":    {"resourceStrategyFitWeight: 0\nsra: {resources: example.com/x, weight: 5}", "", "cpu=2", nil, 0},
		"what is scarce weighs nothing":    {"resourceStrategyFitWeight: 0\nsra: {enable: true, resources: example.com/x, resourceWeight: {example.com/x: 0}}", "", "cpu=2", nil, 0},
		"both scores together":             {"resourceStrategyFitWeight: 1\nsra: {enable: true, resources: example.com/x, weight: 5}", "", "cpu=2", nil, 575_000},
		"nothing is asked for, and scored": {"", "", "", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := score(t, test.arguments, node, test.held, test.asked, test.options...); got < test.want-2 || got > test.want {
				t.Errorf("the score is %d thousandths, want %d", got, test.want)
			}
		})
	}
}

func TestCPUAndMemoryAreKeptForIdleDevices(t *testing.T) {
	const on = "proportional: {enable: true, resources: nvidia.com/gpu, resourceProportion: {nvidia.com/gpu.cpu: 4, nvidia.com/gpu.memory: 8}}"
	const node = "cpu=10 memory=40G nvidia.com/gpu=2"
	for name, test := range map[string]struct {
		arguments, held, asked string
		refused                bool
	}{
		"what is left is enough":               {on, "", "cpu=2 memory=24G", false},
		"CPU is kept":                          {on, "", "cpu=2500m memory=1G", true},
		"memory is kept":                       {on, "", "cpu=1 memory=25G", true},
		"the device is asked for":              {on, "", "cpu=9 nvidia.com/gpu=1", false},
		"one is in use":                        {on, "nvidia.com/gpu=1 cpu=1", "cpu=5", false},
		"one is in use, and CPU by others too": {on, "nvidia.com/gpu=1 cpu=5", "cpu=2", true},
		"all are in use":                       {on, "nvidia.com/gpu=2", "cpu=10 memory=40G", false},
		"nothing is left, and nothing taken":   {on, "cpu=9 memory=39G", "", false},
		"only memory is taken, CPU is short":   {on, "cpu=9", "memory=1G", false},
		"not enabled":                          {strings.Replace(on, "true", "false", 1), "", "cpu=10", false},
		"one core and gigabyte if not said":    {"proportional: {enable: true, resources: nvidia.com/gpu}", "", "cpu=8500m", true},
		"a fraction":                           {"proportional: {enable: true, resources: nvidia.com/gpu, resourceProportion: {nvidia.com/gpu.cpu: 0.5}}", "", "cpu=9", false},
		"a device that no node has":            {"proportional: {enable: true, resources: example.com/x}", "", "cpu=10", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := put(t, test.arguments, node, test.held, test.asked)
			want := ""
			if test.refused {
				want = "node(s) keep CPU and memory for their idle nvidia.com/gpu"
			}
			if got := s.Policy.Filters[0].RefuseNode(w.TaskNamed("p").Class, w.Node("n")); got != want {
				t.Errorf("the node says %q, want %q", got, want)
			}
		})
	}
}

func TestAFullerNodeScoresMoreForPackingAndLessForSpreading(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		amount := func(name string) string { return fmt.Sprint(rapid.IntRange(1, 99).Draw(r, name)) }
		asked, held := "cpu="+amount("cpu")+" memory="+amount("memory")+"Gi", "cpu="+amount("held")
		weights := "resources: {cpu: {type: %[1]s, weight: " + amount("w") + "}, memory: {type: %[1]s, weight: " + amount("v") + "}}"
		at := func(kind, held string) int64 {
			return score(t, "resourceStrategyFitWeight: 1\n"+fmt.Sprintf(weights, kind), "cpu=200 memory=200Gi", held, asked)
		}
		for _, kind := range []string{"MostAllocated", "LeastAllocated"} {
			empty, fuller := at(kind, ""), at(kind, held)
			if min(empty, fuller) < 0 || max(empty, fuller) > 100*framework.Point {
				r.Fatalf("%s: the scores are %d and %d", kind, empty, fuller)
			}
			if (kind == "MostAllocated") != (fuller > empty) || fuller == empty {
				r.Fatalf("%s: the node that holds %s scores %d, the empty one %d", kind, held, fuller, empty)
			}
		}
		// What is used and what is free are all there is.
		if sum := at("MostAllocated", held) + at("LeastAllocated", held); sum < 100*framework.Point-2 || sum > 100*framework.Point {
			r.Fatalf("together the two strategies score %d", sum)
		}
	})
}

func TestArgumentsThatMakeNoSenseAreErrors(t *testing.T) {
	for text, want := range map[string]string{
		"resourceStrategyFitWeight: -1":                                "it must be a whole number from 0 to 1000000",
		"resources: 3":                                                 "it must be a mapping",
		"resources: {cpu: 3}":                                          "it must be a mapping in which cpu is a mapping, not 3",
		"resources: {cpu: {type: Random}}":                             "it must be a mapping in which the type of cpu is LeastAllocated or MostAllocated, not Random",
		"resources: {cpu: {weight: 0}}":                                "it must be a mapping in which the weight of cpu is a whole number from 1 to 1000000, not 0",
		"resources: {cpu: {weight: 1.5}}":                              "it must be a mapping in which the weight of cpu is a whole number from 1 to 1000000, not 1.5",
		"resources: {cpu: {weihgt: 1}}":                                "it must be a mapping without the key weihgt in cpu",
		"resources: {'*': {}}":                                         `it must be a mapping of resources, and "*" is none: a star may stand at the end of a name only`,
		"resources: {'a*b': {}}":                                       `it must be a mapping of resources, and "a*b" is none: a star may stand at the end of a name only`,
		"sra: {enabled: true}":                                         "it must be a mapping without the key enabled",
		"sra: {enable: 3}":                                             "it must be a mapping in which enable is true or false, not 3",
		"sra: {enable: true}":                                          "it must be a mapping that names resources if it enables them",
		"sra: {resources: {a: b}}":                                     "it must be a mapping in which resources are names separated by commas, not map[a:b]",
		"sra: {resources: a, weight: -1}":                              "it must be a mapping in which weight is a whole number from 0 to 1000000, not -1",
		"sra: {resources: a, resourceWeight: {b: 1}}":                  "it must be a mapping without the key b in resourceWeight",
		"sra: {resources: a, resourceWeight: {a: x}}":                  "it must be a mapping in which the weight of a is a whole number from 0 to 1000000, not x",
		"proportional: {resources: a, resourceProportion: {a: 1}}":     "it must be a mapping without the key a in resourceProportion",
		"proportional: {resources: a, resourceProportion: {a.cpu: y}}": "it must be a mapping in which a.cpu is a number from 0 to 1000000, not y",
		"proportional: []":                                             "it must be a mapping",
	} {
		if _, err := conf.ParseArguments([]byte(text), fit.Factory().Spec); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", text, err, want)
		}
	}
}

// A resource that becomes known after the first session counts as well, also for a pod that says how much.
func TestAResourceThatComesLaterIsScored(t *testing.T) {
	w := harness.ForPlugin(t, fit.Factory(), "resourceStrategyFitWeight: 1")
	w.Set(fixture.Node("m", "cpu=4"), fixture.Pod("early", fixture.Asks("cpu=1"), weighed(`{"cpu": 1}`))).Open()
	s := w.Set(fixture.Node("n", "cpu=4 example.com/device=2"), fixture.Pod("p", fixture.Asks("example.com/device=1"), weighed(`{"example.com/device": 1}`))).Open()
	if got := s.Policy.Scorers[0].ScoreNode(w.TaskNamed("p").Class, w.Node("n")); got != 50_000 {
		t.Errorf("the score is %d thousandths", got)
	}
}
