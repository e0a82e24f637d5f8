package model

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// trial is what the end of a trial restores besides the undo log.
type trial struct {
	world                               wake.Counts
	planned                             uint64
	classesAreStale                     bool
	waiting, touchedJobs, touchedQueues int
	shared                              sharedAmounts
	generations                         map[*cluster.Node]uint64 // former generations of changed nodes
	isOutdated                          bool                     // plugins have changed their answers about nodes
}

// BeginTrial begins a trial, see [Writer.EndTrial].
func (w *Writer) BeginTrial() {
	c := w.c
	invariant(len(c.log) == 0 && c.trial == nil, "a trial begins inside a transaction, or another trial")
	c.trial = &trial{world: c.world.Counts, planned: c.plans.made, classesAreStale: c.classes.IsStale, waiting: c.backlog.Freeze(), shared: c.shared, touchedJobs: len(c.touchedJobs), touchedQueues: c.quota.Touched(),
		generations: map[*cluster.Node]uint64{}}
	c.world.IsTrial = true
	c.changes.BeginTrial()
}

// IsInTrial reports whether a trial has begun and not ended.
func (w *Writer) IsInTrial() bool { return w.c.trial != nil }

// EndTrial restores the model as it was before the trial. Logged operations are undone. Causes that were noted wake no
// job. Jobs and queues do not count as changed. Nodes have their former generations, so caches that were not asked
// meanwhile stay valid.
func (w *Writer) EndTrial() {
	c := w.c
	c.Undo(0)
	t := c.trial
	c.trial = nil
	c.world.IsTrial = false
	c.world.Counts, c.plans.made, c.classes.IsStale, c.shared = t.world, t.planned, t.classesAreStale, t.shared
	c.backlog.Thaw(t.waiting)
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
