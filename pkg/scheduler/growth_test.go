package scheduler_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/metrics"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// stored counts the entries of all maps and slices that can be reached from a value, by the type and field that holds
// them.
type stored struct {
	seen  map[uintptr]bool
	count map[string]int
}

// countStored returns the counts of some values together.
func countStored(values ...any) map[string]int {
	s := &stored{seen: map[uintptr]bool{}, count: map[string]int{}}
	for _, v := range values {
		s.walk("", reflect.ValueOf(v))
	}
	return s.count
}

func (s *stored) walk(field string, v reflect.Value) {
	if slices.Contains(limited, field) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && s.isNew(v) {
			s.walk(field, v.Elem())
		}
	case reflect.Interface:
		if !v.IsNil() {
			s.walk(field, v.Elem())
		}
	case reflect.Struct:
		s.fields(v)
	case reflect.Map:
		if v.IsNil() || !s.isNew(v) {
			return
		}
		s.count[field] += v.Len()
		for entries := v.MapRange(); entries.Next(); {
			s.walk(field, entries.Key())
			s.walk(field, entries.Value())
		}
	case reflect.Slice:
		s.count[field] += v.Len()
		fallthrough
	case reflect.Array:
		if k := v.Type().Elem().Kind(); k >= reflect.Array && k != reflect.String && k != reflect.UnsafePointer {
			for i := range v.Len() {
				s.walk(field, v.Index(i))
			}
		}
	}
}

func (s *stored) isNew(v reflect.Value) bool {
	was := s.seen[v.Pointer()]
	s.seen[v.Pointer()] = true
	return !was
}

func (s *stored) fields(v reflect.Value) {
	t := v.Type()
	if strings.HasPrefix(t.PkgPath(), "k8s.io/api") { // objects, which do not grow
		return
	}
	for i := range v.NumField() {
		f := v.Field(i)
		if f.CanAddr() {
			f = reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem() // fields that are not exported too
		}
		s.walk(strings.TrimPrefix(t.PkgPath(), "hekla.sh/hekla/")+"."+t.Name()+"."+t.Field(i).Name, f)
	}
}

// churn is a cluster on which a tenant makes jobs and deletes them again. Each has names that no other has, in a field
// that is another one from job to job.
type churn struct {
	*loop.Loop
	metrics *metrics.Metrics
	made    int
}

// fields are where a job has a name of its own.
var fields = []func(id string, number int, g *schedulingv1beta1.PodGroup, p *corev1.Pod) []runtime.Object{
	func(id string, _ int, g *schedulingv1beta1.PodGroup, p *corev1.Pod) []runtime.Object {
		g.Namespace, p.Namespace = "ns-"+id, "ns-"+id
		return []runtime.Object{&corev1.Namespace{ObjectMeta: fixture.Queue("ns-" + id).ObjectMeta}}
	},
	func(id string, _ int, g *schedulingv1beta1.PodGroup, _ *corev1.Pod) []runtime.Object {
		g.Spec.Queue = "queue-" + id
		return []runtime.Object{fixture.Queue(g.Spec.Queue)}
	},
	func(id string, _ int, g *schedulingv1beta1.PodGroup, _ *corev1.Pod) []runtime.Object {
		g.Spec.Queue = "none-" + id // there is no such queue
		return nil
	},
	func(id string, number int, g *schedulingv1beta1.PodGroup, p *corev1.Pod) []runtime.Object {
		g.Spec.PriorityClassName = "class-" + id
		fixture.Asks("cpu=4")(p)
		return []runtime.Object{fixture.PriorityClass(g.Spec.PriorityClassName, int32(10+number))}
	},
	func(id string, _ int, _ *schedulingv1beta1.PodGroup, p *corev1.Pod) []runtime.Object {
		n := fixture.Node("node-"+id, "cpu=2", func(n *corev1.Node) {
			n.Labels["label-"+id] = id
			n.Spec.Taints = []corev1.Taint{{Key: "taint-" + id, Value: id, Effect: corev1.TaintEffectNoSchedule}}
			n.Status.Images = []corev1.ContainerImage{{Names: []string{"image-" + id}, SizeBytes: 1 << 30}}
		})
		fixture.Selecting("label-"+id, id)(p)
		p.Spec.Tolerations = []corev1.Toleration{{Key: "taint-" + id, Operator: corev1.TolerationOpExists}}
		return []runtime.Object{n}
	},
	func(id string, _ int, g *schedulingv1beta1.PodGroup, p *corev1.Pod) []runtime.Object {
		fixture.Asks("cpu=1 example.com/" + id + "=1")(p)
		return nil
	},
	func(id string, _ int, g *schedulingv1beta1.PodGroup, _ *corev1.Pod) []runtime.Object {
		fixture.Wanting("cpu=1 example.com/" + id + "=1")(g)
		return nil
	},
	func(id string, number int, _ *schedulingv1beta1.PodGroup, p *corev1.Pod) []runtime.Object {
		fixture.Asks(fmt.Sprintf("cpu=%dm", 1000+number))(p)
		p.Spec.Containers[0].Image = "image-" + id
		p.Labels["key-"+id], p.Annotations["key-"+id] = id, id
		fixture.As("role-"+id, number)(p)
		return nil
	},
	func(id string, _ int, _ *schedulingv1beta1.PodGroup, p *corev1.Pod) []runtime.Object {
		fixture.Selecting("key-"+id, id)(p)
		return nil
	},
	func(id string, _ int, _ *schedulingv1beta1.PodGroup, p *corev1.Pod) []runtime.Object {
		fixture.Labelled("app", id)(p)
		fixture.ApartFrom("app", id)(p)
		p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = "key-" + id
		return nil
	},
	func(id string, _ int, _ *schedulingv1beta1.PodGroup, p *corev1.Pod) []runtime.Object {
		fixture.Labelled("app", id)(p)
		fixture.Spreading(corev1.LabelHostname, id)(p)
		return []runtime.Object{fixture.Budget("budget-"+id, id, 1)}
	},
	func(id string, number int, _ *schedulingv1beta1.PodGroup, p *corev1.Pod) []runtime.Object {
		fixture.OnPort(int32(1 + number%60000))(p)
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "gate-" + id}}
		return nil
	},
	func(id string, _ int, _ *schedulingv1beta1.PodGroup, p *corev1.Pod) []runtime.Object {
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim-" + id}}}}
		return []runtime.Object{fixture.Claim("claim-"+id, "class-"+id), fixture.LateClass("class-"+id, fixture.Provisioner)}
	},
	func(id string, _ int, _ *schedulingv1beta1.PodGroup, p *corev1.Pod) []runtime.Object {
		p.Spec.SchedulerName = "scheduler-" + id
		return []runtime.Object{fixture.HyperNode("hypernode-"+id, 1, "node-0")}
	},
	func(id string, _ int, _ *schedulingv1beta1.PodGroup, p *corev1.Pod) []runtime.Object {
		delete(p.Annotations, schedulingv1beta1.KubeGroupNameAnnotationKey)
		return nil
	},
}

// run creates and deletes so many jobs, some at a time.
func (c *churn) run(tb testing.TB, jobs int) {
	const atOnce = 60
	for range jobs / atOnce {
		var objects []runtime.Object
		for range atOnce {
			id := fmt.Sprintf("x%06d", c.made)
			group, pod := fixture.Group(id, "default", 1, fixture.PendingAdmission), fixture.Pod(id, fixture.In(id))
			objects = append(objects, fields[c.made%len(fields)](id, c.made, group, pod)...)
			objects = append(objects, group, pod)
			c.made++
		}
		c.cycle(tb, loop.Events(objects))
		c.cycle(tb, nil)
		slices.Reverse(objects) // the pods first
		var gone []cache.Event
		for _, o := range objects {
			gone = append(gone, cache.Delete{Object: o})
		}
		c.cycle(tb, gone)
		c.metrics.Totals(c.Scheduler.Cluster(), c.Scheduler.Policy())
	}
}

// cycle runs a cycle. Pods that it evicts are gone, and others come in their place.
func (c *churn) cycle(tb testing.TB, events []cache.Event) {
	c.Now = c.Now.Add(100 * time.Millisecond)
	r := c.Scheduler.Cycle(c.Now, events)
	if r.Panic != "" {
		tb.Fatal(r.Panic)
	}
	c.metrics.Plans(c.Scheduler.Cluster(), r.Decisions.Plans, r.Decisions.Ended)
	c.metrics.Placed(c.Scheduler.Cluster(), r.Decisions.Binds, c.Now)
	for _, b := range r.Decisions.Binds {
		if t := c.Task(b.Pod); t != nil {
			pod := t.Pod.DeepCopy()
			fixture.On(b.Node)(pod)
			c.Scheduler.Cache().Apply(cache.Set{Object: pod})
		}
	}
	for _, p := range r.Decisions.Plans {
		for _, e := range p.Evictions {
			victim := c.Task(e.Pod).Pod.DeepCopy()
			c.Scheduler.Cache().Apply(cache.Delete{Object: victim})
			c.made++
			victim.Name = fmt.Sprintf("again-%d", c.made)
			victim.UID = types.UID(victim.Name)
			victim.Spec.NodeName, victim.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
			c.Scheduler.Cache().Apply(cache.Set{Object: victim})
		}
	}
}

// limited are the fields with a limit of their own, by number, by bytes, or by what there is. What they hold is not
// counted.
var limited = []string{
	"internal/journal.Journal.chunks", "internal/journal.Journal.jobs", "internal/journal.Journal.queues", "internal/journal.Journal.pods",
	"internal/journal/history.History.running",
	"internal/placement.kind.question", "internal/placement.kind.later",
	"internal/placement/vacancies.Table.bounds", "internal/placement/explained.Answers.kept", "internal/placement/objects.Table.answers",
	"internal/placement/reason.Refusals.all", "internal/placement/reason.Refusals.known",
	"internal/placement/kube.taints.sets", "internal/placement/kube.taints.all", "internal/placement/kube.Question.tainted", "internal/placement/kube.mirror.terms",
	"internal/placement/kube/domains.Topology.keys",
	"internal/placement/kube/population.Population.changes",
	"pkg/cluster/internal/changelog.Log[int32].entries", "pkg/cluster/internal/changelog.Log[hekla.sh/hekla/pkg/cluster/supplies.Key].entries",
	"pkg/cluster/podclass.Table.amounts", "pkg/cluster/pods.Table.young", "pkg/cluster/pods.Table.old", "pkg/cluster/pods.Table.amounts",
}

// TestNothingGrowsWithTheNamesOfWhatIsGone counts what a scheduler and its metrics hold, before and after many jobs
// that have come and gone.
func TestNothingGrowsWithTheNamesOfWhatIsGone(t *testing.T) {
	c := &churn{Loop: loop.New(t, evicting), metrics: metrics.New()}
	for i := range 10 {
		node := fmt.Sprintf("node-%d", i)
		c.Set(fixture.Node(node, "cpu=8"), fixture.Group("runs-"+node, "default", 1), fixture.Pod("runs-"+node, fixture.In("runs-"+node), fixture.Asks("cpu=4"),
			fixture.On(node), fixture.Annotated(schedulingv1beta1.PreemptableKey, "true")))
	}
	const jobs = 3000
	c.run(t, jobs)
	before := countStored(c.Scheduler, c.metrics)
	c.run(t, jobs)
	after := countStored(c.Scheduler, c.metrics)
	least := jobs / len(fields) / 4
	for name, count := range after {
		if count-before[name] >= least {
			t.Errorf("%s has %d entries and had %d before %d jobs came and went", name, count, before[name], jobs)
		}
	}
}
