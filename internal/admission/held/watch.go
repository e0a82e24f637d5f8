package held

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/client/serving"
)

// Watch learns what is known of the workloads of a cluster. Only one goroutine may use it.
type Watch struct {
	live  client.Reader
	cache cache.Cache
	// configuration is the ConfigMap of the scheduler.
	configuration client.ObjectKey
	wake          chan struct{}
	isWatching    bool
}

// NewWatch returns a watch that knows nothing yet.
func NewWatch(live client.Reader, cached cache.Cache, configuration client.ObjectKey) *Watch {
	return &Watch{live: live, cache: cached, configuration: configuration, wake: make(chan struct{}, 1)}
}

// Wake is sent to when it is worth looking again at once: a LocalQueue for jobs that name none has come or gone.
func (w *Watch) Wake() <-chan struct{} { return w.wake }

// Look learns whether the scheduler admits workloads, whether Kueue runs, and whether there are LocalQueues for jobs
// that name none. What cannot be read stays as it was, and is in the error.
func (w *Watch) Look(ctx context.Context, known Known) (Known, error) {
	lease, err1 := serving.Kueue(ctx, w.live, time.Now())
	if err1 == nil {
		known.KueueRuns = lease != nil
	}
	text, err2 := serving.Configuration(ctx, w.live, w.configuration)
	if err2 == nil {
		var p queueing.Policy
		if p, err2 = queueing.ReadPolicy(text); err2 == nil {
			known.IsOn, known.HoldsUnnamed, known.Managed, known.External = p.IsOn, p.HoldsUnnamed, "", names(p.External)
			if p.Managed != nil {
				known.Managed = p.Managed.String()
			}
		}
	}
	has, err3 := w.haveDefaultQueue(ctx)
	if err3 == nil {
		known.HaveDefaultQueue = has
	}
	return known, errors.Join(err1, err2, err3)
}

// names writes kinds as the configuration does.
func names(kinds []schema.GroupVersionKind) string {
	all := make([]string, len(kinds))
	for i, kind := range kinds {
		all[i] = kind.Kind + "." + kind.Version + "." + kind.Group
	}
	return strings.Join(all, ",")
}

// haveDefaultQueue is false in clusters without the definition of LocalQueues.
func (w *Watch) haveDefaultQueue(ctx context.Context) (bool, error) {
	if !w.isWatching {
		informer, err := w.cache.GetInformer(ctx, &v1beta2.LocalQueue{})
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		if err == nil {
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: w.changed, DeleteFunc: w.changed})
		}
		if err != nil {
			return false, fmt.Errorf("watching LocalQueues: %w", err)
		}
		w.isWatching = true
	}
	list := &v1beta2.LocalQueueList{}
	if err := w.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("reading LocalQueues: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Name == v1beta2.DefaultLocalQueueName {
			return true, nil
		}
	}
	return false, nil
}

// changed is called for each LocalQueue that comes or goes.
func (w *Watch) changed(object any) {
	if gone, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = gone.Obj
	}
	if o, is := object.(client.Object); !is || o.GetName() != v1beta2.DefaultLocalQueueName {
		return
	}
	select {
	case w.wake <- struct{}{}:
	default: // it is woken already
	}
}
