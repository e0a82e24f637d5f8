package binpack_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/binpack"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// score is what binpack says of n0, in thousandths of a point, for a pod p, where another one runs.
func score(t testing.TB, arguments, node, held, asked string) int64 {
	t.Helper()
	objects := []runtime.Object{fixture.Node("n0", node), fixture.Pod("p", fixture.Asks(asked))}
	if held != "" {
		objects = append(objects, fixture.Pod("held", fixture.On("n0"), fixture.Asks(held)))
	}
	return scoreIn(t, harness.ForPlugin(t, binpack.Factory(), arguments), objects)
}

func scoreIn(t testing.TB, w *harness.Model, objects []runtime.Object) int64 {
	t.Helper()
	s := w.Set(objects).Open()
	return s.Policy.Scorers[0].ScoreNode(w.TaskNamed("p").Class, w.Node("n0"))
}

func TestScoresAreAsWorkedOutByHand(t *testing.T) {
	for name, test := range map[string]struct {
		arguments, node, held, asked string
		want                         int64 // thousandths of a point
	}{
		"an empty node":               {"", "cpu=4 memory=8Gi", "", "cpu=1 memory=2Gi", 25_000},
		"cpu alone is asked for":      {"", "cpu=4 memory=8Gi", "", "cpu=1", 25_000},
		"next to another":             {"", "cpu=4 memory=8Gi", "cpu=2 memory=2Gi", "cpu=1 memory=2Gi", 62_500}, // (3/4 + 4/8) / 2
		"full":                        {"", "cpu=4 memory=8Gi", "cpu=2 memory=6Gi", "cpu=2 memory=2Gi", 100_000},
		"weights":                     {"binpack.cpu: 3\nbinpack.memory: 1", "cpu=4 memory=8Gi", "", "cpu=2 memory=2Gi", 43_750}, // (3·2/4 + 2/8) / 4
		"the weight of the score":     {"binpack.weight: 10", "cpu=4", "", "cpu=1", 250_000},
		"a weight of nothing":         {"binpack.weight: 0", "cpu=4", "", "cpu=1", 0},
		"nothing is asked for":        {"", "cpu=4", "cpu=1", "", 0},
		"only what is not weighed":    {"", "cpu=4 nvidia.com/gpu=4", "", "nvidia.com/gpu=1", 0},
		"a further resource":          {"binpack.resources: nvidia.com/gpu\nbinpack.resources.nvidia.com/gpu: 2", "cpu=4 nvidia.com/gpu=4", "", "cpu=1 nvidia.com/gpu=3", 58_333}, // (1/4 + 2·3/4) / 3
		"a further one, weight 1":     {"binpack.resources: nvidia.com/gpu", "cpu=4 nvidia.com/gpu=4", "", "cpu=1 nvidia.com/gpu=3", 50_000},
		"the node has none of it":     {"binpack.resources: nvidia.com/gpu", "cpu=4", "", "cpu=1 nvidia.com/gpu=1", 12_500}, // its weight counts
		"cpu and memory do not count": {"binpack.cpu: 0\nbinpack.memory: 0", "cpu=4 memory=8Gi", "", "cpu=1 memory=1Gi", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := score(t, test.arguments, test.node, test.held, test.asked); got < test.want-1 || got > test.want {
				t.Errorf("the score is %d thousandths, want %d", got, test.want)
			}
		})
	}
}

func TestTheScoreIsWithinItsBoundsAndAFullerNodeIsBetter(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		amount := func(name string) string { return fmt.Sprint(rapid.IntRange(1, 99).Draw(r, name)) }
		asked := "cpu=" + amount("cpu") + " memory=" + amount("memory") + "Gi"
		held := "cpu=" + amount("held cpu")
		node := "cpu=200 memory=200Gi"
		empty, fuller := score(t, "", node, "", asked), score(t, "", node, held, asked)
		if empty < 0 || fuller > 100*framework.Point {
			r.Fatalf("the scores are %d and %d", empty, fuller)
		}
		if fuller <= empty {
			r.Fatalf("the node that holds %s scores %d, the empty one %d", held, fuller, empty)
		}
	})
}

func TestAWeightOfAResourceThatIsNotListedIsAnError(t *testing.T) {
	arguments, err := conf.ParseArguments([]byte("binpack.resources.nvidia.com/gpu: 2"), binpack.Factory().Spec)
	if err != nil {
		t.Fatal(err)
	}
	_, err = binpack.Factory().New(conf.Switches{}, arguments)
	if want := "binpack.resources.nvidia.com/gpu has a weight, but binpack.resources does not list nvidia.com/gpu"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

func TestANegativeWeightIsAnError(t *testing.T) {
	for _, argument := range []string{"binpack.weight", "binpack.cpu", "binpack.memory", "binpack.resources.nvidia.com/gpu"} {
		if _, err := conf.ParseArguments([]byte(argument+": -1"), binpack.Factory().Spec); err == nil {
			t.Errorf("%s: -1 is accepted", argument)
		}
	}
}

// A resource that becomes known after the first session counts as well.
func TestAResourceThatComesLaterIsWeighed(t *testing.T) {
	w := harness.ForPlugin(t, binpack.Factory(), "binpack.resources: example.com/device")
	w.Set(fixture.Node("n1", "cpu=4")).Open()
	objects := []runtime.Object{fixture.Node("n0", "cpu=4 example.com/device=2"), fixture.Pod("p", fixture.Asks("example.com/device=1"))}
	if got := scoreIn(t, w, objects); got != 50_000 {
		t.Errorf("the score is %d thousandths", got)
	}
}
