package controllers

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"hekla.sh/hekla/internal/controllers/workload"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	flow "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topology "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
	"hekla.sh/hekla/pkg/client/definitions"
)

// watchKinds makes the readiness of a replica say which of the kinds that its controllers watch the API server does not
// have: their definitions were deleted after the start. What failed meanwhile is tried again when they are back.
func watchKinds(mgr manager.Manager, options *Options, holder *workload.Holder) error {
	api, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("asking for kinds: %w", err)
	}
	wanted, back := options.watched(), func() {}
	if holder != nil { // else they were not there at the start, which is no fault
		back = holder.Wake
		for _, name := range workload.Resources {
			wanted = append(wanted, workload.GroupVersion.WithResource(name))
		}
	}
	kinds := definitions.NewPresence(api, wanted, mgr.GetLogger(), back)
	return errors.Join(mgr.Add(onEachReplica{kinds}), mgr.AddReadyzCheck("kinds", kinds.CheckRequest))
}

// onEachReplica looks also on a replica that does not lead: each says what it cannot do.
type onEachReplica struct{ *definitions.Presence }

func (onEachReplica) NeedLeaderElection() bool { return false }

// Start looks until the context ends.
func (r onEachReplica) Start(ctx context.Context) error {
	r.Run(ctx, definitions.PresencePeriod)
	return nil
}

// watched are the resources of Volcano's groups that the controllers which are switched on watch.
func (o *Options) watched() []schema.GroupVersionResource {
	var all []schema.GroupVersionResource
	for _, w := range []struct {
		isOn bool
		of   schema.GroupVersion
		name string
	}{
		{o.JobWorkers > 0 || o.GarbageWorkers > 0, batch.GroupVersion, "jobs"},
		{o.JobWorkers > 0 || o.QueueWorkers > 0, bus.GroupVersion, "commands"},
		{o.JobWorkers > 0 || o.PodGroupWorkers > 0 || o.QueueWorkers > 0, scheduling.GroupVersion, "podgroups"},
		{o.QueueWorkers > 0, scheduling.GroupVersion, "queues"},
		{o.CronJobWorkers > 0, batch.GroupVersion, "cronjobs"},
		{o.JobFlowWorkers > 0, flow.GroupVersion, "jobflows"},
		{o.JobFlowWorkers > 0 || o.JobTemplateWorkers > 0, flow.GroupVersion, "jobtemplates"},
		{o.HyperNodes, topology.GroupVersion, "hypernodes"},
	} {
		if w.isOn {
			all = append(all, w.of.WithResource(w.name))
		}
	}
	return all
}
