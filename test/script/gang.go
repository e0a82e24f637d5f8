package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// gang is one whose pods are being read.
type gang struct {
	group *schedulingv1beta1.PodGroup
	pods  int
	tasks map[string]int // pods by task
}

func (p *parser) beginGang(words []string) error {
	g := &schedulingv1beta1.PodGroup{TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.volcano.sh/v1beta1", Kind: "PodGroup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: words[0], Annotations: map[string]string{}},
		Spec:       schedulingv1beta1.PodGroupSpec{Queue: schedulingv1beta1.DefaultQueue, MinMember: 1},
		Status:     schedulingv1beta1.PodGroupStatus{Phase: schedulingv1beta1.PodGroupInqueue}}
	topology := func() *schedulingv1beta1.NetworkTopologySpec {
		if g.Spec.NetworkTopology == nil {
			g.Spec.NetworkTopology = &schedulingv1beta1.NetworkTopologySpec{Mode: schedulingv1beta1.HardNetworkTopologyMode}
		}
		return g.Spec.NetworkTopology
	}
	for _, text := range words[1:] {
		w := split(text)
		var err error
		var n int64
		switch {
		case w.kind == "wants":
			if g.Spec.MinResources == nil {
				g.Spec.MinResources = &corev1.ResourceList{}
			}
			err = w.amount(g.Spec.MinResources)
		case w.kind == "min":
			n, err = w.number()
			if g.Spec.MinTaskMember == nil {
				g.Spec.MinTaskMember = map[string]int32{}
			}
			g.Spec.MinTaskMember[w.key] = int32(n)
		case w.kind == "annotation":
			g.Annotations[w.key] = w.value
		case w.key == "queue":
			g.Spec.Queue = w.value
		case w.key == "min":
			n, err = w.number()
			g.Spec.MinMember = int32(n)
		case w.key == "class":
			g.Spec.PriorityClassName = w.value
		case w.key == "preemptable":
			var b bool
			b, err = w.isTrue()
			g.Annotations[schedulingv1beta1.PreemptableKey] = strconv.FormatBool(b)
		case text == "pending":
			g.Status.Phase = schedulingv1beta1.PodGroupPending
		case text == "running":
			g.Status.Phase = schedulingv1beta1.PodGroupRunning
		case w.key == "tier":
			n, err = w.number()
			topology().HighestTierAllowed = new(int(n))
		case text == "soft":
			topology().Mode = schedulingv1beta1.SoftNetworkTopologyMode
		default:
			err = unknown("gang", text)
		}
		if err != nil {
			return err
		}
	}
	p.gang = &gang{group: g, tasks: map[string]int{}}
	p.add(g, "PodGroup")
	return nil
}

// member reads "pod …" or "3 pods …".
func (p *parser) member(text string) error {
	words := strings.Fields(text)
	count := 1
	if len(words) > 1 && words[1] == "pods" {
		n, err := strconv.Atoi(words[0])
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no number of pods", words[0])
		}
		count, words = n, words[1:]
	} else if words[0] != "pod" {
		return fmt.Errorf("%q stands where pods of the gang may stand", words[0])
	}
	var nodes []string
	for i := range count {
		pod := newPod(fmt.Sprintf("%s-%d", p.gang.group.Name, p.gang.pods))
		pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] = p.gang.group.Name
		controlled := true
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: p.gang.group.Name, UID: "job", Controller: &controlled}}
		task, on, err := describe(pod, words[1:])
		if err != nil {
			return err
		}
		if name := pod.Name; count > 1 && name != fmt.Sprintf("%s-%d", p.gang.group.Name, p.gang.pods) {
			return fmt.Errorf("%d pods cannot all be called %s", count, name)
		}
		if nodes = on; len(nodes) > 0 {
			if len(nodes) != count && len(nodes) != 1 {
				return fmt.Errorf("%d pods are on %d nodes", count, len(nodes))
			}
			runOn(pod, nodes[min(i, len(nodes)-1)])
		}
		pod.Annotations[batchv1alpha1.TaskSpecKey] = task
		pod.Annotations[batchv1alpha1.TaskIndexKey] = strconv.Itoa(p.gang.tasks[task])
		p.gang.tasks[task]++
		p.gang.pods++
		p.add(pod, "Pod")
	}
	return nil
}

func (p *parser) lonePod(words []string) error {
	pod := newPod(words[0])
	said := slices.DeleteFunc(slices.Clone(words[1:]), func(text string) bool {
		queue, is := strings.CutPrefix(text, "queue=")
		if is {
			pod.Annotations[schedulingv1beta1.QueueNameAnnotationKey] = queue
		}
		return is
	})
	_, nodes, err := describe(pod, said)
	if err != nil {
		return err
	}
	if len(nodes) > 1 {
		return fmt.Errorf("one pod is on %d nodes", len(nodes))
	}
	if len(nodes) == 1 {
		runOn(pod, nodes[0])
	}
	p.add(pod, "Pod")
	return nil
}

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending}}
}

func runOn(pod *corev1.Pod, node string) {
	pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
}

// describe reads what is said of a pod, and returns its task and nodes.
func describe(pod *corev1.Pod, words []string) (task string, nodes []string, err error) {
	task = "worker"
	main := &pod.Spec.Containers[0]
	for _, text := range words {
		w := split(text)
		var n int64
		switch {
		case w.isAmount():
			err = w.amount(&main.Resources.Requests)
		case w.kind == "label":
			pod.Labels[w.key] = w.value
		case w.kind == "annotation":
			pod.Annotations[w.key] = w.value
		case w.kind == "select":
			pod.Spec.NodeSelector = map[string]string{w.key: w.value}
		case w.kind == "near", w.kind == "apart":
			addTerm(pod, w)
		case w.kind == "spread":
			value, key := within(w.value)
			pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: key,
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{w.key: value}}})
		case w.key == "on":
			nodes = strings.Split(w.value, ",")
		case w.key == "name":
			pod.Name = w.value
		case w.key == "task":
			task = w.value
		case w.key == "task-priority":
			pod.Annotations[schedulingv1beta1.TaskPriorityAnnotationKey] = w.value
		case w.key == "preemptable":
			var b bool
			b, err = w.isTrue()
			pod.Annotations[schedulingv1beta1.PreemptableKey] = strconv.FormatBool(b)
		case w.key == "class":
			pod.Spec.PriorityClassName = w.value
		case w.key == "scheduler":
			pod.Spec.SchedulerName = w.value
		case w.key == "port":
			n, err = w.number()
			main.Ports = []corev1.ContainerPort{{ContainerPort: int32(n), HostPort: int32(n), Protocol: corev1.ProtocolTCP}}
		case text == "bare":
			pod.OwnerReferences = nil
		case text == "gated":
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "script"}}
		case w.key == "leaving":
			var grace time.Duration
			if grace, err = time.ParseDuration(w.value); err == nil {
				seconds, end := int64(grace.Seconds()), metav1.NewTime(Start.Add(grace))
				pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &end, &seconds
			}
		case w.key == "age":
			var age time.Duration
			if age, err = time.ParseDuration(w.value); err == nil {
				pod.CreationTimestamp = metav1.NewTime(Start.Add(-age))
			}
		case w.key == "grace":
			n, err = w.number()
			pod.Spec.TerminationGracePeriodSeconds = &n
		default:
			err = unknown("pod", text)
		}
		if err != nil {
			return "", nil, err
		}
	}
	return task, nodes, nil
}

// addTerm requires the pod to be near others on its node, or apart from them.
func addTerm(pod *corev1.Pod, w word) {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	value, key := within(w.value)
	terms := []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{w.key: value}}}}
	if w.kind == "near" {
		pod.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
	} else {
		pod.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
	}
}

// within cuts the label of nodes off the value of a label of pods, which is that of their names if none is given.
func within(text string) (value, topologyKey string) {
	value, topologyKey, isGiven := strings.Cut(text, "@")
	if !isGiven {
		topologyKey = corev1.LabelHostname
	}
	return value, topologyKey
}
