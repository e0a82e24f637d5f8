package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
	"hekla.sh/hekla/test/harness/loop"
)

const teamKey = "example.com/team"

// teams is a plugin from outside the tree that keeps pods of team a off every node.
type teams struct{}

func (teams) Name() string { return "example.com/teams" }

func (teams) RefuseNode(k *cluster.Class, _ *cluster.Node) string {
	if k.Pod.Annotations[teamKey] == "a" {
		return "node(s) were not for team a"
	}
	return ""
}

// declared is the same, and says what it reads.
type declared struct{ teams }

func (declared) DeclareKeys() cluster.Keys { return cluster.Keys{PodAnnotations: []string{teamKey}} }

// asked is the same, asked about each pod when a node is chosen for it.
type asked struct{}

func (asked) Name() string { return "example.com/teams" }

func (asked) VetoNode(t *cluster.Task, _ *cluster.Node) string {
	if t.Pod.Annotations[teamKey] == "a" {
		return "node(s) were not for team a"
	}
	return ""
}

// useOutside puts a configuration with a plugin from outside the tree in force.
func useOutside(w *loop.Loop, plugin framework.Plugin) {
	w.Configure("actions: allocate, backfill\ntiers:\n- plugins:\n  - {name: gang}\n  - {name: "+plugin.Name()+"}\n",
		scheduler.WithPlugin(harness.Made(plugin)))
}

// ofTeams adds a job with a pod of each team, in this order, of which one is enough.
func ofTeams(w *loop.Loop, teams ...string) {
	w.Set(fixture.Group("g", "default", 1))
	for i, team := range teams {
		w.Set(fixture.Pod(fmt.Sprintf("g-%d", i), fixture.In("g"), fixture.As("worker", i), fixture.Asks("cpu=1"), fixture.Annotated(teamKey, team)))
	}
}

func TestAPluginIsAskedAboutWhatItDeclares(t *testing.T) {
	for name, test := range map[string]struct {
		plugin framework.Plugin
		teams  []string
		want   []string
	}{
		"declared, the refused pod first":     {declared{}, []string{"a", "b"}, []string{"g-1"}},
		"declared, the refused pod last":      {declared{}, []string{"b", "a"}, []string{"g-0"}},
		"undeclared, it sees of no pod whose": {teams{}, []string{"a", "b"}, []string{"g-0", "g-1"}},
		"each pod asked about, refused first": {asked{}, []string{"a", "b"}, []string{"g-1"}},
		"each pod asked about, refused last":  {asked{}, []string{"b", "a"}, []string{"g-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := loop.New(t, "").Set(fixture.Node("n1", "cpu=4"))
			useOutside(w, test.plugin)
			ofTeams(w, test.teams...)
			if got := slices.Sorted(maps.Keys(w.Bind())); !slices.Equal(got, test.want) {
				t.Errorf("bound are %v, want %v", got, test.want)
			}
		})
	}
}

func TestAPluginThatIsAddedLaterSeesWhatItDeclares(t *testing.T) {
	for _, teams := range [][]string{{"a", "b"}, {"b", "a"}} {
		w := loop.New(t, "")
		ofTeams(w, teams...)
		if bound := w.Bind(); len(bound) > 0 {
			t.Fatalf("bound %v to no node", bound)
		}
		if c := w.Cluster; c.Task(fixture.Key("g-0")).Class != c.Task(fixture.Key("g-1")).Class {
			t.Error("pods that differ in what nobody reads are of two classes")
		}
		useOutside(w, declared{})
		w.Set(fixture.Node("n1", "cpu=4"))
		want := fmt.Sprintf("g-%d", slices.Index(teams, "b"))
		if bound := w.Bind(); len(bound) != 1 || bound[want] == "" {
			t.Errorf("of teams %v bound are %v", teams, bound)
		}
		w.Configure("actions: allocate\ntiers:\n- plugins:\n  - {name: gang}\n")
		if bound := w.Bind(); len(bound) != 1 {
			t.Errorf("without the plugin bound are %v", bound)
		}
	}
}

// looking is a plugin that refuses pods with one value of an annotation, and notes what it is shown in addition to what
// it has declared.
type looking struct {
	key, refused string
	seen         map[string]bool
}

func (*looking) Name() string { return "example.com/looking" }

func (l *looking) DeclareKeys() cluster.Keys {
	return cluster.Keys{PodAnnotations: []string{l.key}, PodLabels: []string{l.key}}
}

func (l *looking) RefuseNode(k *cluster.Class, _ *cluster.Node) string {
	for _, shown := range []map[string]string{k.Pod.Annotations, k.Pod.Labels} {
		for key := range shown {
			l.seen[key] = true
		}
	}
	if k.Pod.Annotations[l.key] == l.refused || k.Pod.Labels[l.key] == l.refused {
		return "node(s) were not liked"
	}
	return ""
}

func TestWhatAPluginSaysOfAPodHoldsForThatPod(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=64"))
		keys, values := rapid.SampledFrom([]string{"k1", "k2", "k3"}), rapid.SampledFrom([]string{"x", "y", "z"})
		plugin := &looking{key: keys.Draw(r, "declared"), refused: values.Draw(r, "refused"), seen: map[string]bool{}}
		reloads := rapid.Bool().Draw(r, "reloads")
		if !reloads {
			useOutside(w, plugin)
		}
		want := map[string]bool{}
		for i := range rapid.IntRange(1, 8).Draw(r, "pods") {
			name := fmt.Sprintf("p-%d", i)
			w.Set(fixture.Group(name, "default", 1))
			pod := fixture.Pod(name, fixture.In(name), fixture.Asks("cpu=1"))
			isRefused := false
			for _, m := range []*map[string]string{&pod.Annotations, &pod.Labels} {
				for range rapid.IntRange(0, 3).Draw(r, "number") {
					if *m == nil {
						*m = map[string]string{}
					}
					(*m)[keys.Draw(r, "key")] = values.Draw(r, "value")
				}
				isRefused = isRefused || (*m)[plugin.key] == plugin.refused
			}
			want[name] = !isRefused
			w.Set(pod)
		}
		if reloads {
			w.Settle()
			useOutside(w, plugin)
		}
		bound := w.Bind()
		for name, isBound := range want {
			if (bound[name] != "") != isBound {
				r.Fatalf("pod %s is bound to %q, should be bound: %t", name, bound[name], isBound)
			}
		}
		for key := range plugin.seen {
			if key != plugin.key {
				r.Fatalf("it has declared %s and sees %s", plugin.key, key)
			}
		}
	})
}
