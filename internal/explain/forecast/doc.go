// Package forecast says when a job that waits will start: a range of time with its grounds, or why that is not known.
//
// Main types: an [ETA] is the answer. A [Forecaster] works it out from the model and from the history of earlier jobs.
//
// The future is replayed on the model, in a trial that is undone. Jobs that run end when they are expected to. After
// each end the jobs that wait are admitted and placed by the code that does so in every cycle, in the order in which
// they are served. The replay is over when the job in question has its nodes. In one replay every job ends as late as
// can be expected, and smaller jobs overtake the one in question. In another every job ends as early, and it overtakes
// larger ones. In some more, jobs end in between, at times that look random. The range holds all these starts.
//
// How long a job runs is taken from the first of these that is known:
//
//  1. How long the latest jobs of the same name ran, if there are five or more.
//  2. What it declares: the running estimate of a Job, which may be wrong by half.
//  3. How long three or four jobs of the same name ran.
//  4. How long the latest jobs of its queue ran.
//
// A deadline, after which Kubernetes ends the job, limits all of these, and stands alone if none but the last is known.
//
// If the jobs in the way say nothing, the pace of the queue counts: the place of the job, and how many jobs that had to
// wait have started there lately.
//
// Invariants:
//
//  1. Nothing is changed: the trial is undone, and the history is only read.
//  2. The work is limited: each replay ends after [MaxSteps] ends, [MaxPlaced] pods or [MaxTried] gangs, and
//     [MaxStandIns] pods stand in for those that do not exist yet. If that is not enough, the pace of the queue counts.
//  3. The same model, history and time give the same answer.
//  4. The sentences name no other job, since the user may not see all of them.
//
// The replay leaves out what is not known: later jobs, evictions, and nodes that come or go. Pods that do not exist yet
// are taken to request equal parts of minResources.
//
// It must not know the loop, Kubernetes clients, or the clock.
package forecast
