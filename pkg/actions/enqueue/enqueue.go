package enqueue

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the action in the configuration.
const Name = "enqueue"

// podsTimeout is the argument for the time in which an admitted job must have its pods.
const podsTimeout = "podsTimeout"

// Factory makes the action.
func Factory() framework.ActionFactory {
	return framework.ActionFactory{
		Name: Name,
		Spec: conf.Spec{Arguments: []conf.Argument{{Name: podsTimeout, Kind: conf.Duration, Default: 5 * time.Minute, Check: longEnough,
			Doc: "How long room is kept for an admitted job whose pods do not come; 30 seconds if others wait for it and there are none."}}},
		New: func(arguments conf.Arguments) (framework.Action, error) {
			return action{timeout: arguments.Duration(podsTimeout)}, nil
		},
	}
}

func longEnough(value any) error {
	if timeout, ok := value.(time.Duration); ok && timeout < patience {
		return fmt.Errorf("at least %s", patience)
	}
	return nil
}

type action struct{ timeout time.Duration }

func (action) Name() string { return Name }

func (a action) Execute(s *framework.Session) {
	jobs := map[*cluster.Queue]*framework.Heap[*cluster.Job]{}
	var queues []*cluster.Queue
	for _, q := range s.Queues() {
		waiting := slices.DeleteFunc(slices.Clone(s.FirstJobs(q)), func(j *cluster.Job) bool { return !j.IsPendingAdmission() })
		if len(waiting) > 0 {
			jobs[q] = framework.NewHeap(waiting, s.CompareJobs)
			queues = append(queues, q)
		}
	}
	a.remember(s)
	turn := framework.NewHeap(queues, s.CompareQueues)
	var last []*cluster.Job
	for turn.Len() > 0 {
		q := turn.Pop()
		j := jobs[q].Pop()
		switch {
		case s.LacksRoom(j):
		case comesLast(s, j):
			last = append(last, j)
		default:
			s.LookAt(j, func() { a.tryAdmit(s, j) })
		}
		for _, next := range s.JoinBehind(j) {
			if next.IsPendingAdmission() {
				jobs[q].Push(next)
			}
		}
		if jobs[q].Len() > 0 {
			turn.Push(q)
		}
	}
	a.tryAdmitLast(s, last)
	a.sendBack(s)
}

// mayBeMadeRoomFor reports whether an action of the pipeline may evict pods so that the job is admitted. As long as a
// job is pending admission, it cannot preempt itself (rule J4). If none may, it returns the refusal with what prevents
// the evictions.
func mayBeMadeRoomFor(s *framework.Session, j *cluster.Job, refusal *verdict.Verdict) (bool, *verdict.Verdict) {
	for _, a := range s.Policy.Actions {
		evicting, ok := a.(framework.EvictingAction)
		if !ok || evicting.EvictionRules().Scopes == 0 {
			continue // it evicts for no job
		}
		ok, why := evicting.AdmitsByEviction(s, j)
		if ok {
			return true, nil
		}
		if why == nil { // a change of any pod may make it evictable
			why = &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpPod | verdict.HelpQueue}
		}
		both := *refusal.With(why) // the plugin that returned it may keep it
		if both.Detail != why.Detail && why.Detail != "" {
			both.Detail = strings.Join(slices.DeleteFunc([]string{both.Detail, why.Detail}, func(s string) bool { return s == "" }), "; ")
		}
		refusal = &both
	}
	return false, refusal
}

// permanent returns a refusal of a job that is larger than its queue or the cluster may ever hold, nil if it is not.
// That comes first, whatever else the job waits for.
func permanent(s *framework.Session, j *cluster.Job) *verdict.Verdict {
	if j.MinResources == nil {
		return nil
	}
	if v := s.WhyNotEnqueue(j); v != nil && (v.Code == verdict.TooLargeForQueue || v.Code == verdict.TooLargeForCluster) {
		return v
	}
	return nil
}

func (a action) tryAdmit(s *framework.Session, j *cluster.Job) {
	if v := a.barred(s, j); v != nil {
		s.AddVerdict(j, v)
		return
	}
	if v := s.HeldUp(j); v != nil {
		s.AddVerdict(j, v.With(permanent(s, j)))
		return
	}
	if v := s.LimitAdmission(j); v != nil {
		s.AddVerdict(j, v.With(permanent(s, j)))
		return
	}
	if j.MinResources != nil {
		if s.MayEnqueue(j) != nil {
			v := s.WhyNotEnqueue(j)
			if lacks, ok := s.LacksToAdmit(j); ok {
				v = v.AwaitAny(lacks, verdict.HelpTime)
			}
			if ok, v := mayBeMadeRoomFor(s, j, v); !ok {
				s.AddVerdict(j, v)
				return
			}
		}
	}
	s.Admit(j)
	// Its pods are created only now, and it waits for them.
	s.AddVerdict(j, s.Validate(j))
}
