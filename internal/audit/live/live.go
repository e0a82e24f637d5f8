package live

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"hekla.sh/hekla/internal/audit"
)

// settle is how long a sighting waits for older ones of other watches.
const settle = time.Second

// resources are what rules look at, in the versions that they read.
var resources = []schema.GroupVersionResource{
	{Version: "v1", Resource: "nodes"},
	{Version: "v1", Resource: "pods"},
	{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"},
	{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "queues"},
	{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "clusterqueues"},
	{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "cohorts"},
	{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"},
	{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "localqueues"},
	{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "resourceflavors"},
	{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "topologies"},
	{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "admissionchecks"},
}

// Told receives what [Watch] has to say while it runs, on one goroutine.
type Told struct {
	// Began is called once everything is known that was there, with the kinds that the API server does not serve.
	Began func(absent []schema.GroupVersionResource)
	// Proven is called with violations, as they are found.
	Proven func([]audit.Violation)
}

// Watch watches until the context ends, which is no error. An error is one of the first lists: of a right that lacks,
// or of an API server that cannot be reached. Later ones are tried again.
func Watch(ctx context.Context, config *rest.Config, a *audit.Auditor, told Told) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	served, absent, err := servedBy(ctx, client)
	if err != nil || ctx.Err() != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	m := &merger{seen: make(chan sighting, 1024), lists: make(chan []byte)}
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	for _, r := range served {
		reflector := cache.NewReflectorWithOptions(listWatch(client, r), nil, &view{ctx: ctx, to: m, keys: map[types.NamespacedName]*unstructured.Unstructured{}},
			cache.ReflectorOptions{Name: "audit of " + r.Resource, TypeDescription: r.String()})
		watching.Go(func() { reflector.RunWithContext(ctx) })
	}
	for range served {
		select {
		case list := <-m.lists:
			if _, err := a.Know(bytes.NewReader(list)); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
	told.Began(absent)
	m.run(ctx, a, told.Proven)
	return nil
}

// servedBy tells which of the resources the API server has.
func servedBy(ctx context.Context, client dynamic.Interface) (served, absent []schema.GroupVersionResource, err error) {
	for _, r := range resources {
		switch _, err := client.Resource(r).List(ctx, metav1.ListOptions{Limit: 1}); {
		case ctx.Err() != nil:
			return nil, nil, nil
		case apierrors.IsNotFound(err):
			absent = append(absent, r)
		case err != nil:
			return nil, nil, fmt.Errorf("list %s: %w", r.GroupResource(), err)
		default:
			served = append(served, r)
		}
	}
	return served, absent, nil
}

func listWatch(client dynamic.Interface, r schema.GroupVersionResource) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.Resource(r).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.Resource(r).Watch(ctx, o)
		},
	}
}

// view is what the reflector of one resource keeps its objects in: it passes them on, and keeps what it needs to tell
// after a list which are gone.
type view struct {
	ctx  context.Context
	to   *merger
	keys map[types.NamespacedName]*unstructured.Unstructured // of each object kind, name and UID
	// isKnown says that the first list was passed on.
	isKnown bool
}

var _ cache.ReflectorStore = &view{}

func (v *view) Add(o any) error    { return v.show(o.(*unstructured.Unstructured), false) }
func (v *view) Update(o any) error { return v.show(o.(*unstructured.Unstructured), false) }
func (v *view) Delete(o any) error { return v.show(o.(*unstructured.Unstructured), true) }
func (v *view) Resync() error      { return nil }

// Replace takes in a list: the first, or one after a watch that was broken.
func (v *view) Replace(list []any, version string) error {
	if !v.isKnown {
		return v.begin(list)
	}
	gone := v.keys
	v.keys = map[types.NamespacedName]*unstructured.Unstructured{}
	for _, o := range list {
		object := o.(*unstructured.Unstructured)
		delete(gone, named(object))
		if err := v.show(object, false); err != nil {
			return err
		}
	}
	for _, object := range gone {
		object.SetResourceVersion(version)
		if err := v.show(object, true); err != nil {
			return err
		}
	}
	return nil
}

// begin passes on the first list.
func (v *view) begin(list []any) error {
	v.isKnown = true
	for _, o := range list {
		v.keep(o.(*unstructured.Unstructured))
	}
	text, err := json.Marshal(map[string]any{"kind": "List", "items": list})
	if err != nil {
		return err
	}
	select {
	case v.to.lists <- text:
	case <-v.ctx.Done():
	}
	return nil
}

func (v *view) show(o *unstructured.Unstructured, isGone bool) error {
	if isGone {
		delete(v.keys, named(o))
	} else {
		v.keep(o)
	}
	version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return fmt.Errorf("the resource version of %s %s: %w", o.GetKind(), named(o), err)
	}
	text, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	select {
	case v.to.seen <- sighting{version: version, Sighting: audit.Sighting{At: time.Now(), Object: text, IsGone: isGone}}:
	case <-v.ctx.Done():
	}
	return nil
}

// keep notes what is needed to say that an object is gone, and drops what no rule looks at.
func (v *view) keep(o *unstructured.Unstructured) {
	o.SetManagedFields(nil)
	gone := &unstructured.Unstructured{}
	gone.SetAPIVersion(o.GetAPIVersion())
	gone.SetKind(o.GetKind())
	gone.SetNamespace(o.GetNamespace())
	gone.SetName(o.GetName())
	gone.SetUID(o.GetUID())
	v.keys[named(o)] = gone
}

func named(o *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// sighting is an object that waits for its turn.
type sighting struct {
	audit.Sighting
	version uint64
}

// merger puts what all watches show into one order.
type merger struct {
	lists   chan []byte
	seen    chan sighting
	waiting byVersion
	latest  time.Time
}

func (m *merger) run(ctx context.Context, a *audit.Auditor, proven func([]audit.Violation)) {
	tick := time.NewTicker(settle / 4)
	defer tick.Stop()
	for {
		select {
		case s := <-m.seen:
			heap.Push(&m.waiting, s)
		case now := <-tick.C:
			m.pass(a, now.Add(-settle), proven)
		case <-ctx.Done():
			m.pass(a, time.Now(), proven)
			return
		}
	}
}

// pass tells the auditor of all that was seen by then, and of what is older.
func (m *merger) pass(a *audit.Auditor, then time.Time, proven func([]audit.Violation)) {
	last := uint64(0)
	for _, s := range m.waiting {
		if !s.At.After(then) {
			last = max(last, s.version)
		}
	}
	for len(m.waiting) > 0 && m.waiting[0].version <= last {
		s := heap.Pop(&m.waiting).(sighting)
		if s.At.Before(m.latest) {
			s.At = m.latest
		}
		m.latest = s.At
		found, _ := a.Watched(s.Sighting) // the report counts what cannot be read
		if len(found) > 0 {
			proven(found)
		}
	}
	if then.After(m.latest) {
		m.latest = then
		if found := a.Advance(then); len(found) > 0 {
			proven(found)
		}
	}
}

// byVersion are sightings as a heap, the oldest version first.
type byVersion []sighting

func (b byVersion) Len() int           { return len(b) }
func (b byVersion) Less(i, j int) bool { return cmp.Less(b[i].version, b[j].version) }
func (b byVersion) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b *byVersion) Push(x any)        { *b = append(*b, x.(sighting)) }
func (b *byVersion) Pop() any {
	last := (*b)[len(*b)-1]
	(*b)[len(*b)-1] = sighting{}
	*b = (*b)[:len(*b)-1]
	return last
}
