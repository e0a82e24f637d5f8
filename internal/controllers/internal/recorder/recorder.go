package recorder

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// For returns the recorder of a controller, which is shown as the source of its Events. They are written while the manager runs and leads.
func For(mgr manager.Manager, name string) events.EventRecorder {
	logger := mgr.GetLogger().WithName(name)
	client, err := typedcorev1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	o := newOutlet(nil, logger)
	if err == nil {
		o.sink = &typedcorev1.EventSinkImpl{Interface: client.Events("")}
	}
	recorder, stop := o.recorder(mgr.GetScheme(), name)
	run := func(ctx context.Context) error {
		defer stop()
		if err != nil {
			return fmt.Errorf("client for Events: %w", err)
		}
		o.run(ctx)
		return nil
	}
	if err := mgr.Add(manager.RunnableFunc(run)); err != nil {
		logger.Error(err, "No Events will be written")
	}
	return recorder
}

// recorder makes what Events are recorded by, until it is stopped.
func (o *outlet) recorder(scheme *runtime.Scheme, name string) (of events.EventRecorder, stop func()) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(o)
	return core{broadcaster.NewRecorder(scheme, corev1.EventSource{Component: name})}, broadcaster.Shutdown
}

// core records what it is told through the newer interface by the older one, which has no place for a related object and for
// what was tried.
type core struct{ record.EventRecorder }

func (c core) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, arguments ...any) {
	c.EventRecorder.Eventf(regarding, kind, reason, note, arguments...)
}
