package podclass

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/pkg/resources"
)

// Class is all that placement needs to know about a pod. Equal pods share a class, so that each question about a node
// is asked once for all of them.
type Class struct {
	// Pod stands for every pod of the class. It has the spec of one of them. It has only those labels and annotations,
	// and the namespace only if it matters, that plugins have declared or that affinity and spread select. The caller
	// must not change it.
	Pod        *corev1.Pod
	Request    resources.Vector
	NonZero    [2]int64 // milli-CPU and bytes, with kube-scheduler's defaults for what is not requested
	BestEffort bool     // requests nothing
	HasPorts   bool     // requests host ports
	HasTerms   bool     // has pod affinity, anti-affinity or spread constraints of its own
	Belonging           // of the job and queue of its pods

	// Selection is equal for classes with the same node selector and node affinity. With the tolerations that is all
	// that the objects of nodes are asked about. It is empty for pods that have their node.
	Selection string

	// Constraints is equal for classes whose pods differ only in request and images. Then a node may refuse the pods of
	// one and not those of the other only for want of resources. It is empty for pods that have their node.
	Constraints string

	// Plain is the class of pods that are equal apart from volumes and devices: the class itself if it needs none.
	Plain *Class

	key         string
	selects     []string // labels of nodes that its selector and node affinity read
	users       int      // number of tasks in the class, and of classes whose plain class it is
	matched     bool     // the affinity of another pod may select its pods
	matchedWhen uint64   // the generation of the terms for which matched is valid
}

// InUse reports whether any task is in the class.
func (k *Class) InUse() bool { return k.users > 0 }

// Users is the number of tasks in the class. Each class that needs volumes or devices counts for its plain class.
func (k *Class) Users() int { return k.users }

// NeedsSupplies reports whether the pods need volumes or devices, which a node may lack.
func (k *Class) NeedsSupplies() bool { return k.Plain != k }

// defaultRequests are what kube-scheduler assumes in its scores for containers without requests.
var defaultRequests = corev1.ResourceList{
	corev1.ResourceCPU:    *resource.NewMilliQuantity(100, resource.DecimalSI),
	corev1.ResourceMemory: *resource.NewQuantity(200*1024*1024, resource.BinarySI),
}

// requestOptions count in-place resizes and pod-level resources as kube-scheduler does: the larger of what is requested
// and what is allocated.
var requestOptions = resourcehelper.PodResourcesOptions{
	UseStatusResources: true,
	InPlacePodLevelResourcesVerticalScalingEnabled: true,
}

// amounts are what a pod requests, and what kube-scheduler counts of it in its scores.
type amounts struct {
	request resources.Vector
	nonZero [2]int64
}

// maxAmounts is how many templates that were asked for lately have their amounts stored: those of the jobs whose pods
// come at one time. Twice as many are stored.
const maxAmounts = 1 << 11

// TemplateLife is how long what is stored by the address of a template is kept at least, although it is not asked for.
// It is dropped after twice as long at most. Nothing says when the last pod or Workload of a template is gone.
const TemplateLife = time.Hour

// Age drops the amounts of templates that were not asked for lately.
func (t *Table) Age(now time.Time) { t.amounts.Age(now, TemplateLife) }

// Request returns what a pod requests of a node. The caller must not change it.
func (t *Table) Request(pod *pods.Pod) resources.Vector { return t.amountsOf(pod).request }

// amountsOf returns the amounts of a pod. Nearly all pods have those of their templates.
func (t *Table) amountsOf(pod *pods.Pod) amounts {
	if !pod.SharesRequest() {
		return t.addUp(pod.Object())
	}
	return t.amounts.Of(pod.Template, maxAmounts, func() amounts { return t.addUp(pod.Object()) })
}

func (t *Table) addUp(pod *corev1.Pod) amounts {
	v := t.index.Asked(resourcehelper.PodRequests(pod, requestOptions))
	v.Set(resources.Pods, 1)
	return amounts{request: v, nonZero: t.nonZero(pod, v)}
}

// nonZero returns what kube-scheduler counts in its scores. If every container has requests, that is the request, and
// needs no second addition.
func (t *Table) nonZero(pod *corev1.Pod, request resources.Vector) [2]int64 {
	// If a resize is infeasible, the resources that the kubelet reports count instead.
	if !resourcehelper.IsPodResizeInfeasible(pod) && requestsAll(pod.Spec.InitContainers) && requestsAll(pod.Spec.Containers) {
		return [2]int64{request.At(resources.CPU), request.At(resources.Memory)}
	}
	options := requestOptions
	options.NonMissingContainerRequests = defaultRequests
	if resourcehelper.IsPodLevelRequestsSet(pod) {
		// Then kube-scheduler assumes only what neither the pod nor any of its containers requests.
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

// shape is what tells classes apart, besides the request.
type shape struct {
	Namespace    string                            `json:",omitempty"`
	Labels       map[string]string                 `json:",omitempty"`
	Selector     string                            `json:",omitempty"` // a key of the node selector
	Affinity     *corev1.Affinity                  `json:",omitempty"`
	Tolerations  []corev1.Toleration               `json:",omitempty"`
	Spread       []corev1.TopologySpreadConstraint `json:",omitempty"`
	Ports        []corev1.ContainerPort            `json:",omitempty"`
	Images       []string                          `json:",omitempty"`
	VolumeImages []string                          `json:",omitempty"`
	Annotations  map[string]string                 `json:",omitempty"`
	Belonging    *Belonging                        `json:",omitempty"`
}

// Of returns the class of a pending pod. belonging is what matters of its job and queue.
func (t *Table) Of(pod *pods.Pod, belonging Belonging) *Class {
	has := t.amountsOf(pod)
	request, balance := has.request, has.nonZero
	s := shape{Selector: selectorKey(pod.Spec.NodeSelector), Affinity: pod.Spec.Affinity, Tolerations: pod.Spec.Tolerations,
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
	// The parts of a pod always marshal, because they come from JSON.
	text, _ := json.Marshal(&s)
	rest := shortKey(text)
	isNew := false
	plain := t.intern(request, balance, rest, func() *corev1.Pod {
		isNew = true
		return specimen(pod, &s, nil)
	})
	if isNew {
		plain.selects = selectedLabels(pod.Spec.NodeSelector, pod.Spec.Affinity)
		t.selected.add(plain.selects, +1)
	}
	plain.HasPorts, plain.HasTerms, plain.Belonging = len(s.Ports) > 0, hasTerms, belonging
	if plain.Selection == "" {
		plain.Selection, plain.Constraints = s.selection(), s.constraints()
	}
	demand := t.demandOf(pod, request)
	if demand == nil {
		return plain
	}
	text, _ = json.Marshal(demand)
	more := shortKey(text)
	k := t.intern(request, balance, rest+more, func() *corev1.Pod { return specimen(pod, &s, demand) })
	k.HasPorts, k.HasTerms, k.Belonging, k.Selection = plain.HasPorts, hasTerms, belonging, plain.Selection
	k.Constraints = plain.Constraints + more
	if k.Plain == k {
		k.Plain = plain
		plain.users++ // it is in use as long as this class is
	}
	return k
}

// readContainers reads the host ports and images of a pod. Init containers hold their ports only if they are sidecars.
func (s *shape) readContainers(spec *pods.Spec) {
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

// Held returns the class of a pod with a node, for which only its request matters. If the pod was pending here before
// and its request has not changed, it keeps its class.
func (t *Table) Held(pod *pods.Pod, before *Class) *Class {
	has := t.amountsOf(pod)
	if before != nil && before.Request.Equal(has.request) {
		return before
	}
	return t.intern(has.request, has.nonZero, "held", func() *corev1.Pod { return specimen(pod, &shape{}, nil) })
}

// intern returns the class with these properties. The key has everything that is read from the specimen, so it holds
// for every pod of the class.
func (t *Table) intern(request resources.Vector, balance [2]int64, rest string, specimen func() *corev1.Pod) *Class {
	key := make([]byte, 0, 64+len(rest))
	for d, value := range request {
		// Zeros are left out, so that resources that are added later do not change the key.
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

// selection is which nodes pods ask for.
type selection struct {
	Selector string               `json:",omitempty"`
	Affinity *corev1.NodeAffinity `json:",omitempty"`
}

// selectorKey returns a key of a node selector, "" if it is empty. Its labels, which may be thousands, are read once.
func selectorKey(selector map[string]string) string {
	if len(selector) == 0 {
		return ""
	}
	var text []byte
	for _, label := range slices.Sorted(maps.Keys(selector)) {
		for _, part := range []string{label, selector[label]} {
			text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
		}
	}
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}

func (s *shape) selection() string {
	selects := selection{Selector: s.Selector}
	if s.Affinity != nil {
		selects.Affinity = s.Affinity.NodeAffinity
	}
	text, _ := json.Marshal(&selects) // always marshals: it came out of JSON
	return shortKey(text)
}

func (s *shape) constraints() string {
	plain := *s
	plain.Images = nil
	text, _ := json.Marshal(&plain) // always marshals, as above
	return shortKey(text)
}

// longestKey is the length of a text, in bytes, up to which it is a key itself.
const longestKey = 256

// shortKey returns a key of a text. The affinity of one pod may be a megabyte, and keys are stored and hashed again and
// again. So of a long text the digest is the key.
func shortKey(text []byte) string {
	if len(text) <= longestKey {
		return string(text)
	}
	digest := sha256.Sum256(text)
	return string(digest[:])
}

// Exchange moves a user from one class to another, and returns the new class. Nil is no class.
func (t *Table) Exchange(before, now *Class) *Class {
	if before == now {
		return now
	}
	// The new class is counted first: it may be the plain class of the old one, and used only by that.
	if now != nil {
		now.users++
	}
	if before != nil {
		t.release(before)
	}
	return now
}

// release removes a user from a class.
func (t *Table) release(k *Class) {
	if k.users--; k.users > 0 {
		return
	}
	delete(t.classes, k.key)
	t.selected.add(k.selects, -1)
	if k.NeedsSupplies() {
		t.release(k.Plain)
	}
}

// labelsThatMatter returns the labels of a pod that some selector reads or plugins have declared.
func (t *Table) labelsThatMatter(pod *pods.Pod) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, pod.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return t.terms.labelKeys[key] == 0 && !ownKey(pod, key) && !slices.Contains(t.keys.PodLabels, key)
	})
	return labels
}

// ownKey reports whether a spread constraint of the pod itself reads a label. Its affinity terms are in the Terms
// already.
func ownKey(pod *pods.Pod, key string) bool {
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		if slices.Contains(constraint.MatchLabelKeys, key) || selectorHas(constraint.LabelSelector, key) {
			return true
		}
	}
	return false
}
