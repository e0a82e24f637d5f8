package recorder

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// For returns the recorder of a controller, which is shown as the source of its Events. They are written while the
// manager runs and leads.
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
	return core{broadcaster.NewRecorder(scheme, corev1.EventSource{Component: name}), o, scheme, name}, broadcaster.Shutdown
}

// core records what it is told through the newer interface by the older one, which has no place for a related object
// and for what was tried.
type core struct {
	record.EventRecorder
	outlet *outlet
	scheme *runtime.Scheme
	name   string
}

func (c core) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, arguments ...any) {
	c.EventRecorder.Eventf(regarding, kind, reason, note, arguments...)
}

// Once records an Event of an object that is there at most once as long as the API server keeps it, also if another
// process records it. What it says makes its name, and one that is there already is left alone.
func Once(by events.EventRecorder, regarding runtime.Object, kind, reason, action, note string, arguments ...any) {
	c, is := by.(core)
	if !is {
		by.Eventf(regarding, nil, kind, reason, action, note, arguments...)
		return
	}
	object, err := reference.GetReference(c.scheme, regarding)
	if err != nil {
		c.outlet.logger.Error(err, "An Event was not written", "reason", reason)
		return
	}
	message := fmt.Sprintf(note, arguments...)
	hash := sha256.Sum256([]byte(strings.Join([]string{c.name, object.Kind, string(object.UID), reason, message}, "\n")))
	suffix := "." + hex.EncodeToString(hash[:hashLength])
	name := strings.TrimRight(object.Name[:min(len(object.Name), validation.DNS1123SubdomainMaxLength-len(suffix))], ".-")
	now := metav1.Now()
	_, _ = c.outlet.Create(&corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: cmp.Or(object.Namespace, metav1.NamespaceDefault), Name: name + suffix},
		InvolvedObject: *object, Type: kind, Reason: reason, Message: message, FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: c.name}, ReportingController: c.name,
	})
}

// hashLength is how many bytes of what an Event says are in the name of one that is recorded once.
const hashLength = 8
