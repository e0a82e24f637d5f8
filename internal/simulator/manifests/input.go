package manifests

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/apis/kueue/validation"
	"hekla.sh/hekla/pkg/apis/podspec"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
	"hekla.sh/hekla/pkg/cluster/supplies"
)

// Input is the cluster that a simulation starts with, with all defaults filled in that an API server would.
type Input struct {
	// Configuration is the text of the scheduler's configuration, "" if the input holds none.
	Configuration string
	// ConfigurationPlace is where it stands, for messages.
	ConfigurationPlace string
	// Newest is the newest creation time of the input.
	Newest time.Time

	Pods   []*corev1.Pod
	Groups []*schedulingv1beta1.PodGroup
	Jobs   []*batchv1alpha1.Job
	// BatchJobs are those of Kubernetes itself.
	BatchJobs []*batchv1.Job
	// Queueing are the objects of kueue.x-k8s.io.
	Queueing []client.Object
	Others   []runtime.Object // what is given to the model as it is: nodes, queues, HyperNodes, priority classes, namespaces

	Budgets []*Budget
	Quotas  []*corev1.ResourceQuota

	Supplies  []supplies.Object // volumes and devices
	Templates map[types.NamespacedName]*resourcev1.ResourceClaimTemplate

	Namespaces map[string]*corev1.Namespace
	Priorities map[string]*schedulingv1.PriorityClass

	created map[*corev1.Pod]bool // pods that the input creates, rather than takes from a cluster
}

// Read reads files, folders, or with "-" the standard input. All errors name the place.
func Read(paths []string, stdin io.Reader) (*Input, error) {
	if len(paths) == 0 {
		return nil, errors.New("no file is given; name one with -f")
	}
	r := newReader(stdin)
	for _, path := range paths {
		if err := r.readPath(path); err != nil {
			return nil, err
		}
	}
	r.nameAll()
	// From here on nothing depends on the order of the documents.
	slices.SortFunc(r.objects, func(a, b object) int { return cmp.Compare(sortKey(a), sortKey(b)) })
	in := newInput()
	for _, o := range r.objects {
		if err := in.add(o); err != nil {
			return nil, fmt.Errorf("%s: %w", o.place, err)
		}
	}
	in.complete()
	return in, nil
}

// New returns the input of objects that are at hand. They are copied before they are changed.
func New(objects ...runtime.Object) (*Input, error) {
	in := newInput()
	for _, o := range objects {
		if err := in.add(object{Object: o.DeepCopyObject(), place: fmt.Sprintf("%T", o)}); err != nil {
			return nil, fmt.Errorf("%s: %w", said(o), err)
		}
	}
	in.complete()
	return in, nil
}

// said names an object for messages.
func said(o runtime.Object) string {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if accessor, err := meta.Accessor(o); err == nil && kind != "" {
		return kind + " " + accessor.GetName()
	}
	return fmt.Sprintf("%T", o)
}

// ReadObjects reads objects as [Read] does, each with what the API server would fill in.
func ReadObjects(from io.Reader) ([]runtime.Object, error) {
	r := newReader(from)
	if err := r.readPath("-"); err != nil {
		return nil, err
	}
	r.nameAll()
	in := newInput()
	objects := make([]runtime.Object, len(r.objects))
	for i, o := range r.objects {
		if err := in.add(o); err != nil {
			return nil, fmt.Errorf("%s: %w", o.place, err)
		}
		objects[i] = o.Object
	}
	in.completeObjects()
	return objects, nil
}

func newInput() *Input {
	in := &Input{Namespaces: map[string]*corev1.Namespace{}, Priorities: map[string]*schedulingv1.PriorityClass{},
		Templates: map[types.NamespacedName]*resourcev1.ResourceClaimTemplate{}, created: map[*corev1.Pod]bool{}}
	for name, value := range systemPriorities {
		in.Priorities[name] = &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	}
	return in
}

// complete adds what every cluster has, and what the API server fills in.
func (in *Input) complete() {
	in.addQueue(schedulingv1beta1.RootQueue)
	in.addQueue(schedulingv1beta1.DefaultQueue)
	in.completeObjects()
	in.addNamespaces()
}

// completeObjects fills in what the API server goes by other objects for.
func (in *Input) completeObjects() {
	for _, o := range in.Supplies {
		if claim, is := o.(*corev1.PersistentVolumeClaim); is {
			CompleteClaim(claim, in.Supplies)
		}
	}
	for _, pod := range in.Pods {
		if in.created[pod] {
			in.CreatePod(pod)
		} else {
			in.completePod(pod, podspec.Given{})
		}
	}
}

// addNamespaces adds the namespaces of LocalQueues: ClusterQueues choose namespaces by labels.
func (in *Input) addNamespaces() {
	for _, o := range in.Queueing {
		if name := o.GetNamespace(); name != "" && in.Namespaces[name] == nil {
			in.Namespaces[name] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("Namespace /" + name)}}
			setDefaults(in.Namespaces[name])
			in.Others = append(in.Others, in.Namespaces[name])
		}
	}
}

// problemsOf are what webhooks say is wrong with an object of kueue.x-k8s.io.
func problemsOf(o runtime.Object) field.ErrorList {
	switch o := o.(type) {
	case *v1beta2.ClusterQueue:
		return validation.ClusterQueue(o)
	case *v1beta2.Cohort:
		return validation.Cohort(o)
	case *v1beta2.LocalQueue:
		return validation.LocalQueue(o)
	case *v1beta2.ResourceFlavor:
		return validation.ResourceFlavor(o)
	case *v1beta2.Workload:
		return validation.Workload(o)
	}
	return nil
}

// systemPriorities are the classes that every cluster has.
var systemPriorities = map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

func sortKey(o object) string {
	accessor, _ := meta.Accessor(o.Object)
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if _, ok := o.Object.(*batchv1.Job); ok {
		kind = "batch Job" // there are Jobs of Volcano too
	}
	return kind + " " + accessor.GetNamespace() + "/" + accessor.GetName()
}

func (in *Input) add(o object) error {
	accessor, err := meta.Accessor(o.Object)
	if err != nil {
		return err
	}
	if pod, is := o.Object.(*corev1.Pod); is && pod.UID == "" {
		in.created[pod] = true
	}
	if accessor.GetUID() == "" {
		accessor.SetUID(types.UID(sortKey(o)))
		if j, ok := o.Object.(*batchv1alpha1.Job); ok && len(j.Spec.Volumes) > 0 {
			j.UID = "made" // the names of its claims carry a part of it
		}
	}
	if created := accessor.GetCreationTimestamp().Time; created.After(in.Newest) {
		in.Newest = created
	}
	setDefaults(o.Object)
	switch decoded := o.Object.(type) {
	case *corev1.ConfigMap:
		if in.Configuration != "" {
			return fmt.Errorf("the scheduler's configuration is also given in %s", in.ConfigurationPlace)
		}
		in.Configuration, in.ConfigurationPlace = decoded.Data[ConfigurationKey], o.place
	case *corev1.Pod:
		in.Pods = append(in.Pods, decoded)
	case *schedulingv1beta1.PodGroup:
		in.Groups = append(in.Groups, decoded)
	case *batchv1alpha1.Job:
		in.Jobs = append(in.Jobs, decoded)
	case *batchv1.Job:
		in.BatchJobs = append(in.BatchJobs, decoded)
	case *policyv1.PodDisruptionBudget:
		b, err := NewBudget(decoded)
		if err != nil {
			return err
		}
		in.Budgets = append(in.Budgets, b)
	case *corev1.ResourceQuota:
		in.Quotas = append(in.Quotas, decoded)
	case *schedulingv1beta1.Queue:
		completeQueue(decoded)
		in.Others = append(in.Others, decoded)
	case *corev1.Node, *topologyv1alpha1.HyperNode, *corev1.LimitRange, *nodev1.RuntimeClass:
		in.Others = append(in.Others, decoded)
	case *schedulingv1.PriorityClass:
		in.Priorities[decoded.Name] = decoded
		in.Others = append(in.Others, decoded)
	case *corev1.Namespace:
		in.Namespaces[decoded.Name] = decoded
		in.Others = append(in.Others, decoded)
	case *v1beta2.ClusterQueue, *v1beta2.Cohort, *v1beta2.LocalQueue, *v1beta2.ResourceFlavor, *v1beta2.Workload, *v1beta2.WorkloadPriorityClass,
		*v1beta2.AdmissionCheck:
		if problems := problemsOf(decoded); len(problems) > 0 {
			return problems.ToAggregate()
		}
		in.Queueing = append(in.Queueing, decoded.(client.Object))
	case *resourcev1.ResourceClaimTemplate:
		in.Templates[types.NamespacedName{Namespace: decoded.Namespace, Name: decoded.Name}] = decoded
	case supplies.Object:
		in.Supplies = append(in.Supplies, decoded)
	}
	return nil
}

func (in *Input) addQueue(name string) {
	if slices.ContainsFunc(in.Others, func(o runtime.Object) bool {
		q, ok := o.(*schedulingv1beta1.Queue)
		return ok && q.Name == name
	}) {
		return
	}
	q := &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("Queue /" + name)}}
	if name == schedulingv1beta1.RootQueue {
		q.Spec.Reclaimable = new(bool)
	}
	completeQueue(q)
	in.Others = append(in.Others, q)
}

func completeQueue(q *schedulingv1beta1.Queue) {
	q.Spec.Weight = max(q.Spec.Weight, 1)
	q.Status.State = cmp.Or(q.Status.State, schedulingv1beta1.QueueStateOpen)
}

// CreatePod makes of a new pod what the API server makes of it, by what the pod says and by the LimitRanges of its
// namespace, its RuntimeClass and its PriorityClass.
func (in *Input) CreatePod(pod *corev1.Pod) {
	tolerateFailures(&pod.Spec)
	in.completePod(pod, in.Given(pod.Namespace, &pod.Spec))
}

// completePod fills in what a pod of a cluster has, which manifests written by tests may lack.
func (in *Input) completePod(pod *corev1.Pod, given podspec.Given) {
	setDefaults(pod)
	podspec.Complete(&pod.Spec, given)
	if pod.Spec.Priority != nil {
		return
	}
	class := in.Priorities[pod.Spec.PriorityClassName]
	if class == nil && pod.Spec.PriorityClassName == "" {
		class = in.DefaultPriority()
	}
	var value int32
	if class != nil {
		value, pod.Spec.PriorityClassName = class.Value, class.Name
		if pod.Spec.PreemptionPolicy == nil {
			pod.Spec.PreemptionPolicy = class.PreemptionPolicy
		}
	}
	pod.Spec.Priority = &value
}

// Given is what the API server would complete a pod of a namespace by.
func (in *Input) Given(namespace string, spec *corev1.PodSpec) (given podspec.Given) {
	for _, o := range in.Others {
		switch o := o.(type) {
		case *corev1.LimitRange:
			if o.Namespace == namespace {
				given.LimitRanges = append(given.LimitRanges, o)
			}
		case *nodev1.RuntimeClass:
			if spec.RuntimeClassName != nil && o.Name == *spec.RuntimeClassName {
				given.RuntimeClass = o
			}
		}
	}
	return given
}

// DefaultPriority returns the class of pods that name none, nil if there is none.
func (in *Input) DefaultPriority() *schedulingv1.PriorityClass {
	var found *schedulingv1.PriorityClass
	for _, class := range in.Priorities {
		if class.GlobalDefault && (found == nil || class.Value < found.Value) {
			found = class
		}
	}
	return found
}
