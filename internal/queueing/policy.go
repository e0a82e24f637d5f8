package queueing

import (
	"fmt"
	"hash/fnv"
	"time"

	"hekla.sh/hekla/pkg/client/serving"
	"hekla.sh/hekla/pkg/plugins/cohorts/arguments"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Policy is what the controllers of workloads go by.
type Policy struct {
	// IsOn says that the scheduler admits workloads.
	IsOn bool

	// HoldsUnnamed says that Jobs which name no LocalQueue wait until they name one, in the namespaces that Managed
	// selects. Nil selects all. In these a LocalQueue default takes Jobs that name none.
	HoldsUnnamed bool
	Managed      labels.Selector

	// External are the kinds whose own controllers make Workloads and follow them.
	External []schema.GroupVersionKind

	// FairSharing says that shares of ClusterQueues and Cohorts decide, and are shown.
	FairSharing bool

	// PodsReady says what becomes of workloads whose pods are not ready; nil asks nothing.
	PodsReady *PodsReady

	// AfterFinished and AfterDeactivated are how long a Workload is kept that has ended, or that was made inactive by a
	// controller; nil keeps it.
	AfterFinished, AfterDeactivated *time.Duration
}

// PodsReady says what becomes of workloads whose pods are not ready.
type PodsReady struct {
	Timeout         time.Duration // from the admission on
	RecoveryTimeout time.Duration // from when they were ready last
	BackoffLimit    *int32        // after how many evictions the workload is made inactive; nil: never
	BackoffBase     time.Duration
	BackoffMax      time.Duration
}

// ReadPolicy reads the text of a scheduler's configuration.
func ReadPolicy(text []byte) (Policy, error) {
	given, admits, err := serving.Admits(text)
	if err != nil || !admits {
		return Policy{}, err
	}
	a, err := arguments.Decode(given)
	if err != nil {
		return Policy{}, fmt.Errorf("reading the arguments of the plugin cohorts: %w", err)
	}
	return PolicyOf(&a), nil
}

// PolicyOf is the policy by the arguments of the plugin cohorts, of a scheduler that admits workloads.
func PolicyOf(a *arguments.Arguments) Policy {
	p := Policy{IsOn: true, FairSharing: a.FairSharing, HoldsUnnamed: a.ManageJobsWithoutQueueName}
	p.Managed, _ = a.Namespaces() // the scheduler refuses a selector or a kind that cannot be read
	p.External, _ = a.External()
	if w := &a.WaitForPodsReady; w.Enable {
		r := &w.RequeuingStrategy
		p.PodsReady = &PodsReady{Timeout: w.Timeout.Duration, RecoveryTimeout: w.RecoveryTimeout.Duration, BackoffLimit: r.BackoffLimitCount,
			BackoffBase: time.Duration(*r.BackoffBaseSeconds) * time.Second, BackoffMax: time.Duration(*r.BackoffMaxSeconds) * time.Second}
	}
	if d := a.ObjectRetentionPolicies.Workloads.AfterFinished; d != nil {
		p.AfterFinished = &d.Duration
	}
	if d := a.ObjectRetentionPolicies.Workloads.AfterDeactivatedByKueue; d != nil {
		p.AfterDeactivated = &d.Duration
	}
	return p
}

// Manages reports whether Jobs that name no LocalQueue are managed in a namespace with these labels.
func (p *Policy) Manages(namespace map[string]string) bool {
	return p.Managed == nil || p.Managed.Matches(labels.Set(namespace))
}

// maxDoublings keeps the delay within what a duration can hold.
const maxDoublings = 30

// Backoff is how long a workload waits after its n-th eviction for pods that were not ready. Up to a tenth is added, by
// its UID, so that workloads evicted together do not come back together.
func (r *PodsReady) Backoff(n int32, uid types.UID) time.Duration {
	wait := min(r.BackoffBase<<min(max(n-1, 0), maxDoublings), r.BackoffMax)
	if wait <= 0 {
		wait = r.BackoffMax
	}
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%s/%d", uid, n)
	return min(wait+wait/10*time.Duration(hash.Sum32()%1000)/1000, r.BackoffMax)
}
