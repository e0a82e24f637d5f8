package edge

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"hekla.sh/hekla/internal/edge/intake"
)

// heldInterval is how often is looked which pods hold devices and have no node.
const heldInterval = 10 * time.Second

// TakeDevicesBack takes devices back from pods that have no node, until the context ends. look returns these. Who has
// the devices in two looks in a row, without a change of the claim, does not give them back otherwise: a binding that
// is refused does so at once.
func (o *Outbox) TakeDevicesBack(ctx context.Context, look func() []intake.Held) {
	o.takeDevicesBack(ctx, heldInterval, look)
}

func (o *Outbox) takeDevicesBack(ctx context.Context, interval time.Duration, look func() []intake.Held) {
	before := map[types.UID]string{}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		now := map[types.UID]string{}
		for _, h := range look() {
			now[h.Claim.UID] = h.Claim.ResourceVersion
			if before[h.Claim.UID] != h.Claim.ResourceVersion {
				continue
			}
			switch is, err := o.binder.TakeBack(ctx, h.Claim, h.Pods); {
			case err != nil && ctx.Err() == nil:
				o.options.Logger.Error(err, "Devices were not taken back from pods without a node", "claim", h.Claim.Namespace+"/"+h.Claim.Name)
			case is:
				o.options.Logger.Info("Devices were taken back from pods without a node", "claim", h.Claim.Namespace+"/"+h.Claim.Name, "pods", len(h.Pods))
			}
		}
		before = now
	}, interval)
}
