package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"hekla.sh/hekla/internal/controllers/workload"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	flow "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topology "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

// kindsInterval is how often is looked which kinds the API server has.
const kindsInterval = 5 * time.Second

// kinds says which of the kinds that the controllers watch the API server does not have: their definitions were deleted after the start.
// What failed meanwhile is tried again when they are back.
type kinds struct {
	api     discovery.DiscoveryInterface
	watched map[schema.GroupVersion][]string // by version, the names of resources
	missing atomic.Pointer[[]string]
	back    func() // called when kinds have come back
}

// watchKinds has the readiness of a replica say which kinds are not served.
func watchKinds(mgr manager.Manager, options *Options, holder *workload.Holder) error {
	api, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("asking for kinds: %w", err)
	}
	k := &kinds{api: api, watched: options.watched(), back: func() {}}
	if holder != nil { // else they were not there at the start, which is no fault
		k.watched[workload.GroupVersion], k.back = workload.Resources, holder.Wake
	}
	return errors.Join(mgr.Add(k), mgr.AddReadyzCheck("kinds", k.check))
}

// watched are the resources of Volcano's groups that the controllers which are switched on watch.
func (o *Options) watched() map[schema.GroupVersion][]string {
	all := map[schema.GroupVersion][]string{}
	for _, w := range []struct {
		isOn  bool
		of    schema.GroupVersion
		names []string
	}{
		{o.JobWorkers > 0 || o.GarbageWorkers > 0, batch.GroupVersion, []string{"jobs"}},
		{o.JobWorkers > 0 || o.QueueWorkers > 0, bus.GroupVersion, []string{"commands"}},
		{o.JobWorkers > 0 || o.PodGroupWorkers > 0 || o.QueueWorkers > 0, scheduling.GroupVersion, []string{"podgroups"}},
		{o.QueueWorkers > 0, scheduling.GroupVersion, []string{"queues"}},
		{o.CronJobWorkers > 0, batch.GroupVersion, []string{"cronjobs"}},
		{o.JobFlowWorkers > 0, flow.GroupVersion, []string{"jobflows"}},
		{o.JobFlowWorkers > 0 || o.JobTemplateWorkers > 0, flow.GroupVersion, []string{"jobtemplates"}},
		{o.HyperNodes, topology.GroupVersion, []string{"hypernodes"}},
	} {
		if w.isOn {
			all[w.of] = append(all[w.of], w.names...)
		}
	}
	return all
}

// NeedLeaderElection is false: each replica says what it cannot do.
func (*kinds) NeedLeaderElection() bool { return false }

// Start looks until the context ends.
func (k *kinds) Start(ctx context.Context) error {
	for {
		k.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(kindsInterval):
		}
	}
}

// look learns which kinds are missing. What cannot be asked stays as it was.
func (k *kinds) look(ctx context.Context) {
	var missing []string
	for version, wanted := range k.watched {
		list, err := k.api.ServerResourcesForGroupVersion(version.String())
		if err != nil && !apierrors.IsNotFound(err) {
			return
		}
		for _, name := range wanted {
			has := err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
			if !has {
				missing = append(missing, name+"."+version.Group)
			}
		}
	}
	slices.Sort(missing)
	var before []string
	if known := k.missing.Swap(&missing); known != nil {
		before = *known
	}
	if slices.Equal(before, missing) {
		return
	}
	log := logf.FromContext(ctx)
	if len(missing) > 0 {
		log.Error(errors.New("the API server does not have them: apply Hekla's definitions (installer/crds)"), "Kinds are not served", "kinds", missing)
	} else {
		log.Info("All kinds are served again")
	}
	if slices.ContainsFunc(before, func(name string) bool { return !slices.Contains(missing, name) }) {
		k.back()
	}
}

// check is the readiness of a replica: it can do what it is there for.
func (k *kinds) check(*http.Request) error {
	if missing := k.missing.Load(); missing != nil && len(*missing) > 0 {
		return fmt.Errorf("not served, because the API server does not have the kinds: %s", strings.Join(*missing, ", "))
	}
	return nil
}
