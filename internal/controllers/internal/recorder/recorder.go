package recorder

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// For returns the recorder of a controller, which is shown as the source of its Events.
func For(mgr manager.Manager, name string) events.EventRecorder {
	//lint:ignore SA1019 the recorder that is to take its place makes Events of events.k8s.io/v1
	return core{mgr.GetEventRecorderFor(name)}
}

// core records what it is told through the newer interface by the older one, which has no place for a related object and for
// what was tried.
type core struct{ record.EventRecorder }

func (c core) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, arguments ...any) {
	c.EventRecorder.Eventf(regarding, kind, reason, note, arguments...)
}
