package audit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	helper "k8s.io/component-helpers/resource"

	"hekla.sh/hekla/pkg/apis/bounds"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	kueue "hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// amounts are by resource, in thousandths of CPUs and whole units of everything else.
type amounts map[string]int64

func amountsOf(list corev1.ResourceList) amounts {
	a := make(amounts, len(list))
	for name, quantity := range list {
		if name == corev1.ResourceCPU {
			a[string(name)] = quantity.MilliValue()
		} else {
			a[string(name)] = quantity.Value()
		}
	}
	return a
}

// add adds other, times sign.
func (a amounts) add(other amounts, sign int64) {
	for name, amount := range other {
		if a[name] += sign * amount; a[name] == 0 {
			delete(a, name)
		}
	}
}

// most makes each amount the larger one.
func (a amounts) most(other amounts) amounts {
	larger := maps.Clone(a)
	for name, amount := range other {
		larger[name] = max(larger[name], amount)
	}
	return larger
}

// laxer is what two limits allow of which either may be in force: what only one of them names is not bounded.
func (a amounts) laxer(other amounts) amounts {
	lax := amounts{}
	for name, amount := range a {
		if second, isLimited := other[name]; isLimited {
			lax[name] = max(amount, second)
		}
	}
	return lax
}

// beyond names the first resource, by name, of those that asked names, of which a is more than the limits, and says how
// much. What limits do not name is not bounded.
func (a amounts) beyond(limits, asked amounts) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if limit, isLimited := limits[name]; isLimited && asked[name] > 0 && a[name] > limit {
			return fmt.Sprintf("%s of %s %s", shown(name, a[name]), shown(name, limit), name), true
		}
	}
	return "", false
}

func shown(name string, amount int64) string {
	if name == string(corev1.ResourceCPU) {
		return strconv.FormatFloat(float64(amount)/1000, 'f', -1, 64)
	}
	return strconv.FormatInt(amount, 10)
}

// pod is what rules need of a pod, and what happened to it.
type pod struct {
	key
	uid         types.UID
	version     string // of the object that was taken in last
	node        string // "" before it is bound
	hasEnded    bool
	isLeaving   bool // it is being deleted
	isGated     bool
	isReady     bool   // as others than schedulers say: Volcano says that a pod is not before it deletes it
	readyIn     string // the version of the object that said so
	isAbrupt    bool   // it has no time to end in
	isFinalized bool
	isSpared    bool // volcano.sh/preemptable says false
	isMarked    bool // a condition says that a scheduler evicts it
	scheduler   string
	request     amounts
	ports       []string // of its node
	priority    int32
	nominated   string // status.nominatedNodeName
	nominatedAt time.Time
	nominatedBy string // who wrote it last, "" if that is not known
	gang        key    // its PodGroup, or its group of pods by labels; "" if it has none
	task        string // volcano.sh/task-spec
	owner       types.UID
	workload    string // kueue.x-k8s.io/workload, the Workload by which it was started
	labels      labels.Set
	shape       uint64 // equal for pods that fit the same nodes
	created     time.Time

	wait     wait
	bindings int // by requests
	boundAt  time.Time
	boundBy  string
	counts   bool   // it holds room on its node
	charged  string // the queue that it counts in
	eviction *eviction
}

func (p *pod) String() string { return "Pod " + p.key.String() }

// job is what a pod belongs to: its gang, else its controller, else itself.
func (p *pod) job() string {
	switch {
	case p.gang.name != "":
		return "gang " + p.gang.String()
	case p.owner != "":
		return "owner " + string(p.owner)
	}
	return "pod " + string(p.uid)
}

// eviction is a request of a scheduler by which a pod was to leave.
type eviction struct {
	at   time.Time
	user string
	node string
	job  string
}

var seed = maphash.MakeSeed()

// annotations and labels by which a pod names its gang, and what it may not suffer.
const (
	podGroupLabel   = "scheduling.x-k8s.io/pod-group"
	kueueGroupLabel = "kueue.x-k8s.io/pod-group-name"
	taskAnnotation  = "volcano.sh/task-spec"
	preemptable     = "volcano.sh/preemptable"
)

// podOf reads a pod. It keeps no memory of the document.
func podOf(document []byte) (*pod, error) {
	o := &corev1.Pod{}
	if err := bounds.UnmarshalKubernetesJSON(document, o); err != nil {
		return nil, err
	}
	p := &pod{
		key: key{o.Namespace, o.Name}, uid: o.UID, version: o.ResourceVersion, node: o.Spec.NodeName,
		hasEnded: o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed, isLeaving: o.DeletionTimestamp != nil,
		isGated: len(o.Spec.SchedulingGates) > 0, isSpared: o.Annotations[preemptable] == "false" || o.Labels[preemptable] == "false",
		scheduler: o.Spec.SchedulerName, nominated: o.Status.NominatedNodeName, task: o.Annotations[taskAnnotation], workload: o.Annotations[kueue.WorkloadAnnotation], labels: o.Labels, created: o.CreationTimestamp.Time,
		request: amountsOf(helper.PodRequests(o, helper.PodResourcesOptions{UseStatusResources: true})),
	}
	p.request[string(corev1.ResourcePods)] = 1
	p.isAbrupt = o.Spec.TerminationGracePeriodSeconds != nil && *o.Spec.TerminationGracePeriodSeconds == 0
	p.isFinalized = len(o.Finalizers) > 0
	if o.Spec.Priority != nil {
		p.priority = *o.Spec.Priority
	}
	if owner := metav1.GetControllerOf(o); owner != nil {
		p.owner = owner.UID
	}
	for _, name := range [...]string{o.Annotations[scheduling.KubeGroupNameAnnotationKey], o.Labels[podGroupLabel], o.Labels[kueueGroupLabel]} {
		if name != "" {
			p.gang = key{o.Namespace, name}
			break
		}
	}
	for _, c := range o.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			p.isReady = p.isReady || c.Type == corev1.PodReady
			p.isMarked = p.isMarked || c.Type == corev1.DisruptionTarget && c.Reason == corev1.PodReasonPreemptionByScheduler
		}
	}
	for i := range o.Spec.Containers {
		for _, port := range o.Spec.Containers[i].Ports {
			if port.HostPort > 0 {
				p.ports = append(p.ports, fmt.Sprintf("%s:%s/%d", port.HostIP, port.Protocol, port.HostPort))
			}
		}
	}
	shape, err := json.Marshal([]any{o.Namespace, p.request, o.Spec.NodeSelector, o.Spec.Affinity, o.Spec.Tolerations, o.Spec.TopologySpreadConstraints, o.Spec.Volumes, o.Spec.ResourceClaims, p.ports, o.Spec.SchedulerName})
	if err != nil {
		return nil, err
	}
	p.shape = maphash.Bytes(seed, shape)
	return p, nil
}

// node is what rules need of a node.
type node struct {
	name        string
	version     string
	created     time.Time
	allocatable amounts
	// before is what it offered until a moment ago, if it offers less since: a scheduler may not have seen that.
	before  amounts
	until   time.Time
	isKnown bool // its object was seen
	isWhole bool // it came after the log began, or all its pods were told of: none is unknown
	used    amounts
	pods    map[types.UID]*pod
}

func (n *node) String() string { return "Node " + n.name }

// offers is what a scheduler may have believed that the node offers.
func (n *node) offers(at time.Time) amounts {
	if at.Before(n.until) {
		return n.allocatable.most(n.before)
	}
	return n.allocatable
}

// gang is a PodGroup, or a group of pods by labels.
type gang struct {
	key
	uid      types.UID
	version  string
	isKnown  bool
	min      int
	tasks    map[string]int // the least of each task
	queue    string
	isSpared bool
	members  map[types.UID]*pod
	created  time.Time

	wait         wait
	partialSince time.Time // zero if none of it holds nodes, or enough do
	because      string    // of what it is partial
	wasWhole     bool
}

func (g *gang) String() string { return "PodGroup " + g.key.String() }

func gangOf(document []byte) (*gang, error) {
	o := &scheduling.PodGroup{}
	if err := bounds.UnmarshalKubernetesJSON(document, o); err != nil {
		return nil, err
	}
	g := &gang{key: key{o.Namespace, o.Name}, uid: o.UID, version: o.ResourceVersion, isKnown: true, min: int(o.Spec.MinMember), queue: o.Spec.Queue,
		isSpared: o.Annotations[preemptable] == "false" || o.Labels[preemptable] == "false", tasks: map[string]int{}, created: o.CreationTimestamp.Time}
	sum := 0
	for task, least := range o.Spec.MinTaskMember {
		g.tasks[task] = int(least)
		sum += int(least)
	}
	if sum > g.min {
		clear(g.tasks) // as Volcano has it: the least of each task counts if the gang needs all of them
	}
	return g, nil
}

// queue is a Queue of Volcano.
type queue struct {
	name, version, parent string
	capability, before    amounts
	until                 time.Time
	isReclaimable         bool
	used                  amounts
	isKnown               bool
}

func queueOf(document []byte) (*queue, error) {
	o := &scheduling.Queue{}
	if err := bounds.UnmarshalKubernetesJSON(document, o); err != nil {
		return nil, err
	}
	return &queue{name: o.Name, version: o.ResourceVersion, parent: o.Spec.Parent, capability: amountsOf(o.Spec.Capability),
		isReclaimable: o.Spec.Reclaimable == nil || *o.Spec.Reclaimable, isKnown: true}, nil
}

// budget is a PodDisruptionBudget.
type budget struct {
	key
	version  string
	selector labels.Selector
	allowed  int32
	since    time.Time // of this number
}

func budgetOf(document []byte) (*budget, error) {
	o := &policyv1.PodDisruptionBudget{}
	if err := bounds.UnmarshalKubernetesJSON(document, o); err != nil {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	return &budget{key: key{o.Namespace, o.Name}, version: o.ResourceVersion, selector: selector, allowed: o.Status.DisruptionsAllowed}, err
}

// flavored is a resource of a flavor.
type flavored struct{ flavor, resource string }

// workload is what rules need of a Workload.
type workload struct {
	key
	uid       types.UID
	version   string
	queue     string             // the ClusterQueue whose quota it holds, "" if it holds none
	preemptor types.UID          // the Workload for which it is evicted, "" if it is not, or for another reason
	usage     map[flavored]int64 // what it holds
	hasEnded  bool

	owners     []types.UID // its job, or the pods that it is made of
	generation int64       // of its spec
	isBarred   bool        // it may not wait for quota: it is being deleted, gated, without its pods, refused by a check
}

func (w *workload) String() string { return "Workload " + w.key.String() }

func workloadOf(document []byte) (*workload, error) {
	o := &kueue.Workload{}
	if err := bounds.UnmarshalKubernetesJSON(document, o); err != nil {
		return nil, err
	}
	w := &workload{key: key{o.Namespace, o.Name}, uid: o.UID, version: o.ResourceVersion, usage: map[flavored]int64{}, generation: o.Generation}
	for i := range o.OwnerReferences {
		w.owners = append(w.owners, o.OwnerReferences[i].UID)
	}
	w.isBarred = o.DeletionTimestamp != nil || o.Annotations[kueue.AdmissionGatedByAnnotation] != ""
	for _, check := range o.Status.AdmissionChecks {
		w.isBarred = w.isBarred || check.State == kueue.CheckRetry || check.State == kueue.CheckRejected
	}
	isReserved := false
	for _, c := range o.Status.Conditions {
		isTrue := c.Status == metav1.ConditionTrue
		switch c.Type {
		case kueue.QuotaReserved:
			isReserved = isTrue
		case kueue.Finished:
			w.hasEnded = isTrue
		case kueue.WaitingForReplacementPods:
			w.isBarred = w.isBarred || isTrue
		case kueue.Requeued:
			w.isBarred = w.isBarred || c.Status == metav1.ConditionFalse
		case kueue.Evicted:
			if isTrue && c.Reason == kueue.ReasonPreempted {
				w.preemptor = types.UID(conditions.PreemptionOf(c.Message).UID)
			}
		}
	}
	if !isReserved || w.hasEnded || o.Status.Admission == nil {
		return w, nil
	}
	w.queue = o.Status.Admission.ClusterQueue
	for _, a := range o.Status.Admission.PodSetAssignments {
		count, left := int64(1), int64(1)
		if a.Count != nil && *a.Count > 0 {
			count, left = int64(*a.Count), int64(*a.Count)
			queued := count // pods that are given up are counted of all that are queued, and fewer may have been admitted
			for i := range o.Spec.PodSets {
				if o.Spec.PodSets[i].Name == a.Name {
					queued = max(count, int64(o.Spec.PodSets[i].Count))
				}
			}
			for _, r := range o.Status.ReclaimablePods {
				if r.Name == a.Name {
					left = min(count, max(0, queued-int64(r.Count)))
				}
			}
		}
		for name, amount := range amountsOf(a.ResourceUsage) {
			w.usage[flavored{a.Flavors[corev1.ResourceName(name)], name}] += amount / count * left
		}
	}
	return w, nil
}

// isOther reports whether a Workload may be admitted otherwise than before, or others may be because of it: it asks for
// something else, it has begun or ended to be barred, or it gives up quota and is not evicted for another.
func (w *workload) isOther(before *workload) bool {
	return w.uid != before.uid || w.generation != before.generation ||
		w.preemptor == "" && (w.isBarred != before.isBarred || isMore(before.usage, w.usage))
}

// setting is an object that decides with others where Workloads are admitted. Rules need to know that it changes.
type setting struct {
	uid        types.UID
	version    string
	generation int64  // of its spec
	isActive   string // whether an AdmissionCheck is served, by its status
}

// isOther reports whether what counts of a setting has changed.
func (s setting) isOther(before setting) bool {
	return s.uid != before.uid || s.generation != before.generation || s.isActive != before.isActive
}

func settingOf(document []byte) (setting, error) {
	o := &kueue.AdmissionCheck{} // what is read of it is the same of the others
	if err := bounds.UnmarshalKubernetesJSON(document, o); err != nil {
		return setting{}, err
	}
	s := setting{uid: o.UID, version: o.ResourceVersion, generation: o.Generation}
	for _, c := range o.Status.Conditions {
		if c.Type == kueue.ActiveCondition {
			s.isActive = string(c.Status)
		}
	}
	return s, nil
}

// quotas are those of a ClusterQueue or Cohort.
type quotas struct {
	name, version, parent string
	nominal, borrowing    map[flavored]int64 // borrowing only where it is limited
	before                map[flavored]int64 // nominal and borrowing limit until a moment ago
	until                 time.Time
}

func quotasOf(name, version string, parent string, groups []kueue.ResourceGroup) *quotas {
	q := &quotas{name: name, version: version, parent: parent, nominal: map[flavored]int64{}, borrowing: map[flavored]int64{}}
	for _, g := range groups {
		for _, f := range g.Flavors {
			for _, r := range f.Resources {
				of := flavored{f.Name, string(r.Name)}
				q.nominal[of] = amountsOf(corev1.ResourceList{r.Name: r.NominalQuota})[string(r.Name)]
				if r.BorrowingLimit != nil {
					q.borrowing[of] = amountsOf(corev1.ResourceList{r.Name: *r.BorrowingLimit})[string(r.Name)]
				}
			}
		}
	}
	return q
}

func clusterQueueOf(document []byte) (*quotas, error) {
	o := &kueue.ClusterQueue{}
	if err := bounds.UnmarshalKubernetesJSON(document, o); err != nil {
		return nil, err
	}
	return quotasOf(o.Name, o.ResourceVersion, cmp.Or(o.Spec.CohortName, o.Spec.Cohort), o.Spec.ResourceGroups), nil
}

func cohortOf(document []byte) (*quotas, error) {
	o := &kueue.Cohort{}
	if err := bounds.UnmarshalKubernetesJSON(document, o); err != nil {
		return nil, err
	}
	return quotasOf(o.Name, o.ResourceVersion, o.Spec.ParentName, o.Spec.ResourceGroups), nil
}

func nodeOf(document []byte) (*node, error) {
	o := &corev1.Node{}
	if err := bounds.UnmarshalKubernetesJSON(document, o); err != nil {
		return nil, err
	}
	return &node{name: o.Name, version: o.ResourceVersion, allocatable: amountsOf(o.Status.Allocatable), created: o.CreationTimestamp.Time}, nil
}
