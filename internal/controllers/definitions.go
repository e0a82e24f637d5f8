package controllers

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"hekla.sh/hekla/internal/controllers/internal/recorder"
	"hekla.sh/hekla/pkg/client/definitions"
)

// watchDefinitions tells, in the log and in an Event, of definitions whose objects cannot have their statuses written,
// and of those that drop fields: at the start, and when they become so.
func watchDefinitions(mgr manager.Manager) error {
	api, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("asking for definitions: %w", err)
	}
	events, logger := recorder.For(mgr, "controllers"), mgr.GetLogger()
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		definitions.WatchFields(ctx, api, definitions.Period, func(resource schema.GroupVersionResource, fields []string) {
			message := definitions.DroppedMessage(resource, fields)
			logger.Error(errors.New(message), "A definition drops fields")
			events.Eventf(definitions.Object(resource), nil, corev1.EventTypeWarning, definitions.DroppedReason, "CheckDefinitions", "%s", message)
		})
		return nil
	}))
	if err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		definitions.Watch(ctx, api, definitions.Written, definitions.Period, func(resource schema.GroupVersionResource) {
			message := definitions.Message(resource)
			switch resource.Resource {
			case "podgroups":
			case "queues":
				message += "; until then the state and the counts are written into the queues themselves, and what they hold is not written"
			default:
				message += "; until then no status of these is written, and what follows from one does not happen"
			}
			logger.Error(errors.New(message), "A definition cannot hold statuses")
			events.Eventf(definitions.Object(resource), nil, corev1.EventTypeWarning, definitions.Reason, "CheckDefinitions", "%s", message)
		})
		return nil
	}))
}
