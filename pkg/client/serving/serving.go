package serving

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/bounds"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/conf"
)

const (
	// Interval is how often the scheduler's configuration and the Lease of Kueue are looked at.
	Interval = 10 * time.Second

	// KueueRunsReason is the reason of the Event about the Lease of Kueue's own controllers.
	KueueRunsReason = "KueueRuns"

	// KueueRunsMessage is what that Event says.
	KueueRunsMessage = "Kueue itself runs, by this Lease: Hekla leaves the objects of kueue.x-k8s.io to it"

	// configurationKey is where the text of the configuration is in its ConfigMap.
	configurationKey = "volcano-scheduler.conf"

	action, plugin = "admit", "cohorts"
)

// Admits reports whether a scheduler with this configuration admits Workloads: it has the action admit and the plugin cohorts. Then it
// returns the arguments of the plugin, unread. An error says that the text cannot be read at all.
func Admits(configuration []byte) (arguments json.RawMessage, admits bool, err error) {
	var d struct {
		Actions string `json:"actions"`
		Tiers   []struct {
			Plugins []struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"plugins"`
		} `json:"tiers"`
	}
	if err := bounds.UnmarshalYAML(configuration, &d); err != nil {
		return nil, false, fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	if !slices.ContainsFunc(strings.Split(d.Actions, ","), func(name string) bool { return strings.TrimSpace(name) == action }) {
		return nil, false, nil
	}
	for _, tier := range d.Tiers {
		for _, p := range tier.Plugins {
			if p.Name == plugin {
				return p.Arguments, true, nil
			}
		}
	}
	return nil, false, nil
}

// Configuration reads the text of the scheduler's configuration from its ConfigMap: the default if there is no such ConfigMap.
func Configuration(ctx context.Context, reader client.Reader, configMap client.ObjectKey) ([]byte, error) {
	found := &corev1.ConfigMap{}
	err := reader.Get(ctx, configMap, found)
	if apierrors.IsNotFound(err) {
		return []byte(conf.DefaultYAML), nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	text, has := found.Data[configurationKey]
	if !has {
		return nil, fmt.Errorf("ConfigMap %s has no key %s", configMap, configurationKey)
	}
	return []byte(text), nil
}

// Holder returns the Lease by which Kueue's own controllers run, of all Leases of its name; nil if they do not run.
func Holder(leases []coordinationv1.Lease, now time.Time) *coordinationv1.Lease {
	for i := range leases {
		if leases[i].Name == v1beta2.LeaseName && isHeld(&leases[i].Spec, now) {
			return &leases[i]
		}
	}
	return nil
}

// isHeld reports whether a Lease has a holder that has renewed it in time.
func isHeld(lease *coordinationv1.LeaseSpec, now time.Time) bool {
	if lease.HolderIdentity == nil || *lease.HolderIdentity == "" || lease.RenewTime == nil || lease.LeaseDurationSeconds == nil {
		return false
	}
	return now.Before(lease.RenewTime.Add(time.Duration(*lease.LeaseDurationSeconds) * time.Second))
}

// Kueue returns the Lease by which Kueue's own controllers run, nil if they do not run.
func Kueue(ctx context.Context, reader client.Reader, now time.Time) (*coordinationv1.Lease, error) {
	leases := &coordinationv1.LeaseList{}
	if err := reader.List(ctx, leases, client.MatchingFields{"metadata.name": v1beta2.LeaseName}); err != nil {
		return nil, fmt.Errorf("looking for the Lease of Kueue: %w", err)
	}
	return Holder(leases.Items, now), nil
}
