package framework

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/verdict"
)

// claim is the stock of a PersistentVolumeClaim: one, if it exists.
type claim struct {
	store *supplies.Store
	name  types.NamespacedName
}

func (c claim) Left() int64 {
	if c.store.Get(supplies.Key{Kind: supplies.VolumeClaim, NamespacedName: c.name}) == nil {
		return 0
	}
	return 1
}

func (claim) Source() verdict.Help { return verdict.HelpSupply }

// MissingClaim returns a claim that a task names and that does not exist, if the filter looks at claims. Without it no node takes the
// pod, and no evictions help.
func MissingClaim(s *Session, t *cluster.Task) verdict.Lack {
	if !slices.Contains(s.Policy.KubeFilters, "VolumeBinding") {
		return verdict.Lack{}
	}
	for i := range t.Pod.Spec.Volumes {
		source := t.Pod.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil {
			continue
		}
		c := claim{store: s.Cluster.Supplies(), name: types.NamespacedName{Namespace: t.Pod.Namespace, Name: source.ClaimName}}
		if lack := (verdict.Lack{Stock: c, Needed: 1}); !lack.IsMet() {
			return lack
		}
	}
	return verdict.Lack{}
}
