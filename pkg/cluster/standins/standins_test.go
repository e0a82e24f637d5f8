package standins_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

// executors is how many pods the application expects after its driver. Each requests one CPU.
const executors = 3

// application is the PodGroup of an application with a driver and some executors. parameters say how it waits.
func application(parameters string, options ...func(*schedulingv1beta1.PodGroup)) *schedulingv1beta1.PodGroup {
	g := fixture.Group("app", "q", 1+executors, append(options, fixture.NeedingOf("driver", 1), fixture.NeedingOf("executor", executors))...)
	g.Annotations[yunikorn.TaskGroupsKey] = fmt.Sprintf(`[{"name": "driver", "minMember": 1, "minResource": {"cpu": "1"}},
		{"name": "executor", "minMember": %d, "minResource": {"cpu": "1"}}]`, executors)
	g.Annotations[yunikorn.GangParametersKey] = parameters
	return g
}

// member is a pod of the application.
func member(name, role string, options ...func(*corev1.Pod)) *corev1.Pod {
	return fixture.Pod(name, append([]func(*corev1.Pod){fixture.In("app"), fixture.As(role, 0), fixture.Labelled(yunikorn.AppIDKey, "app")}, options...)...)
}

// start returns a cluster of two nodes with two CPUs each, a queue, and more.
func start(objects ...runtime.Object) *cache.Cache {
	c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
	show(c, fixture.Node("n1", "cpu=2"), fixture.Node("n2", "cpu=2"), fixture.Queue("q"))
	show(c, objects...)
	return c
}

func show(c *cache.Cache, objects ...runtime.Object) {
	for _, o := range objects {
		c.Apply(cache.Set{Object: o})
	}
	c.Settle()
}

func app(c *cache.Cache) *cluster.Job { return c.Job(cluster.GroupID(fixture.Key("app"))) }

// place gives all that waits of the application the first node with room, as an action may.
func place(c *cache.Cache) {
	for _, t := range app(c).Pending(cluster.CompareTasks) {
		if at := slices.IndexFunc(c.Nodes(), func(n *cluster.Node) bool { return n.Room(t.Request()) }); at >= 0 {
			c.Place(t, c.Nodes()[at])
			c.Commit(t)
		}
	}
	c.Keep()
}

// held returns an application that has nodes for all its pods, of which only the driver exists.
func held(parameters string, more ...runtime.Object) *cache.Cache {
	c := start(append(more, application(parameters), member("driver", "driver"))...)
	place(c)
	c.StandIns.Follow(fixture.Birth)
	return c
}

func count(c *cache.Cache, status cluster.Status) int { return len(app(c).StandIns(status)) }

// used are the mCPUs that all pods and stand-ins have on nodes, and what the queue is charged for them.
func used(c *cache.Cache) (onNodes, inQueue int64) {
	return c.Used.At(resources.CPU), c.Queue("q").Own.Allocated.At(resources.CPU)
}

func Example() {
	c := start(application(""), member("driver", "driver"))
	tell := func(when string) {
		onNodes, inQueue := used(c)
		fmt.Printf("%s: %d stand-ins wait, %d hold nodes; %d mCPU are used, %d in the queue\n", when, count(c, cluster.Pending), count(c, cluster.Awaited), onNodes, inQueue)
	}

	tell("the driver waits")
	place(c)
	c.StandIns.Follow(fixture.Birth) // the end of a cycle
	tell("the gang has its nodes")

	show(c, member("e0", "executor"))
	pod, standIn := c.Task(fixture.Key("e0")), app(c).StandIns(cluster.Awaited)[0]
	node := standIn.Node
	c.DropStandIn(standIn)
	c.Place(pod, node)
	c.Commit(pod)
	c.Keep()
	tell("an executor has come")
	// Output:
	// the driver waits: 3 stand-ins wait, 0 hold nodes; 0 mCPU are used, 0 in the queue
	// the gang has its nodes: 0 stand-ins wait, 3 hold nodes; 4000 mCPU are used, 4000 in the queue
	// an executor has come: 0 stand-ins wait, 2 hold nodes; 4000 mCPU are used, 4000 in the queue
}

// states are those that a pod may be in, and whether it counts then, and lives.
var states = []struct {
	name            string
	option          func(*corev1.Pod) // nil if there is no pod
	counts, isAlive bool
}{
	{"there is none", nil, false, false},
	{"it waits", func(*corev1.Pod) {}, true, true},
	{"it runs", fixture.On("n1"), true, true},
	{"it has succeeded", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, true, false},
	{"it has failed", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false, false},
	{"it is being deleted", func(p *corev1.Pod) { p.DeletionTimestamp = &p.CreationTimestamp }, false, false},
}

func TestEachMissingPodHasOneStandInUntilTheGangHasNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := start(application(""))
		pods := []string{"driver", "e0", "e1", "e2", "e3"}
		now := make([]int, len(pods))
		for range rapid.IntRange(1, 12).Draw(t, "events") {
			i := rapid.IntRange(0, len(pods)-1).Draw(t, "pod")
			now[i] = rapid.IntRange(0, len(states)-1).Draw(t, "state")
			role := "executor"
			if i == 0 {
				role = "driver"
			}
			if option := states[now[i]].option; option == nil {
				c.Apply(cache.Delete{Object: member(pods[i], role)})
			} else {
				c.Apply(cache.Set{Object: member(pods[i], role, option)})
			}
			c.Settle()
			want, isAlive := map[string]int{"driver": 1, "executor": executors}, false
			for i := range pods {
				if state := states[now[i]]; state.counts {
					want[map[bool]string{true: "driver", false: "executor"}[i == 0]]--
				}
				isAlive = isAlive || states[now[i]].isAlive
			}
			for role, missing := range want {
				if missing = max(missing, 0); !isAlive {
					missing = 0
				}
				have := 0
				for _, task := range app(c).StandIns(cluster.Pending) {
					if task.Role == role {
						have++
					}
				}
				if have != missing {
					t.Fatalf("with pods in states %v, %d stand-ins of role %s wait, want %d", now, have, role, missing)
				}
			}
		}
	})
}

func TestStandInsOnlyGoOnceTheGangHasItsNodes(t *testing.T) {
	c := held("")
	if have := count(c, cluster.Awaited); have != executors {
		t.Fatalf("%d stand-ins hold nodes", have)
	}
	all := func() int { return count(c, cluster.Awaited) + count(c, cluster.Pending) }
	c.Apply(cache.Delete{Object: fixture.Node("n2", "")})
	c.Settle()
	if all() != executors || count(c, cluster.Pending) == 0 {
		t.Errorf("a node is lost, and %d stand-ins are left, %d of which wait", all(), count(c, cluster.Pending))
	}
	show(c, fixture.Node("n2", "cpu=2"))
	place(c)
	standIn := app(c).StandIns(cluster.Awaited)[0]
	c.DropStandIn(standIn) // its place is a pod's
	c.Keep()
	show(c, member("e0", "executor", fixture.On("n1")))
	c.Apply(cache.Delete{Object: member("e0", "executor")})
	c.Settle()
	if all() != executors-1 {
		t.Errorf("the pod that took the place of a stand-in has ended, and there are %d stand-ins", all())
	}
}

func TestAGangThatHasWaitedTooLongIsNone(t *testing.T) {
	const timeout = 60 * time.Second
	for name, test := range map[string]struct {
		parameters string
		isTried    bool
		after      time.Duration
		standIns   int
		minimum    int
		fails      bool
	}{
		"it waits still":         {"placeholderTimeoutInSeconds=60", true, timeout - 1, executors, 1 + executors, false},
		"it waited too long":     {"placeholderTimeoutInSeconds=60", true, timeout, 0, 1, false},
		"and its pods must fail": {"placeholderTimeoutInSeconds=60 gangSchedulingStyle=Hard", true, timeout, 0, 1, true},
		"it was not tried yet":   {"placeholderTimeoutInSeconds=60", false, time.Hour, executors, 1 + executors, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(application(test.parameters), member("driver", "driver"))
			if test.isTried {
				app(c).Verdict = &verdict.Verdict{Code: verdict.Refused}
			}
			c.StandIns.Follow(fixture.Birth.Add(test.after))
			if have := count(c, cluster.Pending); have != test.standIns || app(c).MinMember != test.minimum || app(c).IsFailing() != test.fails {
				t.Errorf("%d stand-ins wait, the minimum is %d, its pods fail: %t; want %d, %d, %t", have, app(c).MinMember, app(c).IsFailing(),
					test.standIns, test.minimum, test.fails)
			}
		})
	}
}

func TestNodesAreHeldForPodsNoLongerThanAllowed(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration
		want  int
	}{
		"as long as the gang says": {time.Minute - 1, executors},
		"and no longer":            {time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := held("placeholderTimeoutInSeconds=60")
			c.StandIns.Follow(fixture.Birth.Add(test.after))
			if have := count(c, cluster.Awaited); have != test.want {
				t.Errorf("%d nodes are held, want %d", have, test.want)
			}
		})
	}
	t.Run("the flag of the scheduler is shorter", func(t *testing.T) {
		c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}, LongestHold: time.Second})
		show(c, fixture.Queue("q"), application("placeholderTimeoutInSeconds=60"), member("driver", "driver"))
		if have := c.StandIns.NextDue(fixture.Birth); !have.Equal(fixture.Birth.Add(time.Second)) {
			t.Errorf("it has waited too long at %s", have)
		}
	})
}

// limit is a ResourceQuota of so many pods, one of which is the driver.
func limit(pods string) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "limit", UID: "limit"}}
	q.Spec.Hard, q.Status.Hard, q.Status.Used = fixture.List("pods="+pods), fixture.List("pods="+pods), fixture.List("pods=1")
	return q
}

func TestAQuotaAllowsTheStandInsOfAGangOrNone(t *testing.T) {
	for pods, want := range map[string]int{"4": executors, "3": 0, "1": 0} {
		c := start(limit(pods), application(""), member("driver", "driver"))
		if have := count(c, cluster.Pending); have != want || (app(c).Expected.Refusal == nil) != (want > 0) {
			t.Errorf("of %s pods: %d stand-ins wait, want %d; refused: %v", pods, have, want, app(c).Expected.Refusal)
		}
		show(c, limit("9"))
		if have := count(c, cluster.Pending); have != executors {
			t.Errorf("once the quota allows 9 pods, %d stand-ins wait", have)
		}
	}
}

func TestNodesAreGivenUpThatAQuotaDoesNotAllowForAWhile(t *testing.T) {
	c := held("")
	show(c, limit("2"))
	for after, want := range []int{executors, executors, 0} {
		c.StandIns.Follow(fixture.Birth.Add(time.Duration(after) * 6 * time.Second))
		if have := count(c, cluster.Awaited); have != want {
			t.Errorf("after %d seconds %d nodes are held, want %d", 6*after, have, want)
		}
	}
}

func TestARestartedProcessHoldsTheRecordedNodesAgain(t *testing.T) {
	since := metav1.NewTime(fixture.Birth)
	record := decision.StandInRecord{Since: &since, Nodes: map[string][]string{"executor": {"n1", "n2", "gone"}}}
	recorded := func(g *schedulingv1beta1.PodGroup) { g.Annotations[schedulingv1beta1.StandInsKey] = record.Encode() }
	c := start(application("", recorded), member("driver", "driver", fixture.On("n1")))
	var nodes []string
	for _, t := range app(c).StandIns(cluster.Awaited) {
		nodes = append(nodes, t.NodeName())
	}
	if !slices.Equal(nodes, []string{"n1", "n2"}) || count(c, cluster.Pending) != 1 {
		t.Errorf("held again are %v, and %d wait for a node", nodes, count(c, cluster.Pending))
	}
	byUser := start(application("", recorded, fixture.PendingAdmission), member("driver", "driver"))
	if have := count(byUser, cluster.Awaited); have != 0 {
		t.Errorf("a record on a PodGroup that was not admitted holds %d nodes", have)
	}
}
