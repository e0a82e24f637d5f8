package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	toolscache "k8s.io/client-go/tools/cache"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/pkg/apis/bounds"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
	"hekla.sh/hekla/pkg/client/informers/externalversions"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// Options say what is watched.
type Options struct {
	// NodeSelector limits the nodes to those that carry one of these labels, each as "key:value"; empty takes all. Pods
	// on other nodes count for their queues, and no pod is placed there.
	NodeSelector []string
	// IgnorePriorityClasses leaves the PriorityClasses out, so that every job has priority 0.
	IgnorePriorityClasses bool
	// Observe receives each pod that is added after the first list. It may be nil.
	Observe func(*cluster.Pod)
	// KueueRuns receives an Event when Kueue's own controllers begin to run: its objects then count as if they were not
	// there. It may be nil.
	KueueRuns func(decision.Notice)
	// KueuePause is how often the API server is asked whether it has the kinds of Kueue and whether Kueue runs, ten
	// seconds if it is 0.
	KueuePause time.Duration
	// PageSize is how many pods, nodes and PodGroups are listed with one request, 2,000 if it is 0.
	PageSize int
	// Unreadable receives an Event about each stored object that cannot be decoded. For the loop such an object does
	// not exist. It may be nil.
	Unreadable func(decision.Notice)
}

// Inbox watches the cluster and keeps events until they are taken.
type Inbox struct {
	queue   *eventQueue
	nodes   []label
	observe func(*cluster.Pod)
	tell    func(decision.Notice)

	core  informers.SharedInformerFactory
	batch externalversions.SharedInformerFactory
	mutex sync.Mutex
	kinds []*watchedKind
	// setup is held from the making of informers until they are started: the factories start whatever was made, and
	// what runs can no longer be set up.
	setup sync.Mutex

	api     discovery.DiscoveryInterface
	asking  sync.WaitGroup
	devices chan struct{} // closed when it is known whether the API server has devices, and they are watched
	kueue   *kueue
}

// label is one label that a node may have.
type label struct{ key, value string }

// watchedKind is the state of the cache of a kind.
type watchedKind struct {
	name         string
	store        toolscache.Store
	registration toolscache.ResourceEventHandlerRegistration

	mutex   sync.Mutex
	problem error // the last error of a list or watch
}

// New returns an inbox that watches nothing before [Inbox.Start].
func New(clients *apiserver.Clients, options Options) (*Inbox, error) {
	small := newSlimmer()
	i := &Inbox{
		queue: newEventQueue(), api: clients.Core.Discovery(), devices: make(chan struct{}), observe: options.Observe, tell: options.Unreadable,
		core: informers.NewSharedInformerFactoryWithOptions(clients.Core, 0,
			informers.WithTransform(small.slim), informers.WithTweakListOptions(readThrough)),
		batch: externalversions.NewSharedInformerFactoryWithOptions(clients.Batch, 0,
			externalversions.WithTransform(small.slim), externalversions.WithTweakListOptions(readThrough)),
	}
	listInPages(i.core, i.batch, cmp.Or(options.PageSize, pageSize), small.slim)
	small.cached = cachedIn(i.core.Core().V1().Pods().Informer().GetStore())
	for _, selector := range options.NodeSelector {
		name, value, ok := strings.Cut(selector, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, fmt.Errorf("node selector %q: expected a label as key:value", selector)
		}
		i.nodes = append(i.nodes, label{name, strings.TrimSpace(value)})
	}
	scheduling := i.batch.Scheduling().V1beta1()
	watched := map[string]toolscache.SharedIndexInformer{
		"pods":       i.core.Core().V1().Pods().Informer(),
		"nodes":      i.core.Core().V1().Nodes().Informer(),
		"namespaces": i.core.Core().V1().Namespaces().Informer(),
		"podgroups":  scheduling.PodGroups().Informer(),
		"queues":     scheduling.Queues().Informer(),
		"hypernodes": i.batch.Topology().V1alpha1().HyperNodes().Informer(),

		"poddisruptionbudgets": i.core.Policy().V1().PodDisruptionBudgets().Informer(),
		"resourcequotas":       i.core.Core().V1().ResourceQuotas().Informer(),

		"persistentvolumeclaims": i.core.Core().V1().PersistentVolumeClaims().Informer(),
		"persistentvolumes":      i.core.Core().V1().PersistentVolumes().Informer(),
		"storageclasses":         i.core.Storage().V1().StorageClasses().Informer(),
		"csinodes":               i.core.Storage().V1().CSINodes().Informer(),
		"csidrivers":             i.core.Storage().V1().CSIDrivers().Informer(),
		"csistoragecapacities":   i.core.Storage().V1().CSIStorageCapacities().Informer(),
		"volumeattachments":      i.core.Storage().V1().VolumeAttachments().Informer(),
	}
	if !options.IgnorePriorityClasses {
		watched["priorityclasses"] = i.core.Scheduling().V1().PriorityClasses().Informer()
	}
	i.kueue = newKueue(i, clients, options)
	return i, i.watchAll(watched)
}

// cachedIn returns a function that says what a cache has of a pod.
func cachedIn(store toolscache.Store) func(*corev1.Pod) *cluster.Pod {
	return func(pod *corev1.Pod) *cluster.Pod {
		known, _, _ := store.GetByKey(pod.Namespace + "/" + pod.Name) // a map in memory: it cannot fail
		before, _ := known.(*cluster.Pod)
		return before
	}
}

func (i *Inbox) watchAll(watched map[string]toolscache.SharedIndexInformer) error {
	for name, informer := range watched {
		if err := i.watch(name, informer); err != nil {
			return fmt.Errorf("watch %s: %w", name, err)
		}
	}
	return nil
}

// watchMore watches further kinds from now on. The informers are made by informers.
func (i *Inbox) watchMore(ctx context.Context, informers func() map[string]toolscache.SharedIndexInformer) error {
	i.setup.Lock()
	defer i.setup.Unlock()
	if err := i.watchAll(informers()); err != nil {
		return err
	}
	i.core.StartWithContext(ctx)
	i.batch.StartWithContext(ctx)
	return nil
}

// readThrough makes the first list as new as its request. The cache of an API server may be minutes behind, and a
// leader must not begin with an old state.
func readThrough(options *metav1.ListOptions) {
	if options.ResourceVersion == "0" {
		options.ResourceVersion = ""
	}
}

func (i *Inbox) watch(name string, informer toolscache.SharedIndexInformer) error {
	w := &watchedKind{name: name, store: informer.GetStore()}
	if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *toolscache.Reflector, err error) {
		w.mutex.Lock()
		w.problem = err
		w.mutex.Unlock()
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
	}); err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, isInInitialList bool) {
			if pod, ok := o.(*cluster.Pod); ok && !isInInitialList && i.observe != nil {
				i.observe(pod)
			}
			i.seen(o.(object))
		},
		UpdateFunc: func(before, now any) { i.replaced(before.(object), now.(object)) },
		DeleteFunc: i.deleted,
	})
	if err != nil {
		return err
	}
	w.registration = registration
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.kinds = append(i.kinds, w)
	return nil
}

func (i *Inbox) seen(o object) {
	if i.isOurs(o) {
		i.kueue.pass(o, func(o object) { i.queue.set(o) })
	} else if why, is := bounds.Unreadable(o); is && i.tell != nil {
		i.tell(unreadable(o, why))
	}
}

// unreadableReason is the reason of the Event about an object that is ignored because it cannot be decoded.
const unreadableReason = "Unreadable"

func unreadable(o object, why string) decision.Notice {
	apiVersion, kind := "", ""
	switch o.(type) {
	case *schedulingv1beta1.PodGroup:
		apiVersion, kind = schedulingv1beta1.SchemeGroupVersion.String(), "PodGroup"
	case *schedulingv1beta1.Queue:
		apiVersion, kind = schedulingv1beta1.SchemeGroupVersion.String(), "Queue"
	case *topologyv1alpha1.HyperNode:
		apiVersion, kind = topologyv1alpha1.SchemeGroupVersion.String(), "HyperNode"
	default:
		if k := kindOf(o); k >= clusterQueueKind && k <= workloadKind {
			apiVersion, kind = v1beta2.SchemeGroupVersion.String(), k.String()
		}
	}
	return decision.Notice{
		Regarding: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()},
		Type:      corev1.EventTypeWarning, Reason: unreadableReason,
		Message: "counts as if it were not there, because it was stored in a form that cannot be read: " + why,
	}
}

func (i *Inbox) replaced(before, now object) {
	if before.GetResourceVersion() == now.GetResourceVersion() {
		return
	}
	// After a gap in the watch an object and the one that took its name show as one update.
	if i.isOurs(before) && (before.GetUID() != now.GetUID() || !i.isOurs(now)) {
		i.kueue.pass(before, func(o object) { i.queue.delete(o) })
	}
	if canWait(before, now) && i.isOurs(now) {
		i.kueue.pass(now, func(o object) { i.queue.setLater(o) })
		return
	}
	i.seen(now)
}

func (i *Inbox) deleted(o any) {
	if tombstone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = tombstone.Obj
	}
	if deleted, ok := o.(object); ok && i.isOurs(deleted) {
		i.kueue.pass(deleted, func(o object) { i.queue.delete(o) })
	}
}

// isOurs is false for the nodes that the selector leaves out, and for what cannot be read.
func (i *Inbox) isOurs(o object) bool {
	if _, is := bounds.Unreadable(o); is {
		return false
	}
	node, ok := o.(*corev1.Node)
	return !ok || len(i.nodes) == 0 || slices.ContainsFunc(i.nodes, func(l label) bool {
		value, has := node.Labels[l.key]
		return has && value == l.value
	})
}

// Start begins to list and watch, until the context ends; [Inbox.Wait] then waits for the last goroutine.
func (i *Inbox) Start(ctx context.Context) {
	i.core.StartWithContext(ctx)
	i.batch.StartWithContext(ctx)
	i.asking.Go(func() { i.watchDevices(ctx) })
	i.asking.Go(func() { i.kueue.watch(ctx) })
}

// askAgain is the pause before the API server is asked again whether it has devices.
const askAgain = time.Second

// watchDevices watches devices if the API server has them: before Kubernetes 1.34 it does not, and a feature gate can
// turn them off.
func (i *Inbox) watchDevices(ctx context.Context) {
	err := wait.PollUntilContextCancel(ctx, askAgain, true, func(context.Context) (bool, error) {
		switch _, err := i.api.ServerResourcesForGroupVersion(resourcev1.SchemeGroupVersion.String()); {
		case apierrors.IsNotFound(err):
			return true, nil
		case err != nil:
			return false, nil
		}
		hasRules, err := i.hasTaintRules()
		if err != nil {
			return false, nil
		}
		return true, i.watchMore(ctx, func() map[string]toolscache.SharedIndexInformer {
			resource := i.core.Resource().V1()
			watched := map[string]toolscache.SharedIndexInformer{
				"resourceclaims":         resource.ResourceClaims().Informer(),
				"resourceclaimtemplates": resource.ResourceClaimTemplates().Informer(),
				"resourceslices":         resource.ResourceSlices().Informer(),
				"deviceclasses":          resource.DeviceClasses().Informer(),
			}
			if hasRules {
				watched["devicetaintrules"] = i.core.Resource().V1beta2().DeviceTaintRules().Informer()
			}
			return watched
		})
	})
	if err == nil {
		close(i.devices)
	}
}

// hasTaintRules reports whether the API server has DeviceTaintRules: in Kubernetes 1.36 a feature gate turns them on.
func (i *Inbox) hasTaintRules() (bool, error) {
	served, err := i.api.ServerResourcesForGroupVersion(resourcev1beta2.SchemeGroupVersion.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == "devicetaintrules" }), nil
}

// Wait waits for everything that Start has started.
func (i *Inbox) Wait() {
	i.asking.Wait()
	i.core.Shutdown()
	i.batch.Shutdown()
}

// WaitSynced returns when all objects that existed at the start can be taken. If the context ends before, the error is
// that of [Inbox.Missing].
func (i *Inbox) WaitSynced(ctx context.Context) error {
	select {
	case <-i.known(ctx):
		var synced []toolscache.DoneChecker
		for _, w := range i.watched() {
			synced = append(synced, w.registration.HasSyncedChecker())
		}
		if toolscache.WaitFor(ctx, "", synced...) {
			return nil
		}
	case <-ctx.Done():
	}
	return fmt.Errorf("the lists of the cluster are not complete: %w", errors.Join(context.Cause(ctx), i.Missing()))
}

// Missing is nil if all objects that existed at the start can be taken; else it names the kinds that were not listed
// yet, and why. Any goroutine may call it, before Start too.
func (i *Inbox) Missing() error {
	var errs []error
	if isOpen(i.devices) {
		errs = append(errs, errors.New("resourceclaims: the API server has not said whether it has any"))
	}
	if isOpen(i.kueue.known) {
		errs = append(errs, errors.New("workloads: the API server has not said whether it has any, or whether Kueue runs"))
	}
	for _, w := range i.watched() {
		if w.registration.HasSynced() {
			continue
		}
		w.mutex.Lock()
		problem := w.problem
		w.mutex.Unlock()
		if problem == nil {
			problem = errors.New("the API server has not sent all of them")
		}
		errs = append(errs, fmt.Errorf("%s: %w", w.name, problem))
	}
	return errors.Join(errs...)
}

// known closes when it is known which kinds the API server has that it need not have.
func (i *Inbox) known(ctx context.Context) <-chan struct{} {
	all := make(chan struct{})
	go func() {
		for _, one := range []<-chan struct{}{i.devices, i.kueue.known} {
			select {
			case <-one:
			case <-ctx.Done():
				return
			}
		}
		close(all)
	}()
	return all
}

// watched returns the kinds that are watched.
func (i *Inbox) watched() []*watchedKind {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return slices.Clone(i.kinds)
}

// Wake receives when there are events to take.
func (i *Inbox) Wake() <-chan struct{} { return i.queue.wake }

// Poke makes Wake receive once even without events.
func (i *Inbox) Poke() { i.queue.poke() }

// Take returns the events since the last call, and clears Wake for them. Objects are in the order of their first
// events.
func (i *Inbox) Take() []cache.Event { return i.queue.take() }

// Refuse reports to the loop that a binding was refused for good; it is for [OutboxOptions].
func (i *Inbox) Refuse(e cache.BindFailed) {
	i.queue.add(objectKey{refusalKind, e.Pod.Namespace, e.Pod.Name}, e, false)
}

// Workload reports to the loop what became of a decision about a Workload; it is for [OutboxOptions].
func (i *Inbox) Workload(e cache.Event) {
	switch e := e.(type) {
	case cache.WorkloadWritten: // it is as was decided
		i.queue.addLater(objectKey{workloadResultKind, e.Workload.Namespace, e.Workload.Name}, e)
	case cache.WorkloadFailed:
		kind := workloadResultKind
		if e.Number == 0 { // that of a status must not take its place
			kind = workloadPlanKind
		}
		i.queue.add(objectKey{kind, e.Workload.Namespace, e.Workload.Name}, e, false)
	}
}

// Fail reports to the loop that a plan cannot be carried out; it is for [OutboxOptions].
func (i *Inbox) Fail(e cache.PlanFailed) { i.queue.add(objectKey{planKind, "", e.Plan}, e, false) }

// Measure reports loads of nodes to the loop.
func (i *Inbox) Measure(measured ...cache.Measured) {
	for _, e := range measured {
		i.queue.add(objectKey{loadKind, "", e.Node}, e, false)
	}
}

// Stats are the numbers of an inbox.
type Stats struct {
	// Waiting is the number of objects with events to take.
	Waiting int `json:"waiting"`
	// Coalesced is the number of events that have replaced another before it was taken.
	Coalesced uint64 `json:"coalesced"`
}

// Stats returns the current numbers.
func (i *Inbox) Stats() Stats {
	return Stats{Waiting: i.queue.length(), Coalesced: i.queue.coalescedCount()}
}
