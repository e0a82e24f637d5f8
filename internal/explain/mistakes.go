package explain

import (
	"iter"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/explain/mistakes"
	"hekla.sh/hekla/internal/explain/queued"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/framework"
)

// inventory is what the nodes have that jobs name, as of a version of the Node objects.
type inventory struct {
	version uint64
	of      *mistakes.Inventory // nil before the first question
}

// inventory returns what the nodes have now.
func (m *Model) inventory() *mistakes.Inventory {
	m.objects.follow(m)
	if m.nodes.of == nil || m.nodes.version != m.objects.version {
		m.nodes = inventory{m.objects.version, mistakes.NewInventory(m.nodeObjects())}
	}
	return m.nodes.of
}

// nodeObjects are the Node objects.
func (m *Model) nodeObjects() iter.Seq[*corev1.Node] {
	return func(yield func(*corev1.Node) bool) {
		for _, n := range m.cluster.Nodes() {
			if n.Object != nil && !yield(n.Object) {
				return
			}
		}
	}
}

// mistakesOf returns the names in a job that nothing in the cluster has, each once.
func (m *Model) mistakesOf(j *cluster.Job) (found []mistakes.Mistake) {
	if j.Queue == nil && j.QueueName != "" {
		var known []string
		for _, q := range m.cluster.Queues() {
			known = append(known, q.Name)
		}
		found = append(found, mistakes.Of("there is no queue "+j.QueueName, j.QueueName, known))
	}
	if names := m.cache.SchedulerNames(); j.IsForeign {
		if meant := mistakes.Of("there may be no scheduler "+j.Scheduler(), j.Scheduler(), names); meant.Meant != "" {
			found = append(found, meant)
		}
	}
	if j.Group != nil {
		found = append(found, mistakes.Keys(j.Group.Labels, j.Group.Annotations)...)
		if least := j.Group.Spec.MinResources; least != nil { // before it is admitted there may be no pods
			found = append(found, m.inventory().Resources(*least)...)
		}
		found = append(found, m.priorityClasses(j.Group.Spec.PriorityClassName)...)
		if refused := noPriorityClass.FindStringSubmatch(j.Group.Annotations[schedulingv1beta1.PodsRefusedKey]); refused != nil {
			found = append(found, m.priorityClasses(refused[1])...)
		}
	}
	var pending []*cluster.Task
	for _, t := range j.Tasks() {
		if t.Status == cluster.Pending && t.Pod != nil {
			pending = append(pending, t)
		}
	}
	classes := cluster.OnePerClass(pending)
	for _, t := range classes[:min(len(classes), MaxClasses)] {
		found = append(found, mistakes.Keys(t.Pod.Labels, t.Pod.Annotations)...)
		found = append(found, m.inventory().Spec(&t.Pod.Object().Spec)...)
		found = append(found, m.priorityClasses(t.Pod.Object().Spec.PriorityClassName)...)
	}
	return distinct(found)
}

// noPriorityClass is how an API server refuses a pod whose PriorityClass does not exist.
var noPriorityClass = regexp.MustCompile(`no PriorityClass with name (\S+) was found`)

// builtIn begins the names of the PriorityClasses that an API server has of itself.
const builtIn = "system-"

// priorityClasses is the mistake if a name is that of no PriorityClass.
func (m *Model) priorityClasses(name string) []mistakes.Mistake {
	if name == "" || strings.HasPrefix(name, builtIn) || m.cluster.PriorityClass(name) != nil {
		return nil
	}
	return []mistakes.Mistake{mistakes.Of("there is no PriorityClass "+name, name, m.cluster.PriorityClassNames())}
}

// mistakesOfWorkload returns those of a Workload.
func (m *Model) mistakesOfWorkload(w *queued.Workload, of *workload.Workload) (found []mistakes.Mistake) {
	namespace, _, _ := strings.Cut(w.Workload, "/")
	locals, clusters := m.cache.Workloads.Reader.QueueNames(namespace)
	switch {
	case w.LocalQueue != "" && !slices.Contains(locals, w.LocalQueue):
		found = append(found, mistakes.Of("there is no LocalQueue "+w.LocalQueue+" in namespace "+namespace, w.LocalQueue, locals))
	case w.Wants != "" && !slices.Contains(clusters, w.Wants):
		found = append(found, mistakes.Of("there is no ClusterQueue "+w.Wants+", which LocalQueue "+w.LocalQueue+" names", w.Wants, clusters))
	}
	for i := range of.PodSets[:min(len(of.PodSets), MaxClasses)] {
		if template := of.PodSets[i].Template; template != nil {
			found = append(found, mistakes.Keys(template.Labels, template.Annotations)...)
			found = append(found, m.inventory().Spec(&template.Spec)...)
		}
	}
	return distinct(found)
}

func distinct(all []mistakes.Mistake) (found []mistakes.Mistake) {
	for _, one := range all {
		if !slices.Contains(found, one) {
			found = append(found, one)
		}
	}
	return found
}

// also returns what else keeps a job from starting for good, once the cause is put right: that no node could hold a pod
// even if it were empty, or what the queue or the cluster says besides.
func (m *Model) also(s *framework.Session, j *cluster.Job, c *Cause) []Cause {
	v := j.Verdict
	if v == nil {
		v = s.Validate(j)
	}
	switch {
	case v == nil || j.IsForeign:
	case v.Impossible != nil && c.Code == string(v.Impossible.Code()):
		own := *v
		own.Impossible = nil // which the cause says
		if own.IsNever() {
			return []Cause{{Code: string(own.Reason()), Message: own.Sentence(), Waits: true, Never: true, Where: whereOf(j, &own)}}
		}
	default:
		classes := cluster.OnePerClass(s.Pending(j))
		for _, t := range classes[:min(len(classes), MaxClasses)] {
			if !t.IsStandIn && len(c.Nodes) == 0 && m.countSuitable(t) == 0 {
				why := s.Impossible(t)
				further := Cause{Code: string(why.Code()), Waits: true, Never: true}
				further.impossible(why)
				return []Cause{further}
			}
		}
	}
	return nil
}
