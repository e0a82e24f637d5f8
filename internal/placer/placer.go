// Package placer makes the placement engines of a policy: [New] makes the Placer of a session, and [NewOutlook] its
// Outlook. It connects the contract of plugins and the placement engine, which do not know each other.
package placer

import (
	"hekla.sh/hekla/internal/placement"
	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/framework"
)

var (
	_ framework.Placer   = (*placement.Engine)(nil)
	_ framework.Outlook  = (*placement.Engine)(nil)
	_ framework.Supplier = (*placement.Engine)(nil)
)

// New returns an engine for a model as it is now, see [placement.New]. It stores its answers, so it should live as long
// as the policy.
func New(c *model.Cluster, policy *framework.Policy) (*placement.Engine, error) {
	return placement.New(c, configuration(policy))
}

// NewOutlook is New for the model as it will be.
func NewOutlook(c *model.Cluster, policy *framework.Policy) (*placement.Engine, error) {
	return placement.NewOutlook(c, configuration(policy))
}

// configuration returns the filters and scorers of a policy.
func configuration(policy *framework.Policy) placement.Configuration {
	made := placement.Configuration{KubeFilters: policy.KubeFilters, Point: framework.Point,
		Kube: kube.Arguments{BindTimeout: policy.Kube.BindTimeout, DeviceTimeout: policy.Kube.DeviceTimeout,
			DeviceBindTimeout: policy.Kube.DeviceBindTimeout}}
	for _, f := range policy.Filters {
		made.Filters = append(made.Filters, f)
	}
	for _, v := range policy.Vetoers {
		made.Vetoers = append(made.Vetoers, v)
	}
	for _, s := range policy.Scorers {
		made.Scorers = append(made.Scorers, s)
	}
	for _, s := range policy.KubeScores {
		made.KubeScores = append(made.KubeScores, kube.Weighted{Name: s.Name, Weight: s.Weight})
	}
	for _, p := range policy.Kube.VolumeShape {
		made.Kube.VolumeShape = append(made.Kube.VolumeShape, kube.ShapePoint(p))
	}
	return made
}
