package cache

import (
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/wake"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/resources"
)

// All objects of these tests live in one namespace, and are born at one time unless a test says otherwise.
const namespace = "ns"

var birth = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newCluster(events ...Event) *Cache {
	c := New(Options{SchedulerNames: []string{"volcano"}})
	c.Apply(events...)
	c.Settle()
	return c
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name + "-uid"),
		CreationTimestamp: metav1.Time{Time: birth}}
}

// list reads "cpu=1 memory=2Gi".
func list(text string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for _, word := range strings.Fields(text) {
		name, quantity, _ := strings.Cut(word, "=")
		l[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return l
}

func (c *Cache) vector(text string) resources.Vector { return c.Resources.Vector(list(text)) }

type podOption func(*corev1.Pod)

// pod is a pod of ours that asks for one CPU and waits.
func pod(name string, options ...podOption) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: meta(name), Spec: corev1.PodSpec{SchedulerName: "volcano",
		Containers: []corev1.Container{{Name: "main"}}}}
	p.Annotations, p.Labels = map[string]string{}, map[string]string{}
	p.Status.Phase = corev1.PodPending
	asks("cpu=1")(p)
	for _, option := range options {
		option(p)
	}
	return p
}

func asks(text string) podOption {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list(text) }
}

func in(group string) podOption {
	return func(p *corev1.Pod) { p.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] = group }
}

func role(name string) podOption {
	return func(p *corev1.Pod) { p.Annotations[batchv1alpha1.TaskSpecKey] = name }
}

func annotated(name, value string) podOption {
	return func(p *corev1.Pod) { p.Annotations[name] = value }
}

func labelled(name, value string) podOption {
	return func(p *corev1.Pod) { p.Labels[name] = value }
}

func uid(id string) podOption { return func(p *corev1.Pod) { p.UID = types.UID(id) } }

func born(at time.Time) podOption {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.Time{Time: at} }
}

func on(node string) podOption { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func phase(phase corev1.PodPhase) podOption { return func(p *corev1.Pod) { p.Status.Phase = phase } }

func scheduler(name string) podOption { return func(p *corev1.Pod) { p.Spec.SchedulerName = name } }

func deletedAt(at time.Time) podOption {
	return func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: at} }
}

func deleting(p *corev1.Pod) { deletedAt(birth.Add(time.Hour))(p) }

func gated(p *corev1.Pod) {
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/hold"}}
}

// keepsAwayFrom gives a pod required anti-affinity to pods with a label.
func keepsAwayFrom(name, value string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey:   corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{name: value}},
			}},
		}}
	}
}

func node(name, allocatable string, changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: meta(name)}
	n.Namespace = ""
	n.Status.Allocatable = list(allocatable)
	for _, change := range changes {
		change(n)
	}
	return n
}

func notReady(n *corev1.Node) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func reborn(n *corev1.Node) { n.UID += "-again" }

func group(name, queue string, changes ...func(*schedulingv1beta1.PodGroup)) *schedulingv1beta1.PodGroup {
	g := &schedulingv1beta1.PodGroup{ObjectMeta: meta(name)}
	g.Spec.Queue, g.Spec.MinMember = queue, 1
	for _, change := range changes {
		change(g)
	}
	return g
}

func needs(text string) func(*schedulingv1beta1.PodGroup) {
	return func(g *schedulingv1beta1.PodGroup) { l := list(text); g.Spec.MinResources = &l }
}

func at(phase schedulingv1beta1.PodGroupPhase) func(*schedulingv1beta1.PodGroup) {
	return func(g *schedulingv1beta1.PodGroup) { g.Status.Phase = phase }
}

func ranked(class string) func(*schedulingv1beta1.PodGroup) {
	return func(g *schedulingv1beta1.PodGroup) { g.Spec.PriorityClassName = class }
}

func queue(name, parent string, changes ...func(*schedulingv1beta1.Queue)) *schedulingv1beta1.Queue {
	q := &schedulingv1beta1.Queue{ObjectMeta: meta(name)}
	q.Namespace = ""
	q.Spec.Parent = parent
	for _, change := range changes {
		change(q)
	}
	return q
}

func priorityClass(name string, value int32) *schedulingv1.PriorityClass {
	p := &schedulingv1.PriorityClass{ObjectMeta: meta(name), Value: value}
	p.Namespace = ""
	return p
}

// sound fails the test if the audit finds anything.
func sound(t interface {
	Helper()
	Fatalf(string, ...any)
}, c *Cache) {
	t.Helper()
	if found := c.Audit(); len(found) > 0 {
		t.Fatalf("audit:\n%s", strings.Join(found, "\n"))
	}
}

// amounts fails the test if a vector is not what a resource list says.
func amounts(t *testing.T, c *Cache, what string, have resources.Vector, want string) {
	t.Helper()
	if !have.Equal(c.vector(want)) {
		t.Errorf("%s is %v, want %s", what, c.Resources.List(have), want)
	}
}

// status fails the test if a task is not in a status, or on a node ("" for none).
func status(t *testing.T, c *Cache, name string, want cluster.Status, node string) {
	t.Helper()
	task := c.Task(key(name))
	if task == nil {
		t.Errorf("task %s is not known", name)
		return
	}
	have := ""
	if task.Node != nil {
		have = task.Node.Name
	}
	if task.Status != want || have != node {
		t.Errorf("task %s is %s on %q, want %s on %q", name, task.Status, have, want, node)
	}
}

// bind does what a cycle does to bind a task.
func (c *Cache) bind(name, node string) {
	task := c.Task(key(name))
	c.Place(task, c.Node(node))
	c.Commit(task)
	c.Keep()
}

// promise does what a cycle does for a plan that nominates a node for a task, with these victims.
func (c *Cache) promise(name, node string, victims ...string) *cluster.Plan {
	t := c.Task(key(name))
	c.Pipeline(t, c.Node(node))
	return c.plan("for "+name, t.Job, victims...)
}

// plan does what a cycle does to evict some tasks for a job.
func (c *Cache) plan(id string, j *cluster.Job, victims ...string) *cluster.Plan {
	p := &cluster.Plan{ID: id, Job: j, Evictions: len(victims)}
	for _, victim := range victims {
		v := c.Task(key(victim))
		c.Evict(v)
		p.Victims = append(p.Victims, v)
	}
	c.Keep()
	c.Plans().Adopt(p)
	return p
}

// counts is what has happened so far that jobs may hope for.
func counts(c *Cache) wake.Counts { return c.Present(&cluster.Job{}).Counts }

// The times of package model.
const (
	lingersAfter = 30 * time.Second
	postponement = 100 * time.Millisecond
)

// jobID is the ID of the job of a PodGroup.
func jobID(name string) cluster.JobID { return cluster.GroupID(key(name)) }
