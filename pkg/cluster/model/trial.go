package model

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// trial is what the end of a trial restores beside what the undo log does.
type trial struct {
	world                               wake.Counts
	planned                             uint64
	classesAreStale                     bool
	waiting, touchedJobs, touchedQueues int
	generations                         map[*cluster.Node]uint64 // of nodes that were changed, as they were before
	isOutdated                          bool                     // plugins say other things of nodes
}

// BeginTrial begins a time in which nothing counts: see [Writer.EndTrial].
func (w *Writer) BeginTrial() {
	c := w.c
	invariant(len(c.log) == 0 && c.trial == nil, "a trial begins inside a transaction, or another trial")
	c.trial = &trial{world: c.world.Counts, planned: c.plans.made, classesAreStale: c.classes.IsStale, waiting: len(c.waiting), touchedJobs: len(c.touchedJobs), touchedQueues: c.quota.Touched(),
		generations: map[*cluster.Node]uint64{}}
	c.changes.BeginTrial()
}

// EndTrial leaves the model as it was before the trial: what is logged is undone; causes that were noted wake no job; jobs and queues
// do not count as changed; nodes have the generations that they had, so that code that did not look meanwhile keeps what it
// knows of them.
func (w *Writer) EndTrial() {
	c := w.c
	c.Undo(0)
	t := c.trial
	c.trial = nil
	c.world.Counts, c.plans.made, c.classes.IsStale = t.world, t.planned, t.classesAreStale
	for _, j := range c.waiting[t.waiting:] {
		j.Internal.IsWaiting = false
	}
	c.waiting = c.waiting[:t.waiting]
	for _, j := range c.touchedJobs[t.touchedJobs:] {
		j.Internal.IsTouched = false
	}
	c.touchedJobs = c.touchedJobs[:t.touchedJobs]
	c.quota.Untouch(t.touchedQueues)
	for n, generation := range t.generations {
		n.Generation = generation
	}
	c.changes.EndTrial(!t.isOutdated)
}
