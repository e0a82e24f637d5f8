package intake

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/recent"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/client/serving"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/workloads/shapes"
)

// kueue watches the kinds of kueue.x-k8s.io once the API server has them. While Kueue itself runs, by its Lease, the
// loop sees none of their objects.
type kueue struct {
	inbox  *Inbox
	core   kubernetes.Interface
	api    discovery.DiscoveryInterface
	tell   func(decision.Notice)
	pause  time.Duration
	known  chan struct{} // closed when it is known whether the API server has the kinds, and whether Kueue runs
	stores []toolscache.Store
	pods   toolscache.Store

	mutex  sync.Mutex
	isOff  bool // Kueue runs, or it is not known yet
	isTold bool // that it is known
	closed sync.Once
}

func newKueue(i *Inbox, clients *apiserver.Clients, options Options) *kueue {
	return &kueue{inbox: i, core: clients.Core, api: clients.Core.Discovery(), tell: options.KueueRuns, pause: cmp.Or(options.KueuePause, serving.Interval), known: make(chan struct{}), isOff: true,
		pods: i.core.Core().V1().Pods().Informer().GetStore()}
}

// watch begins to watch the kinds once the API server has them, and follows the Lease from then on.
func (k *kueue) watch(ctx context.Context) {
	isWatching := false
	for {
		if !isWatching {
			_, err := k.api.ServerResourcesForGroupVersion(v1beta2.SchemeGroupVersion.String())
			switch {
			case err == nil:
				// Without an answer about the Lease, objects are not read: Kueue may be about to decide about them.
				err := k.look(ctx)
				if apierrors.IsForbidden(err) { // the rest of the scheduler does not need it
					k.closed.Do(func() { close(k.known) })
				}
				if err == nil && k.inbox.watchMore(ctx, k.informers) == nil {
					isWatching = true
					k.closed.Do(func() { close(k.known) })
				}
			case apierrors.IsNotFound(err):
				k.closed.Do(func() { close(k.known) })
			}
		} else {
			_ = k.look(ctx) // what is not known stays as it was
		}
		pause := k.pause
		if isOpen(k.known) {
			pause = askAgain
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// isOpen reports whether a channel is open.
func isOpen(c <-chan struct{}) bool {
	select {
	case <-c:
		return false
	default:
		return true
	}
}

// informers are those of the kinds of Kueue, and of those that only say what the pods of its Workloads will get.
func (k *kueue) informers() map[string]toolscache.SharedIndexInformer {
	kinds := k.inbox.batch.Kueue().V1beta2()
	watched := map[string]toolscache.SharedIndexInformer{
		"clusterqueues": kinds.ClusterQueues().Informer(), "cohorts": kinds.Cohorts().Informer(), "localqueues": kinds.LocalQueues().Informer(),
		"resourceflavors": kinds.ResourceFlavors().Informer(), "admissionchecks": kinds.AdmissionChecks().Informer(),
		"workloads": kinds.Workloads().Informer(),
	}
	k.mutex.Lock()
	for _, informer := range watched {
		k.stores = append(k.stores, informer.GetStore())
	}
	k.mutex.Unlock()
	watched["limitranges"] = k.inbox.core.Core().V1().LimitRanges().Informer()
	watched["runtimeclasses"] = k.inbox.core.Node().V1().RuntimeClasses().Informer()
	return watched
}

// look sees whether Kueue's own controllers hold their Lease, in whichever namespace.
func (k *kueue) look(ctx context.Context) error {
	leases, err := k.core.CoordinationV1().Leases("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, v1beta2.LeaseName).String()})
	if err != nil {
		return err
	}
	k.turn(serving.Holder(leases.Items, time.Now()))
	return nil
}

// turn shows the loop all objects again, or none any more.
func (k *kueue) turn(held *coordinationv1.Lease) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if isOff := held != nil; k.isTold && k.isOff == isOff {
		return
	}
	k.isOff, k.isTold = held != nil, true
	for _, store := range k.stores {
		for _, o := range store.List() {
			if k.isOff {
				k.inbox.queue.delete(o.(object))
			} else if k.inbox.isOurs(o.(object)) {
				k.inbox.queue.set(o.(object))
			}
		}
	}
	for _, o := range k.pods.List() {
		switch pod, is := o.(*cluster.Pod); {
		case !is || pod.Annotations[v1beta2.WorkloadAnnotation] == "":
		case k.isOff:
			k.inbox.queue.set(withoutWorkload(pod))
		default:
			k.inbox.queue.set(pod)
		}
	}
	if held != nil && k.tell != nil {
		k.tell(decision.Notice{
			Regarding: corev1.ObjectReference{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease", Namespace: held.Namespace, Name: held.Name, UID: held.UID},
			Type:      corev1.EventTypeWarning, Reason: serving.KueueRunsReason, Message: serving.KueueRunsMessage,
		})
	}
}

// pass hands on an event about an object. While Kueue runs, or its kinds are not there, none of them are, and pods
// belong to no Workload: those that Kueue has started are scheduled as all others are.
func (k *kueue) pass(o object, hand func(object)) {
	pod, isPod := o.(*cluster.Pod)
	isPod = isPod && pod.Annotations[v1beta2.WorkloadAnnotation] != ""
	if kind := kindOf(o); !isPod && (kind < clusterQueueKind || kind > workloadKind) {
		hand(o)
		return
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	switch {
	case !k.isOff:
		hand(o)
	case isPod:
		hand(withoutWorkload(pod))
	}
}

// withoutWorkload is a pod that belongs to no Workload.
func withoutWorkload(pod *cluster.Pod) *cluster.Pod {
	other := *pod
	other.Annotations = maps.Clone(pod.Annotations)
	delete(other.Annotations, v1beta2.WorkloadAnnotation)
	return &other
}

// podSets keeps one of equal lists of pod sets. Its size is bounded.
type podSets struct {
	known recent.Map[[sha256.Size]byte, []v1beta2.PodSet]
}

// setsOfGeneration is how many lists are young: those of as many different jobs as come at one time.
const setsOfGeneration = 1 << 11

// slimWorkload drops from a Workload what no decision reads. The pod sets of equal ones are kept once.
func (s *slimmer) slimWorkload(w *v1beta2.Workload) {
	// Of owners only the controller is read, and of the labels only the UID of the job. As that of an owner it takes a
	// quarter of the memory of a map.
	owner, uid := metav1.GetControllerOfNoCopy(w), w.Labels[v1beta2.JobUIDLabel]
	w.OwnerReferences, w.Finalizers, w.Labels = nil, nil, nil
	switch {
	case owner != nil:
		kept := metav1.OwnerReference{APIVersion: s.texts.One(owner.APIVersion), Kind: s.texts.One(owner.Kind), Name: owner.Name, UID: owner.UID, Controller: &isController}
		if uid != "" {
			kept.UID = types.UID(uid)
		}
		w.OwnerReferences = []metav1.OwnerReference{kept}
	case uid != "":
		w.Labels = map[string]string{v1beta2.JobUIDLabel: uid}
	}
	for i := range w.Spec.PodSets {
		w.Spec.PodSets[i].Template = *shapes.Slim(&w.Spec.PodSets[i].Template)
	}
	text, err := json.Marshal(w.Spec.PodSets)
	if err != nil {
		return
	}
	w.Spec.PodSets = s.sets.one(sha256.Sum256(text), w.Spec.PodSets)
	w.Namespace, w.Spec.QueueName = s.texts.One(w.Namespace), s.texts.One(w.Spec.QueueName)
	for i := range w.Status.Conditions {
		c := &w.Status.Conditions[i]
		c.Type, c.Reason, c.Message = s.texts.One(c.Type), s.texts.One(c.Reason), s.texts.One(c.Message)
	}
}

// isController is the mark of an owner. All Workloads share it.
var isController = true

func (p *podSets) one(key [sha256.Size]byte, sets []v1beta2.PodSet) []v1beta2.PodSet {
	return p.known.Of(key, setsOfGeneration, func() []v1beta2.PodSet { return sets })
}
