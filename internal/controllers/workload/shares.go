package workload

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/metrics"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	trees "hekla.sh/hekla/pkg/cluster/workloads/queues"
	"hekla.sh/hekla/pkg/quota/cohort"
)

// shares writes the weighted shares of all ClusterQueues and Cohorts, while fair sharing is on. They depend on each
// other, so all are worked out together, from what the statuses of the ClusterQueues say is reserved.
type shares struct {
	client  client.Client
	state   *state
	metrics *metrics.Metrics
	shown   map[string]int64 // the Cohorts whose shares are shown; there is one worker
}

// allShares is the one request of the controller.
var allShares = reconcile.Request{NamespacedName: client.ObjectKey{Name: "all"}}

func theShares(context.Context, client.Object) []reconcile.Request {
	return []reconcile.Request{allShares}
}

// Reconcile writes the shares that differ.
func (r *shares) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !r.state.isOn() || !r.state.policy().FairSharing {
		r.metrics.SharesGone()
		return reconcile.Result{}, nil
	}
	clusterQueues, cohorts := &v1beta2.ClusterQueueList{}, &v1beta2.CohortList{}
	if err := errors.Join(r.client.List(ctx, clusterQueues), r.client.List(ctx, cohorts)); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing ClusterQueues and Cohorts: %w", err)
	}
	found := map[bool]map[string]int64{true: {}, false: {}} // of ClusterQueues, and of Cohorts
	for _, tree := range trees.Grow(clusterQueues.Items, cohorts.Items).Roots {
		collect(tree.Root, found)
	}
	for name := range r.shown {
		if _, is := found[false][name]; !is {
			r.metrics.CohortGone(name)
		}
	}
	r.shown = found[false]
	var problems []error
	for i := range clusterQueues.Items {
		q := &clusterQueues.Items[i]
		share := found[true][q.Name]
		r.metrics.ClusterQueueShare(q.Name, settings.OfClusterQueue(q).Cohort, share)
		problems = append(problems, r.write(ctx, q, q.DeepCopy(), &q.Status.FairSharing, share))
	}
	for i := range cohorts.Items {
		c := &cohorts.Items[i]
		share := found[false][c.Name]
		r.metrics.CohortShare(c.Name, share)
		problems = append(problems, r.write(ctx, c, c.DeepCopy(), &c.Status.FairSharing, share))
	}
	return reconcile.Result{}, errors.Join(problems...)
}

// write sets the share in a part of an object's status, and patches the status if that changes it. A share of zero that
// was never written is written.
func (r *shares) write(ctx context.Context, object, before client.Object, part **v1beta2.FairSharingStatus, share int64) error {
	isSame := *part != nil && (*part).WeightedShare == share
	if *part == nil {
		*part = &v1beta2.FairSharingStatus{}
	}
	(*part).WeightedShare = share
	_, err := write(ctx, r.client, object, before, isSame)
	return err
}

// collect adds the shares of a node and all below it.
func collect(n *cohort.Node, into map[bool]map[string]int64) {
	into[n.IsQueue][n.Name] = n.Share().Weighted()
	for _, m := range n.Children() {
		collect(m, into)
	}
}
