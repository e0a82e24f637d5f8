// Package enqueue is the action that admits jobs, from Pending to Inqueue, and only then are their pods made.
//
// One job per queue is looked at in turn, the queues and their jobs in the order of the session. A job that asks for
// nothing beforehand (no minResources) is admitted; any other if the plugins permit it. A job that is admitted is booked
// at once: the model counts what it still lacks of its minResources in its queue.
//
// A job that is refused is admitted all the same if an action of the pipeline could lawfully evict what stands in its way (law
// J4): that is for the action to say ([framework.EvictingAction]), with what is in the way of evictions where it could not.
//
// An admitted job that claims room and brings no pods is sent back after a while (argument podsTimeout), sooner if others wait for
// room, and is not admitted again for as long as it is old, within bounds. Since when it lacks pods, and was sent back, is read
// from its PodGroup's status where an earlier process wrote it. Its namespace comes last for a while, after jobs of others that
// wait for room. What a job is kept beyond what its pods ask for ends after the same times.
//
// Invariants: a refusal is noted with the job and hides none behind it; a job that was refused books nothing.
//
// It must not know what the plugins count.
package enqueue
