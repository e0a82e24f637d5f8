package workload

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/metrics"
	"hekla.sh/hekla/internal/queueing/trees"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/quota/cohort"
)

// shares writes the weighted shares of all ClusterQueues and Cohorts, while fair sharing is on. They depend on each other, so all are
// worked out together, from what the statuses of the ClusterQueues say is reserved.
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
	queues, cohorts := &v1beta2.ClusterQueueList{}, &v1beta2.CohortList{}
	if err := errors.Join(r.client.List(ctx, queues), r.client.List(ctx, cohorts)); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing ClusterQueues and Cohorts: %w", err)
	}
	found := map[bool]map[string]int64{true: {}, false: {}} // of ClusterQueues, and of Cohorts
	for _, tree := range trees.Grow(queues.Items, cohorts.Items).Roots {
		collect(tree.Root, found)
	}
	for name := range r.shown {
		if _, is := found[false][name]; !is {
			r.metrics.CohortGone(name)
		}
	}
	r.shown = found[false]
	var problems []error
	for i := range queues.Items {
		q := &queues.Items[i]
		share := found[true][q.Name]
		r.metrics.ClusterQueueShare(q.Name, settings.OfClusterQueue(q).Cohort, share)
		before := q.DeepCopy()
		q.Status.FairSharing = shareOf(q.Status.FairSharing, share)
		if !apiequality.Semantic.DeepEqual(before.Status, q.Status) {
			problems = append(problems, client.IgnoreNotFound(r.client.Status().Patch(ctx, q, client.MergeFrom(before))))
		}
	}
	for i := range cohorts.Items {
		c := &cohorts.Items[i]
		share := found[false][c.Name]
		r.metrics.CohortShare(c.Name, share)
		before := c.DeepCopy()
		c.Status.FairSharing = shareOf(c.Status.FairSharing, share)
		if !apiequality.Semantic.DeepEqual(before.Status, c.Status) {
			problems = append(problems, client.IgnoreNotFound(r.client.Status().Patch(ctx, c, client.MergeFrom(before))))
		}
	}
	return reconcile.Result{}, errors.Join(problems...)
}

// shareOf is a status with a share. One that is zero and was never written is written.
func shareOf(before *v1beta2.FairSharingStatus, share int64) *v1beta2.FairSharingStatus {
	after := &v1beta2.FairSharingStatus{}
	if before != nil {
		after = before.DeepCopy()
	}
	after.WeightedShare = share
	return after
}

// collect adds the shares of a node and all below it.
func collect(n *cohort.Node, into map[bool]map[string]int64) {
	into[n.IsQueue][n.Name] = n.Share().Weighted()
	for _, below := range [][]*cohort.Node{n.Cohorts(), n.Queues()} {
		for _, m := range below {
			collect(m, into)
		}
	}
}
