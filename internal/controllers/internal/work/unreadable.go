package work

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/bounds"
)

// ReasonUnreadable is the reason of the Event of an object that no controller acts upon, because it cannot be decoded.
const ReasonUnreadable = "Unreadable"

// LeavesAlone reports whether an object could not be decoded, and tells so in an Event with it. Nothing is known of
// what such an object asks for, so nothing of it is changed, and nothing that belongs to it.
func LeavesAlone(recorder events.EventRecorder, object client.Object) bool {
	why, is := bounds.Unreadable(object)
	if is {
		recorder.Eventf(object, nil, corev1.EventTypeWarning, ReasonUnreadable, "Read",
			"left alone, because it was stored in a form that cannot be read: %s", why)
	}
	return is
}
