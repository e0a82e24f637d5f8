package policy

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// Policy is what the controllers of workloads go by.
type Policy struct {
	// IsOn says that the scheduler admits workloads.
	IsOn bool

	// PodsReady says what becomes of workloads whose pods are not ready; nil asks nothing.
	PodsReady *PodsReady

	// AfterFinished and AfterDeactivated are how long a Workload is kept that has ended, or that was made inactive by a controller;
	// nil keeps it.
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

// The defaults of Kueue.
const (
	defaultTimeout = 30 * time.Minute
	defaultBase    = 60 * time.Second
	defaultMax     = time.Hour
)

// document is the part of the configuration that is read.
type document struct {
	Actions string `json:"actions"`
	Tiers   []struct {
		Plugins []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"plugins"`
	} `json:"tiers"`
}

// arguments are those of the plugin cohorts that are read.
type arguments struct {
	WaitForPodsReady struct {
		Enable            bool             `json:"enable"`
		Timeout           *metav1.Duration `json:"timeout"`
		RecoveryTimeout   *metav1.Duration `json:"recoveryTimeout"`
		RequeuingStrategy struct {
			BackoffLimitCount  *int32 `json:"backoffLimitCount"`
			BackoffBaseSeconds *int32 `json:"backoffBaseSeconds"`
			BackoffMaxSeconds  *int32 `json:"backoffMaxSeconds"`
		} `json:"requeuingStrategy"`
	} `json:"waitForPodsReady"`
	ObjectRetentionPolicies struct {
		Workloads struct {
			AfterFinished           *metav1.Duration `json:"afterFinished"`
			AfterDeactivatedByKueue *metav1.Duration `json:"afterDeactivatedByKueue"`
		} `json:"workloads"`
	} `json:"objectRetentionPolicies"`
}

// Read reads the text of a scheduler's configuration.
func Read(text []byte) (Policy, error) {
	var d document
	if err := yaml.Unmarshal(text, &d); err != nil {
		return Policy{}, fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	admits := slices.ContainsFunc(strings.Split(d.Actions, ","), func(action string) bool { return strings.TrimSpace(action) == "admit" })
	for _, tier := range d.Tiers {
		for _, plugin := range tier.Plugins {
			if plugin.Name != "cohorts" || !admits {
				continue
			}
			var a arguments
			if len(plugin.Arguments) > 0 {
				if err := json.Unmarshal(plugin.Arguments, &a); err != nil {
					return Policy{}, fmt.Errorf("reading the arguments of the plugin cohorts: %w", err)
				}
			}
			return a.policy(), nil
		}
	}
	return Policy{}, nil
}

func (a *arguments) policy() Policy {
	p := Policy{IsOn: true}
	if w := &a.WaitForPodsReady; w.Enable {
		r := &PodsReady{Timeout: orElse(w.Timeout, defaultTimeout), BackoffLimit: w.RequeuingStrategy.BackoffLimitCount,
			BackoffBase: seconds(w.RequeuingStrategy.BackoffBaseSeconds, defaultBase), BackoffMax: seconds(w.RequeuingStrategy.BackoffMaxSeconds, defaultMax)}
		r.RecoveryTimeout = orElse(w.RecoveryTimeout, r.Timeout)
		p.PodsReady = r
	}
	if d := a.ObjectRetentionPolicies.Workloads.AfterFinished; d != nil {
		p.AfterFinished = &d.Duration
	}
	if d := a.ObjectRetentionPolicies.Workloads.AfterDeactivatedByKueue; d != nil {
		p.AfterDeactivated = &d.Duration
	}
	return p
}

func orElse(d *metav1.Duration, fallback time.Duration) time.Duration {
	if d == nil {
		return fallback
	}
	return d.Duration
}

func seconds(n *int32, fallback time.Duration) time.Duration {
	if n == nil {
		return fallback
	}
	return time.Duration(*n) * time.Second
}

// maxDoublings keeps the delay within what a duration can hold.
const maxDoublings = 30

// Backoff is how long a workload waits after its n-th eviction for pods that were not ready. Up to a tenth is added, by its UID, so
// that workloads evicted together do not come back together.
func (r *PodsReady) Backoff(n int32, uid types.UID) time.Duration {
	wait := min(r.BackoffBase<<min(max(n-1, 0), maxDoublings), r.BackoffMax)
	if wait <= 0 {
		wait = r.BackoffMax
	}
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%s/%d", uid, n)
	return min(wait+wait/10*time.Duration(hash.Sum32()%1000)/1000, r.BackoffMax)
}
