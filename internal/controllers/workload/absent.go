package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// kinds are those that the controllers watch.
var kinds = []string{"Workload", "ClusterQueue", "LocalQueue", "Cohort", "ResourceFlavor", "AdmissionCheck", "WorkloadPriorityClass"}

// GroupVersion and Resources are what the API server calls them.
var (
	GroupVersion = v1beta2.GroupVersion
	Resources    = []string{"workloads", "clusterqueues", "localqueues", "cohorts", "resourceflavors", "admissionchecks", "workloadpriorityclasses"}
)

// AreDefined reports whether the API server has all kinds of kueue.x-k8s.io that are watched, in the version that is
// read. A Kueue from before v1beta2 has them not.
func AreDefined(mapper meta.RESTMapper) (bool, error) {
	for _, kind := range kinds {
		_, err := mapper.RESTMapping(v1beta2.GroupVersion.WithKind(kind).GroupKind(), v1beta2.GroupVersion.Version)
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("asking for the kind %s: %w", kind, err)
		}
	}
	return true, nil
}

// definitionsInterval is how often is looked whether the definitions have come.
const definitionsInterval = time.Minute

// errDefined ends the process when the definitions have come: watches are set up at the start.
var errDefined = errors.New("the definitions of kueue.x-k8s.io have been installed: starting again serves them")

// absent waits for the definitions.
type absent struct {
	mapper func() meta.RESTMapper
	log    logr.Logger
}

// Start looks until the context ends or the definitions are there.
func (a *absent) Start(ctx context.Context) error {
	a.log.Info("The definitions of kueue.x-k8s.io v1beta2 are not installed: Workloads are not served")
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(definitionsInterval):
		}
		// An error is that of asking; the next look asks again.
		if is, err := AreDefined(a.mapper()); err == nil && is {
			return errDefined
		}
	}
}
