package quota

import (
	"time"

	"hekla.sh/hekla/pkg/resources"
)

// Policies are settings of a queue that only the rules of guaranteed shares read, see package guarantee. The zero value
// is a queue that sets none.
type Policies struct {
	// Fence says that jobs below the queue take nothing from queues that are not below it (rule G7).
	Fence bool
	// Disabled says that pods below the queue are not evicted for other queues (rule G7).
	Disabled bool
	// PriorityFence says that outside the queue all jobs below it have the priority Offset. Otherwise Offset is added
	// to their priorities (rule G6).
	PriorityFence bool
	Offset        int32
	// Delay is how long a job waits before pods are evicted for it (rule G9). Nil is that of the queue above.
	Delay *time.Duration
	// FairOrder serves the job first that holds least, compared with the guarantee of the queue (rule G14). Nil is that
	// of the queue above.
	FairOrder *bool
	// PriorityOrder says whether priorities count in the order of service (rule G14). Nil is that of the queue above.
	PriorityOrder *bool
	// MaxJobs is how many jobs below the queue may be admitted at a time (rule G15); 0 sets no limit.
	MaxJobs int
	// QuotaDelay is how long the queue may hold more than its capability (rule G12); 0 sets no limit. Nil is that of
	// the queue above.
	QuotaDelay *time.Duration
}

// GuaranteeRatio is the largest ratio of what a queue holds to what it is guaranteed, over the resources that its
// guarantee names. It is infinite if the queue holds something of which it is guaranteed nothing.
func (n *Node) GuaranteeRatio() resources.Ratio {
	worst := resources.Ratio{Den: 1}
	for i, have := range n.Subtree.Allocated {
		guarantee, isNamed := n.Guarantee.At(resources.Dim(i))
		if ratio := (resources.Ratio{Num: have, Den: guarantee}); isNamed && have > 0 && ratio.Compare(worst) > 0 {
			worst = ratio
		}
	}
	return worst
}
