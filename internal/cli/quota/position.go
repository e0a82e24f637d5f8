package quota

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/cli/session"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Positions are those of Workloads that wait in their LocalQueues, from 1 on: in the order in which the scheduler tries
// them, if they fit alike. They are as when the list was asked for.
type Positions map[types.UID]int

// positionsIn reads all Workloads of a namespace, whichever of them are listed.
func positionsIn(ctx context.Context, s *session.Session) (Positions, error) {
	scope, err := s.Scope()
	if err != nil {
		return nil, err
	}
	api, err := s.Client()
	if err != nil {
		return nil, err
	}
	all := &v1beta2.WorkloadList{}
	if err := api.List(ctx, all, client.InNamespace(scope)); err != nil {
		return nil, s.Explain(err)
	}
	return PositionsOf(all.Items), nil
}

// PositionsOf are the positions of those that wait among all Workloads of some namespaces.
func PositionsOf(all []v1beta2.Workload) Positions {
	lines := map[types.NamespacedName][]*v1beta2.Workload{}
	for i := range all {
		w := &all[i]
		if conditions.Is(w, v1beta2.Finished) || conditions.Is(w, v1beta2.QuotaReserved) || !settings.OfWorkload(w).IsActive {
			continue
		}
		key := types.NamespacedName{Namespace: w.Namespace, Name: w.Spec.QueueName}
		lines[key] = append(lines[key], w)
	}
	at := Positions{}
	for _, line := range lines {
		slices.SortFunc(line, func(a, b *v1beta2.Workload) int {
			return cmp.Or(cmp.Compare(settings.OfWorkload(b).Priority, settings.OfWorkload(a).Priority), queued(a).Compare(queued(b)), cmp.Compare(a.UID, b.UID))
		})
		for i, w := range line {
			at[w.UID] = i + 1
		}
	}
	return at
}

// queued is the time that counts in the order of a queue by the defaults of the configuration.
func queued(w *v1beta2.Workload) time.Time {
	if c := conditions.Of(w, v1beta2.Evicted); c != nil && conditions.Is(w, v1beta2.Evicted) &&
		(c.Reason == v1beta2.ReasonPodsReadyTimeout || c.Reason == v1beta2.ReasonAdmissionCheck) {
		return c.LastTransitionTime.Time
	}
	return w.CreationTimestamp.Time
}

// cell is the position of a Workload, "" if it does not wait.
func (p Positions) cell(w *v1beta2.Workload) string {
	if at := p[w.UID]; at > 0 {
		return session.Number(int32(at))
	}
	return ""
}
