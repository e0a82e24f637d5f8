package process

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/config"
	configoptions "k8s.io/component-base/config/options"
)

// Election is how a program finds out whether it is the one of its kind that works.
type Election struct {
	config.LeaderElectionConfiguration
	lockNamespace string
	flags         *pflag.FlagSet
}

// NewElection returns an election by a Lease. If it has the name of Volcano's, the two never run at the same time by
// accident.
func NewElection(lease string) Election {
	return Election{LeaderElectionConfiguration: config.LeaderElectionConfiguration{
		LeaderElect:       true,
		LeaseDuration:     metav1.Duration{Duration: 15 * time.Second},
		RenewDeadline:     metav1.Duration{Duration: 10 * time.Second},
		RetryPeriod:       metav1.Duration{Duration: 2 * time.Second},
		ResourceLock:      resourcelock.LeasesResourceLock,
		ResourceName:      lease,
		ResourceNamespace: "volcano-system",
	}}
}

// AddFlags adds the flags --leader-elect… and the old name of one of them.
func (e *Election) AddFlags(flags *pflag.FlagSet) {
	e.flags = flags
	configoptions.BindLeaderElectionFlags(&e.LeaderElectionConfiguration, flags)
	flags.StringVar(&e.lockNamespace, "lock-object-namespace", "", "Old name of --leader-elect-resource-namespace.")
}

// Complete fills in what follows from other flags: lease is its name unless one was given.
func (e *Election) Complete(lease string) {
	if e.lockNamespace != "" && !e.flags.Changed("leader-elect-resource-namespace") {
		e.ResourceNamespace = e.lockNamespace
	}
	if !e.flags.Changed("leader-elect-resource-name") {
		e.ResourceName = lease
	}
}

// Validate says, flag by flag, what cannot be meant.
func (e *Election) Validate() (problems []error) {
	if !e.LeaderElect {
		return nil
	}
	invalid := func(flag string, value any, why string) {
		problems = append(problems, fmt.Errorf("--leader-elect-%s=%v: %s", flag, value, why))
	}
	lease, renew, retry := e.LeaseDuration.Duration, e.RenewDeadline.Duration, e.RetryPeriod.Duration
	if lease <= renew {
		invalid("lease-duration", lease, fmt.Sprintf("must be longer than the renew deadline, %s", renew))
	}
	// The elector adds up to a fifth to each retry.
	if renew <= retry+retry/5 {
		invalid("renew-deadline", renew, fmt.Sprintf("must be longer than 1.2 retry periods of %s", retry))
	}
	if retry <= 0 {
		invalid("retry-period", retry, "must be above 0")
	}
	if e.ResourceLock != resourcelock.LeasesResourceLock {
		invalid("resource-lock", e.ResourceLock, "only leases is supported")
	}
	if e.ResourceName == "" {
		invalid("resource-name", "", "must be set")
	}
	if e.ResourceNamespace == "" {
		invalid("resource-namespace", "", "must be set")
	}
	return problems
}
