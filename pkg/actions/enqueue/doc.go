// Package enqueue is the action at the door: it lets jobs in, from Pending to Inqueue, and only then are their pods made.
//
// One job per queue is looked at in turn, the queues and their jobs in the order of the session. A job that asks for
// nothing beforehand (no minResources) is let in; any other if the door keepers permit it. A job that is let in is booked
// at once: the model counts what it still lacks of its minResources in its queue.
//
// A job that is refused is admitted all the same if an action of the pipeline could lawfully evict what stands in its way (law
// J4): that is for the action to say ([framework.RoomMaker]), with what is in the way of evictions where it could not.
//
// Invariants: a refusal is noted with the job and hides none behind it; a job that was refused books nothing.
//
// It must not know what the plugins count.
package enqueue
