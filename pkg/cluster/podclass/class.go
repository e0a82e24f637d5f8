package podclass

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"hekla.sh/hekla/pkg/resources"
)

// Class is the shape of a pod: all that placement needs to know of it. Equal pods share one, so that a question about
// a node is asked once for all of them.
type Class struct {
	// Pod is what any of them shows: the spec of one of them, with the labels and annotations, and the namespace if it matters, that
	// plugins have declared to read or terms of pods about each other ask for. The caller must not change it.
	Pod        *corev1.Pod
	Request    resources.Vector
	NonZero    [2]int64 // milli-CPU and bytes, with kube-scheduler's defaults where nothing is requested
	BestEffort bool     // requests nothing
	HasPorts   bool     // wants ports of the host
	HasTerms   bool     // has pod affinity, anti-affinity or spread constraints of its own
	Belonging           // what matters of the job and queue of its pods

	// Plain is the class of pods that are equal but for the volumes and devices they need: the class itself if it needs none.
	Plain *Class

	key         string
	users       int    // how many tasks have it, and classes that need supplies besides
	matched     bool   // a term of another pod may match it
	matchedWhen uint64 // the generation of the terms that matched is true for
}

// InUse reports whether any task still has the class.
func (k *Class) InUse() bool { return k.users > 0 }

// Users is how many tasks have the class; classes that need volumes or devices count for their plain one.
func (k *Class) Users() int { return k.users }

// NeedsSupplies reports whether the pods need volumes or devices, which not every node may have for them.
func (k *Class) NeedsSupplies() bool { return k.Plain != k }

// defaultRequests are what kube-scheduler assumes for balance where a container requests nothing.
var defaultRequests = corev1.ResourceList{
	corev1.ResourceCPU:    *resource.NewMilliQuantity(100, resource.DecimalSI),
	corev1.ResourceMemory: *resource.NewQuantity(200*1024*1024, resource.BinarySI),
}

// requestOptions make in-place resize and pod-level resources count as they do in kube-scheduler: the larger of what is
// asked for and what is still held.
var requestOptions = resourcehelper.PodResourcesOptions{
	UseStatusResources: true,
	InPlacePodLevelResourcesVerticalScalingEnabled: true,
}

// Request returns what a pod takes from a node.
func (t *Table) Request(pod *corev1.Pod) resources.Vector {
	v := t.index.Asked(resourcehelper.PodRequests(pod, requestOptions))
	v.Set(resources.Pods, 1)
	return v
}

// nonZero returns what kube-scheduler counts for balance. Where every container says what it requests, that is the
// request, and need not be added up again.
func (t *Table) nonZero(pod *corev1.Pod, request resources.Vector) [2]int64 {
	// Where a resize is infeasible, what counts is what the kubelet reports instead.
	if !resourcehelper.IsPodResizeInfeasible(pod) && requestsAll(pod.Spec.InitContainers) && requestsAll(pod.Spec.Containers) {
		return [2]int64{request.At(resources.CPU), request.At(resources.Memory)}
	}
	options := requestOptions
	options.NonMissingContainerRequests = defaultRequests
	if resourcehelper.IsPodLevelRequestsSet(pod) {
		// Then kube-scheduler assumes only what neither the pod nor any of its containers names.
		options.NonMissingContainerRequests = maps.Clone(defaultRequests)
		for name := range resourcehelper.PodRequests(pod, requestOptions) {
			delete(options.NonMissingContainerRequests, name)
		}
	}
	v := t.index.Asked(resourcehelper.PodRequests(pod, options))
	return [2]int64{v.At(resources.CPU), v.At(resources.Memory)}
}

func requestsAll(containers []corev1.Container) bool {
	for i := range containers {
		requests := containers[i].Resources.Requests
		_, cpu := requests[corev1.ResourceCPU]
		if _, memory := requests[corev1.ResourceMemory]; !cpu || !memory {
			return false
		}
	}
	return true
}

// shape is what tells two classes apart, besides the request.
type shape struct {
	Namespace    string                            `json:",omitempty"`
	Labels       map[string]string                 `json:",omitempty"`
	Selector     map[string]string                 `json:",omitempty"`
	Affinity     *corev1.Affinity                  `json:",omitempty"`
	Tolerations  []corev1.Toleration               `json:",omitempty"`
	Spread       []corev1.TopologySpreadConstraint `json:",omitempty"`
	Ports        []corev1.ContainerPort            `json:",omitempty"`
	Images       []string                          `json:",omitempty"`
	VolumeImages []string                          `json:",omitempty"`
	Annotations  map[string]string                 `json:",omitempty"`
	Belonging    *Belonging                        `json:",omitempty"`
}

// Of returns the class of a pod that waits for a node. belonging is what matters of its job and queue.
func (t *Table) Of(pod *corev1.Pod, belonging Belonging) *Class {
	request := t.Request(pod)
	s := shape{Selector: pod.Spec.NodeSelector, Affinity: pod.Spec.Affinity, Tolerations: pod.Spec.Tolerations,
		Spread: pod.Spec.TopologySpreadConstraints, Annotations: Pick(pod.Annotations, t.keys.PodAnnotations),
		Labels: Pick(pod.Labels, t.keys.PodLabels)}
	if t.keys.Namespace {
		s.Namespace = pod.Namespace
	}
	if !belonging.Equal(&Belonging{}) {
		s.Belonging = &belonging
	}
	s.readContainers(&pod.Spec)
	hasTerms := hasPodTerms(pod) || len(s.Spread) > 0
	if len(t.terms.terms) > 0 || hasTerms {
		s.Namespace, s.Labels = pod.Namespace, t.labelsThatMatter(pod)
	}
	// The parts of a pod always marshal: they came out of JSON.
	rest, _ := json.Marshal(&s)
	balance := t.nonZero(pod, request)
	plain := t.intern(request, balance, string(rest), func() *corev1.Pod { return specimen(pod, &s, nil) })
	plain.HasPorts, plain.HasTerms, plain.Belonging = len(s.Ports) > 0, hasTerms, belonging
	demand := t.demandOf(pod, request)
	if demand == nil {
		return plain
	}
	text, _ := json.Marshal(demand)
	k := t.intern(request, balance, string(rest)+string(text), func() *corev1.Pod { return specimen(pod, &s, demand) })
	k.HasPorts, k.HasTerms, k.Belonging = plain.HasPorts, hasTerms, belonging
	if k.Plain == k {
		k.Plain = plain
		plain.users++ // it is in use as long as this one is
	}
	return k
}

// readContainers reads which ports of the host and which images a pod wants. Init containers hold their ports only if they
// are sidecars.
func (s *shape) readContainers(spec *corev1.PodSpec) {
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		s.Images = append(s.Images, c.Image)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			s.readPorts(c)
		}
	}
	for i := range spec.Containers {
		s.Images = append(s.Images, spec.Containers[i].Image)
		s.readPorts(&spec.Containers[i])
	}
	for i := range spec.Volumes {
		if image := spec.Volumes[i].Image; image != nil {
			s.VolumeImages = append(s.VolumeImages, image.Reference)
		}
	}
}

func (s *shape) readPorts(c *corev1.Container) {
	for _, port := range c.Ports {
		if port.HostPort > 0 {
			s.Ports = append(s.Ports, port)
		}
	}
}

// Held returns the class of a pod that has its node: only what it takes matters. If it waited here before and
// takes the same still, it keeps its class.
func (t *Table) Held(pod *corev1.Pod, before *Class) *Class {
	request := t.Request(pod)
	if before != nil && before.Request.Equal(request) {
		return before
	}
	return t.intern(request, t.nonZero(pod, request), "held", func() *corev1.Pod { return specimen(pod, &shape{}, nil) })
}

// intern returns the class with these properties. All that is read from the specimen is in the key, so it is true of
// every pod of the class.
func (t *Table) intern(request resources.Vector, balance [2]int64, rest string, specimen func() *corev1.Pod) *Class {
	key := make([]byte, 0, 64+len(rest))
	for d, value := range request {
		// Zeros are left out, so that resources that became known later do not make a new key.
		if value != 0 {
			key = strconv.AppendInt(append(strconv.AppendInt(key, int64(d), 10), '='), value, 10)
			key = append(key, ' ')
		}
	}
	key = strconv.AppendInt(append(strconv.AppendInt(key, balance[0], 10), ' '), balance[1], 10)
	key = append(key, rest...)
	if k := t.classes[string(key)]; k != nil {
		return k
	}
	k := &Class{Pod: specimen(), Request: request, NonZero: balance, BestEffort: true, key: string(key),
		matchedWhen: t.terms.generation - 1}
	for d, value := range request {
		if value > 0 && resources.Dim(d) != resources.Pods {
			k.BestEffort = false
		}
	}
	k.Plain = k
	t.classes[k.key] = k
	return k
}

// Exchange counts a user of a class instead of a user of another, and returns the new class; nil is none.
func (t *Table) Exchange(before, now *Class) *Class {
	if before == now {
		return now
	}
	// The new class first: it may be the plain class of the old one, and in use by that alone.
	if now != nil {
		now.users++
	}
	if before != nil {
		t.release(before)
	}
	return now
}

// release counts one user of a class less.
func (t *Table) release(k *Class) {
	if k.users--; k.users > 0 {
		return
	}
	delete(t.classes, k.key)
	if k.NeedsSupplies() {
		t.release(k.Plain)
	}
}

// labelsThatMatter returns the labels of a pod that some selector asks for or plugins read.
func (t *Table) labelsThatMatter(pod *corev1.Pod) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, pod.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return t.terms.labelKeys[key] == 0 && !ownKey(pod, key) && !slices.Contains(t.keys.PodLabels, key)
	})
	return labels
}

// ownKey reports whether one of the pod's own spread constraints asks for a label. Its affinity terms are in
// the Terms already.
func ownKey(pod *corev1.Pod, key string) bool {
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		if slices.Contains(constraint.MatchLabelKeys, key) || selectorHas(constraint.LabelSelector, key) {
			return true
		}
	}
	return false
}
