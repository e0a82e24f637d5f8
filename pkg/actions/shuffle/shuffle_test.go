package shuffle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/pkg/actions/shuffle"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// chooser names pods.
type chooser struct {
	names   []string
	cluster *model.Cluster
}

func (*chooser) Name() string                       { return "chooser" }
func (c *chooser) OpenSession(s *framework.Session) { c.cluster = s.Cluster }
func (c *chooser) ChooseVictims() []framework.Chosen {
	var chosen []framework.Chosen
	for _, name := range c.names {
		chosen = append(chosen, framework.Chosen{Task: c.cluster.Task(fixture.Key(name)), Why: "its time is up"})
	}
	return chosen
}

func TestWhatPluginsNameIsEvictedOnce(t *testing.T) {
	c := &chooser{names: []string{"b", "a", "b", "waits", "foreign"}}
	s := harness.ForActions(t, []framework.ActionFactory{shuffle.Factory()}, c).Set(fixture.Node("n1", "cpu=8"), fixture.Group("g", "default", 0),
		fixture.Pod("a", fixture.In("g"), fixture.On("n1")), fixture.Pod("b", fixture.In("g"), fixture.On("n1")), fixture.Pod("waits", fixture.In("g")),
		fixture.Pod("foreign", fixture.On("n1")))
	s.Run(shuffle.Name)
	if diff := cmp.Diff([]string{"b a"}, s.Planned); diff != "" {
		t.Error(diff)
	}
	if s.Run(shuffle.Name); len(s.Planned) > 0 {
		t.Errorf("they are told again: %v", s.Planned)
	}
}

func TestWithoutAPodNamedThereIsNoPlan(t *testing.T) {
	s := harness.ForActions(t, []framework.ActionFactory{shuffle.Factory()}, &chooser{})
	if s.Run(shuffle.Name); len(s.Planned) > 0 {
		t.Errorf("there is one: %v", s.Planned)
	}
}
