package quota

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Ceiling returns what a queue may hold at most, in each of a number of dimensions: the room above it that nobody is
// guaranteed and what is guaranteed to itself, but not more than its capability. The sum of all guarantees out of the
// room includes its own.
func Ceiling(dims int, room, guarantees, own resources.Vector, capability resources.Limits) resources.Vector {
	ceiling := make(resources.Vector, dims)
	for i := range ceiling {
		d := resources.Dim(i)
		// A cluster that shrank may have less than it guarantees. Then guarantees are all there is.
		ceiling[i] = min(max(room.At(d)-guarantees.At(d), 0)+own.At(d), capability.Value(d))
	}
	return ceiling
}

// Worst returns the largest ratio of what is allocated to what is deserved, over the resources of which counted has any.
// It is infinite where something is held and nothing deserved.
func Worst(allocated, deserved, counted resources.Vector) resources.Ratio {
	worst := resources.Ratio{Den: 1}
	for i, have := range allocated {
		d := resources.Dim(i)
		if have <= 0 || counted.At(d) <= 0 {
			continue
		}
		if ratio := (resources.Ratio{Num: have, Den: deserved.At(d)}); ratio.Compare(worst) > 0 {
			worst = ratio
		}
	}
	return worst
}

// IsSurplus reports whether what would leave lies above what is deserved, of the resources that are wanted: in one of them
// at least that the share speaks of, as much as is deserved stays. What the share does not speak of at all is above it.
func IsSurplus(allocated resources.Vector, deserved resources.Limits, leaving, wanted resources.Vector) bool {
	speaks := false
	for i, amount := range leaving {
		d := resources.Dim(i)
		limit, ok := deserved.At(d)
		if amount <= 0 || !ok || d == resources.Pods {
			continue
		}
		speaks = true
		if wanted.At(d) > 0 && allocated.At(d)-amount >= limit {
			return true
		}
	}
	return !speaks
}

// WithinShare is why pods stay in a queue that has no more than its share.
const WithinShare = "law Q1 (within what their queue deserves)"

// IsAbove reports whether more is allocated than deserved of a resource that is asked about. A share says nothing about
// the number of pods here, as in IsSurplus.
func IsAbove(allocated resources.Vector, deserved resources.Limits, asked resources.Vector) bool {
	for i := range asked {
		d := resources.Dim(i)
		if limit, ok := deserved.At(d); ok && d != resources.Pods && asked[i] > 0 && allocated.At(d) > limit {
			return true
		}
	}
	return false
}

// Closed refuses to let a queue take anything that is not open (law Q5); nil if it is.
func Closed(q *cluster.Queue) *verdict.Verdict {
	if q.Open() {
		return nil
	}
	return &verdict.Verdict{Code: verdict.QueueClosed, Subject: q.Name, Help: verdict.HelpQueue,
		Detail: "its state is " + string(q.Object.Status.State)}
}

// Limits are amounts as limits of the resources that count.
func Limits(amounts, counted resources.Vector) resources.Limits {
	var limits resources.Limits
	for i, amount := range amounts {
		if d := resources.Dim(i); counted.At(d) > 0 {
			limits.Set(d, amount)
		}
	}
	return limits
}

// Claim is what a task or a job asks of a queue.
type Claim struct {
	whole resources.Vector // what it wants in all
	job   *cluster.Job     // that waits for admission, and competes with jobs that were admitted, not only with what is placed
	binds bool             // competes with pods whose eviction was decided and may be refused still
}

// OfTask is the claim of a task that is to be placed.
func OfTask(t *cluster.Task) Claim { return Claim{whole: t.Request()} }

// OfBinding is the claim of a task that is to be bound now. What is to leave for others and was not told yet may stay in the end:
// then the queue would hold both, and not what was promised room.
func OfBinding(t *cluster.Task) Claim { return Claim{whole: t.Request(), binds: true} }

// OfJob is the claim of a job that waits for admission: its minResources, less what it holds already and what gates hold of it.
func OfJob(j *cluster.Job) Claim { return Claim{whole: j.MinResources, job: j} }

func (c Claim) need(d resources.Dim) int64 {
	if c.job != nil {
		return c.job.LacksResource(d)
	}
	return c.whole.At(d)
}

// taken is what the claim competes with. At admission jobs that were admitted count with what they still lack. In Volcano what
// jobs hold beyond their minimum does not count there. Here it does, unless it may leave: that is for the actions that evict to
// find out (law J4).
func (c Claim) taken(u *cluster.Usage, d resources.Dim) int64 {
	if c.job != nil {
		return u.Allocated.At(d) + u.Inqueue.At(d)
	}
	if c.binds {
		return u.Allocated.At(d) + u.Unsettled.At(d)
	}
	return u.Allocated.At(d)
}

// Fits reports whether the claim fits under a limit beside what is taken.
func (c Claim) Fits(u *cluster.Usage, limit resources.Vector) bool {
	for i := range c.whole {
		d := resources.Dim(i)
		if need := c.need(d); need > 0 && need > limit.At(d)-c.taken(u, d) {
			return false
		}
	}
	return true
}

// Shortages returns what is missing for the claim to fit, by dimension.
func (c Claim) Shortages(index *resources.Index, u *cluster.Usage, limit resources.Vector) []verdict.Shortage {
	var shortages []verdict.Shortage
	for i := range c.whole {
		d := resources.Dim(i)
		need, have := c.need(d), max(limit.At(d)-c.taken(u, d), 0)
		if need > 0 && need > have {
			shortages = append(shortages, verdict.Shortage{Resource: index.Name(d), Need: need, Have: have})
		}
	}
	return shortages
}

// beyond returns what is missing for the claim to fit if nothing else were there.
func (c Claim) beyond(index *resources.Index, limit resources.Vector) []verdict.Shortage {
	return Claim{whole: c.whole}.Shortages(index, &cluster.Usage{}, limit)
}

// Refusal says why a claim does not fit under the ceiling of a queue with this usage.
func (c Claim) Refusal(
	index *resources.Index, q *cluster.Queue, u *cluster.Usage, ceiling resources.Vector,
) *verdict.Verdict {
	v := &verdict.Verdict{Code: verdict.OverCapability, Subject: q.Name, Help: verdict.HelpQueue}
	if v.Shortages = c.beyond(index, ceiling); v.Shortages != nil {
		v.Code = verdict.TooLargeForQueue
		v.Help |= verdict.HelpJob
	} else {
		v.Shortages = c.Shortages(index, u, ceiling)
	}
	for _, s := range v.Shortages {
		d, _ := index.Find(s.Resource)
		if ceiling.At(d) < q.Capability.Value(d) {
			v.Help |= verdict.HelpNode
			v.Detail = "its limit is the size of the cluster less what other queues are guaranteed"
			if v.Code == verdict.OverCapability {
				v.Code = verdict.OverCluster
			}
		}
	}
	return v
}
