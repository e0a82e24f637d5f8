package framework_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
)

// newest is a plugin. It implements the interface of one question: which job of a queue is served first.
type newest struct{}

func (newest) Name() string { return "newest" }

func (newest) CompareJobs(a, b *cluster.Job) int { return b.Created().Compare(a.Created()) }

// newestFactory makes the plugin when a configuration names it.
func newestFactory() framework.PluginFactory {
	return framework.PluginFactory{Name: newest{}.Name(),
		New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) { return newest{}, nil }}
}

// firstFit is an action. It places each pod on the first node by name that has room. It binds the pods of a job if its
// minimum found room.
type firstFit struct{ most int }

func (firstFit) Name() string { return "first-fit" }

func (f firstFit) Execute(s *framework.Session) {
	for _, queue := range s.Queues() {
		for _, job := range s.Jobs(queue) {
			tried := s.Begin()
			for _, task := range s.Pending(job) {
				if node := f.nodeFor(s, task); node != nil {
					tried.Place(task, node)
				}
			}
			if tried.Placed() < job.MinMember {
				tried.Undo()
			} else {
				tried.Commit()
			}
		}
	}
}

func (f firstFit) nodeFor(s *framework.Session, task *cluster.Task) *cluster.Node {
	for _, node := range s.Cluster.Nodes() {
		if node.Room(task.Request()) && (f.most == 0 || len(node.Tasks()) < f.most) {
			return node
		}
	}
	return nil
}

// firstFitFactory declares the argument that the action takes in a configuration.
func firstFitFactory() framework.ActionFactory {
	most := conf.Argument{Name: "most", Kind: conf.Int, Default: 0, Doc: "How many pods a node may have; 0 does not bound it."}
	return framework.ActionFactory{Name: firstFit{}.Name(), Spec: conf.Spec{Arguments: []conf.Argument{most}},
		New: func(arguments conf.Arguments) (framework.Action, error) {
			return firstFit{most: int(arguments.Int("most"))}, nil
		}}
}

// cycle runs one cycle with the objects, one more plugin and one more action, and prints what is bound.
func cycle(configuration string, objects ...runtime.Object) {
	registry := scheduler.NewRegistry(scheduler.WithPlugin(newestFactory()), scheduler.WithAction(firstFitFactory()))
	parsed, err := conf.Parse([]byte(configuration), registry.Catalogue())
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := registry.Build(parsed)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := scheduler.New(scheduler.Options{Cluster: cache.Options{SchedulerNames: []string{"volcano"}}})
	if err := s.Use(policy); err != nil {
		fmt.Println(err)
		return
	}
	var events []cache.Event
	for _, object := range objects {
		events = append(events, cache.Set{Object: object})
	}
	for _, bind := range s.Cycle(fixture.Birth.Add(time.Hour), events).Decisions.Binds {
		fmt.Println(bind.Pod.Name, "→", bind.Node)
	}
}

// This plugin puts the newest job of a queue first. There is room for one of two jobs.
func ExamplePlugin() {
	older, newer := fixture.Group("older", "default", 1), fixture.Group("newer", "default", 1)
	newer.CreationTimestamp.Time = fixture.Birth.Add(time.Minute)
	cycle(`
actions: allocate
tiers:
- plugins:
  - name: newest
  - name: gang
`, fixture.Queue("default"), fixture.Node("n1", "cpu=2"), older, newer,
		fixture.Pod("old", fixture.In("older"), fixture.Asks("cpu=2")),
		fixture.Pod("new", fixture.In("newer"), fixture.Asks("cpu=2")))
	// Output: new → n1
}

// This action replaces allocate. It puts at most two pods on a node, so a job of three needs two nodes. A job that
// needs all of its five pods does not fit, and none of them is bound.
func ExampleAction() {
	cycle(`
actions: first-fit
configurations:
- name: first-fit
  arguments: {most: 2}
tiers:
- plugins:
  - name: priority
`, fixture.Queue("default"), fixture.Node("n1", "cpu=8"), fixture.Node("n2", "cpu=8"),
		fixture.Group("five", "default", 5), fixture.Group("three", "default", 3),
		fixture.Pod("three-0", fixture.In("three")), fixture.Pod("three-1", fixture.In("three")), fixture.Pod("three-2", fixture.In("three")),
		fixture.Pod("five-0", fixture.In("five")), fixture.Pod("five-1", fixture.In("five")), fixture.Pod("five-2", fixture.In("five")),
		fixture.Pod("five-3", fixture.In("five")), fixture.Pod("five-4", fixture.In("five")))
	// Output:
	// three-0 → n1
	// three-1 → n1
	// three-2 → n2
}
