package scheduler_test

import (
	"testing"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// avoids is a plugin from outside the tree: it keeps pods off a node, and jobs of a name waiting.
type avoids struct{ node, job string }

func (avoids) Name() string { return "example.com/avoids" }

func (a avoids) RefuseNode(_ *cluster.Class, n *cluster.Node) string {
	if n.Name == a.node {
		return "node(s) were avoided"
	}
	return ""
}

func (a avoids) ValidateJob(j *cluster.Job) *verdict.Verdict {
	if j.ID.Name == a.job {
		return &verdict.Verdict{Code: verdict.Refused, Subject: a.Name(), Help: verdict.HelpJob}
	}
	return nil
}

// firstFit is an action from outside the tree: it places every pod on the first node that has room, by name.
type firstFit struct{}

func (firstFit) Name() string { return "example.com/first-fit" }

func (firstFit) Execute(s *framework.Session) {
	for _, q := range s.Queues() {
		for _, j := range s.Jobs(q) {
			x := s.Begin()
			for _, t := range s.Pending(j) {
				for _, n := range s.Cluster.Nodes() {
					if t.Status == cluster.Pending && n.Room(t.Request()) {
						x.Place(t, n)
					}
				}
			}
			x.Commit()
		}
	}
}

const outside = `
actions: example.com/first-fit
tiers:
- plugins:
  - name: example.com/avoids
    arguments: {node: n2, job: unlucky}
`

func TestActionsAndPluginsFromOutsideTheTreeAreUsed(t *testing.T) {
	extensions := []scheduler.Extension{
		scheduler.WithAction(framework.ActionFactory{Name: firstFit{}.Name(), New: func(conf.Arguments) (framework.Action, error) { return firstFit{}, nil }}),
		scheduler.WithPlugin(framework.PluginFactory{Name: avoids{}.Name(),
			Spec: conf.Spec{Arguments: []conf.Argument{{Name: "node", Kind: conf.String, Default: ""}, {Name: "job", Kind: conf.String, Default: ""}}},
			New: func(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
				return avoids{node: arguments.String("node"), job: arguments.String("job")}, nil
			}})}
	w := loop.New(t, "").Set(fixture.Node("n1", "cpu=1"), fixture.Node("n2", "cpu=1"), fixture.Node("n3", "cpu=1"))
	w.Configure(outside, extensions...)
	w.Set(fixture.Gang("lucky", "default", 2, 2))
	w.Set(fixture.Gang("unlucky", "default", 1, 1))
	if bound := w.Bind(); len(bound) != 2 || bound["lucky-0"] != "n1" || bound["lucky-1"] != "n2" {
		t.Errorf("their action bound %v", bound)
	}
	if reason, message := w.Condition("unlucky"); reason != "Refused" || message != "refused by example.com/avoids" {
		t.Errorf("their plugin says %s: %s", reason, message)
	}
	// With actions of ours their plugin counts as any.
	w.Configure("actions: allocate\ntiers:\n- plugins:\n  - {name: example.com/avoids, arguments: {node: n3}}\n", extensions...)
	if bound := w.Bind(); len(bound) != 0 {
		t.Errorf("bound %v to the node that is to be avoided", bound)
	}
	if reason, _ := w.Condition("unlucky"); reason != "NotEnoughResources" {
		t.Errorf("the reason is %s", reason)
	}
}
