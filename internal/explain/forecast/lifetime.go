package forecast

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
)

// span is how much longer a job runs, from the earliest to the latest. kind is how that is known, "" if it is not: then
// it may end at any time or never.
type span struct {
	early, late time.Duration
	kind        Kind
	stays       bool // it is a service, which does not end
	// others are how long others ran that ran for longer, and ran is how long this one has; none if the kind does not
	// say so.
	others []time.Duration
	ran    time.Duration
}

// at returns a time in the span, by a part from 0 to 1. Where others ran, their times are as likely as each other.
func (s *span) at(part float64) time.Duration {
	between := func(a, b time.Duration, part float64) time.Duration { return a + time.Duration(part*float64(b-a)) }
	if len(s.others) == 0 {
		return between(s.early, s.late, part)
	}
	position := part * float64(len(s.others)+1)
	i := min(int(position), len(s.others))
	from, to := s.early, s.late
	if i > 0 {
		from = s.others[i-1] - s.ran
	}
	if i < len(s.others) {
		to = s.others[i] - s.ran
	}
	return min(max(between(from, to, position-float64(i)), s.early), s.late)
}

const (
	// An estimate of a user may be wrong by half.
	estimateLeast, estimateMost = 2, 2 // earliest is a half of it, latest is it and a half
	// manySamples is how many run times of the same name come before an estimate, fewSamples how many are needed at
	// all.
	manySamples, fewSamples = 5, 3
	// afterDeadline is how long after its deadline a job may still hold its nodes: the grace period, and some seconds
	// for the kubelet.
	afterDeadline = 40 * time.Second
)

// left returns how much longer a job runs that has run for some time.
func (f *Forecaster) left(j *cluster.Job, ran time.Duration) span {
	if isService(j) {
		return span{stays: true}
	}
	s := f.declaredOrMeasured(j, ran)
	if until := f.untilDeadline(j, ran); until > 0 {
		if s.kind == "" || s.kind == SameQueue {
			s = span{late: until, early: min(s.early, until), kind: Declared}
		}
		s.early, s.late = min(s.early, until), min(s.late, until)
	}
	return s
}

// untilDeadline is when a job is gone at the latest that has run for some time, 0 if it has no deadline. Pods count
// from their start, a batch/v1 Job from its own, also while it waits; of one that has not started it is not known how
// long it will have waited.
func (f *Forecaster) untilDeadline(j *cluster.Job, ran time.Duration) time.Duration {
	var until time.Duration
	if deadline := f.deadline(j); deadline > 0 {
		until = max(deadline+afterDeadline-ran, time.Second)
	}
	if deadline := deadlineOfOwner(j); deadline > 0 {
		since := ran
		if ran > 0 {
			since = max(ran, f.now.Sub(j.Created()))
		}
		if left := max(deadline+afterDeadline-since, time.Second); until == 0 || left < until {
			until = left
		}
	}
	return until
}

// deadlineOfOwner is the deadline of the batch/v1 Job for which the PodGroup was made, 0 if there is none.
func deadlineOfOwner(j *cluster.Job) time.Duration {
	return annotated(j, schedulingv1beta1.ActiveDeadlineKey)
}

// annotated is the duration in an annotation of the PodGroup, 0 if there is none that can be read.
func annotated(j *cluster.Job, key string) time.Duration {
	if j.Group == nil {
		return 0
	}
	d, err := time.ParseDuration(j.Group.Annotations[key])
	if err != nil {
		return 0
	}
	return max(d, 0)
}

func (f *Forecaster) declaredOrMeasured(j *cluster.Job, ran time.Duration) span {
	of := f.samplesOf(j)
	if len(of) >= manySamples {
		if s, ok := conditioned(of, ran); ok {
			s.kind = Measured
			return s
		}
	}
	if estimate := estimateOf(j); estimate > 0 {
		s := span{early: max(estimate/estimateLeast-ran, 0), late: estimate + estimate/estimateMost - ran, kind: Declared}
		if s.late <= 0 {
			s.late = max(ran/2, time.Second) // it runs for longer than it may: as long again is a guess
		}
		return s
	}
	if s, ok := conditioned(of, ran); ok {
		s.kind = Measured
		return s
	}
	if s, ok := conditioned(f.samplesOfQueue(j.QueueName), ran); ok {
		s.kind = SameQueue
		return s
	}
	return span{}
}

// conditioned returns how much longer a job runs that has run for some time, if others ran for so long. Their times are
// sorted. With few of them the range is wider: the next one is outside of what n have shown with two chances in n and
// one. ok is false if they are too few, or if the job has run for much longer than all of them.
func conditioned(times []time.Duration, ran time.Duration) (s span, ok bool) {
	at, isThere := slices.BinarySearch(times, ran)
	if isThere {
		at++
	}
	longer := times[min(at, len(times)):]
	switch {
	case len(times) < fewSamples:
		return span{}, false
	case len(longer) >= fewSamples:
		n := time.Duration(len(longer))
		least, most := longer[0], longer[len(longer)-1]
		return span{early: max(least-least*3/(2*n)-ran, 0), late: most + 3*most/n - ran, others: longer, ran: ran}, true
	}
	most := times[len(times)-1]
	if ran > 3*most {
		return span{}, false
	}
	return span{late: max(most, ran) + max(most, ran)/2 - ran + most}, true
}

// estimateOf is how long a job is expected to run by its user, 0 if it says nothing that can be read.
func estimateOf(j *cluster.Job) time.Duration {
	return annotated(j, schedulingv1beta1.RunningEstimateKey)
}

// deadline is after which time a job is ended that runs, 0 if it has none. It is that of all its pods, or what its
// Workload says.
func (f *Forecaster) deadline(j *cluster.Job) time.Duration {
	if known, ok := f.deadlines[j]; ok {
		return known
	}
	var longest int64
	if j.Workload != nil {
		longest = f.deadlineOfWorkload(j)
	}
	if longest == 0 {
		for _, t := range j.Tasks() {
			seconds := t.Pod.Spec.ActiveDeadlineSeconds
			if seconds == nil {
				longest = 0
				break
			}
			longest = max(longest, *seconds)
		}
	}
	f.deadlines[j] = time.Duration(longest) * time.Second
	return f.deadlines[j]
}

// services are the controllers whose pods are not expected to end.
var services = []string{"ReplicaSet", "StatefulSet", "DaemonSet", "Deployment", "ReplicationController"}

func isService(j *cluster.Job) bool {
	if j.Group == nil {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(j.Group)
	return owner != nil && slices.Contains(services, owner.Kind)
}

// samplesOf returns the run times of the job's name. Many jobs have one name, so they are sorted once for each job.
func (f *Forecaster) samplesOf(j *cluster.Job) []time.Duration {
	found, ok := f.byJob[j]
	if !ok {
		found = f.history.OfName(j)
		f.byJob[j] = found
	}
	return found
}

func (f *Forecaster) samplesOfQueue(name string) []time.Duration {
	found, ok := f.byQueue[name]
	if !ok {
		found = f.history.OfQueue(name)
		f.byQueue[name] = found
	}
	return found
}

// Ends is when a job that holds nodes is expected to end.
type Ends struct {
	// Earliest and Latest are the ends of the range, absent if it is not known.
	Earliest *time.Time `json:"earliest,omitempty"`
	Latest   *time.Time `json:"latest,omitempty"`
	// Basis is how that is known: Declared, Measured or SameQueue; Room if its pods are leaving.
	Basis Kind `json:"basis,omitempty"`
	// Never says that it is a service, which does not end by itself.
	Never bool `json:"never,omitempty"`
}

// Ends says when a job that holds nodes is expected to end.
func (f *Forecaster) Ends(j *cluster.Job) Ends {
	if j.Plan != nil {
		return Ends{} // it has not started
	}
	if last, leaves := f.leaving(j); leaves {
		return Ends{Earliest: &f.now, Latest: &last, Basis: Room}
	}
	left := f.left(j, max(f.now.Sub(f.startOf(j)), 0))
	if left.stays || left.kind == "" {
		return Ends{Never: left.stays}
	}
	earliest, latest := f.now.Add(left.early), f.now.Add(left.late)
	return Ends{Earliest: &earliest, Latest: &latest, Basis: left.kind}
}

// leaving is when all pods of a job are gone at the latest, if all that hold nodes leave.
func (f *Forecaster) leaving(j *cluster.Job) (last time.Time, all bool) {
	for _, t := range j.Tasks() {
		switch {
		case t.Status.Leaves():
			if at := f.gone(t); at.After(last) {
				last = at
			}
		case t.Status.Holds():
			return time.Time{}, false
		}
	}
	return last, !last.IsZero()
}
