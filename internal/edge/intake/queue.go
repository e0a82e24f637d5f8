package intake

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/supplies"
)

// kind is the kind of an object in the queue.
type kind uint8

const (
	unknownKind kind = iota
	podKind
	nodeKind
	groupKind
	queueKind
	priorityKind
	namespaceKind
	budgetKind
	quotaKind
	limitRangeKind
	runtimeClassKind
	hyperNodeKind
	refusalKind
	planKind
	loadKind
	workloadResultKind
	workloadPlanKind
	clusterQueueKind
	cohortKind
	localQueueKind
	flavorKind
	checkKind
	workloadKind
	supplyKinds // and one of these for each kind of volumes and devices, see kindOf
)

var kindNames = [...]string{"unknown", "Pod", "Node", "PodGroup", "Queue", "PriorityClass", "Namespace", "PodDisruptionBudget", "ResourceQuota",
	"LimitRange", "RuntimeClass", "HyperNode", "refusal", "plan", "load", "result of a Workload", "plan of a Workload", "ClusterQueue", "Cohort",
	"LocalQueue", "ResourceFlavor", "AdmissionCheck", "Workload", "supply", "PersistentVolumeClaim", "PersistentVolume",
	"StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment", "ResourceClaim", "ResourceSlice", "DeviceClass",
	"DeviceTaintRule", "ResourceClaimTemplate"}

func (k kind) String() string { return kindNames[k] }

func kindOf(object runtime.Object) kind {
	switch object.(type) {
	case *cluster.Pod, *corev1.Pod:
		return podKind
	case *corev1.Node:
		return nodeKind
	case *schedulingv1beta1.PodGroup:
		return groupKind
	case *schedulingv1beta1.Queue:
		return queueKind
	case *schedulingv1.PriorityClass:
		return priorityKind
	case *corev1.Namespace:
		return namespaceKind
	case *policyv1.PodDisruptionBudget:
		return budgetKind
	case *corev1.ResourceQuota:
		return quotaKind
	case *corev1.LimitRange:
		return limitRangeKind
	case *nodev1.RuntimeClass:
		return runtimeClassKind
	case *topologyv1alpha1.HyperNode:
		return hyperNodeKind
	case *v1beta2.ClusterQueue:
		return clusterQueueKind
	case *v1beta2.Cohort:
		return cohortKind
	case *v1beta2.LocalQueue:
		return localQueueKind
	case *v1beta2.ResourceFlavor:
		return flavorKind
	case *v1beta2.AdmissionCheck:
		return checkKind
	case *v1beta2.Workload:
		return workloadKind
	}
	if supply := supplies.KindOf(object); supply != supplies.None {
		return supplyKinds + kind(supply)
	}
	return unknownKind
}

// object is implemented by every watched kind.
type object interface {
	runtime.Object
	metav1.Object
}

type objectKey struct {
	kind            kind
	namespace, name string
}

func keyOf(o object) objectKey { return objectKey{kindOf(o), o.GetNamespace(), o.GetName()} }

// news holds the events of one object since the last take.
type news struct {
	// gone is the deletion of the object that the reader knows. It is kept in addition to later events of another
	// object with the same name, whose deletion would not tell the reader about the first.
	gone cache.Event
	// last is the newest event.
	last cache.Event
}

// eventQueue keeps events in the order in which their objects first had any, the newest state for each.
type eventQueue struct {
	mutex     sync.Mutex
	entries   []news
	positions map[objectKey]int
	coalesced uint64
	wake      chan struct{}
	isTimed   bool // the reader is woken when the patience of an event has ended
}

// patience is how long an event waits for others that brings the loop nothing to decide, as what the API server says of
// a binding. With a cycle for each, the cycles of a scheduler that binds fifty pods a second would come so often that
// new pods wait for theirs.
const patience = 50 * time.Millisecond

func newEventQueue() *eventQueue {
	return &eventQueue{positions: map[objectKey]int{}, wake: make(chan struct{}, 1)}
}

func (q *eventQueue) set(o object)    { q.add(keyOf(o), cache.Set{Object: o}, false) }
func (q *eventQueue) delete(o object) { q.add(keyOf(o), cache.Delete{Object: o}, true) }

// setLater is set for a state that can wait for [patience].
func (q *eventQueue) setLater(o object) { q.addLater(keyOf(o), cache.Set{Object: o}) }

func (q *eventQueue) addLater(k objectKey, e cache.Event) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.put(k, e, false)
	if !q.isTimed {
		q.isTimed = true
		time.AfterFunc(patience, q.endPatience)
	}
}

func (q *eventQueue) endPatience() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.isTimed = false
	if len(q.entries) > 0 {
		q.poke()
	}
}

func (q *eventQueue) add(k objectKey, e cache.Event, isDeletion bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.put(k, e, isDeletion)
	q.poke()
}

func (q *eventQueue) put(k objectKey, e cache.Event, isDeletion bool) {
	position, known := q.positions[k]
	if !known {
		position = len(q.entries)
		q.positions[k] = position
		q.entries = append(q.entries, news{})
	}
	entry := &q.entries[position]
	if known {
		q.coalesced++
	}
	if isDeletion && entry.gone == nil {
		entry.gone, entry.last = e, nil
	} else {
		entry.last = e
	}
}

// poke wakes the reader. Calls between two takes wake it once.
func (q *eventQueue) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *eventQueue) take() []cache.Event {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	// All events so far are about to be returned, so they need not wake the reader.
	select {
	case <-q.wake:
	default:
	}
	events := make([]cache.Event, 0, len(q.entries))
	for i := range q.entries {
		if entry := &q.entries[i]; entry.gone != nil {
			events = append(events, entry.gone)
		}
		if entry := &q.entries[i]; entry.last != nil {
			events = append(events, entry.last)
		}
	}
	clear(q.entries)
	q.entries = q.entries[:0]
	clear(q.positions)
	// After the first lists the buffers are as large as the cluster. Later there are usually few events.
	if cap(q.entries) > retainedEntries && len(events) < cap(q.entries)/4 {
		q.entries, q.positions = nil, map[objectKey]int{}
	}
	return events
}

// retainedEntries is the size above which buffers that are mostly empty are released: 16,384 entries are half a
// megabyte.
const retainedEntries = 1 << 14

func (q *eventQueue) length() int {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return len(q.entries)
}

func (q *eventQueue) coalescedCount() uint64 {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.coalesced
}
