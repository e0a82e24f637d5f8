package enqueue

import (
	"slices"
	"strings"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the action in the configuration.
const Name = "enqueue"

// Factory makes the action.
func Factory() framework.ActionFactory {
	return framework.ActionFactory{Name: Name, New: func(conf.Arguments) (framework.Action, error) { return action{}, nil }}
}

type action struct{}

func (action) Name() string { return Name }

func (action) Execute(s *framework.Session) {
	jobs := map[*cluster.Queue]*framework.Heap[*cluster.Job]{}
	var queues []*cluster.Queue
	for _, q := range s.Queues() {
		waiting := slices.DeleteFunc(slices.Clone(s.Jobs(q)), func(j *cluster.Job) bool { return !j.AtTheDoor() })
		if len(waiting) > 0 {
			jobs[q] = framework.NewHeap(waiting, s.CompareJobs)
			queues = append(queues, q)
		}
	}
	turn := framework.NewHeap(queues, s.CompareQueues)
	for turn.Len() > 0 {
		q := turn.Pop()
		j := jobs[q].Pop()
		s.LookAt(j, func() { knock(s, j) })
		if jobs[q].Len() > 0 {
			turn.Push(q)
		}
	}
}

// mayBeMadeRoomFor reports whether an action of the pipeline may evict what keeps a job from being admitted: waiting for
// admission it would never get to that (law J4). If none may, it returns the refusal with what is in the way of evictions.
func mayBeMadeRoomFor(s *framework.Session, j *cluster.Job, refusal *verdict.Verdict) (bool, *verdict.Verdict) {
	for _, a := range s.Policy.Actions {
		m, ok := a.(framework.RoomMaker)
		if !ok {
			continue
		}
		ok, why := m.MayMakeRoom(s, j)
		if ok {
			return true, nil
		}
		both := *refusal.With(why) // who gave it may hold on to it
		if why != nil && both.Detail != why.Detail && why.Detail != "" {
			both.Detail = strings.Join(slices.DeleteFunc([]string{both.Detail, why.Detail}, func(s string) bool { return s == "" }), "; ")
		}
		both.Help |= verdict.HelpPod | verdict.HelpQueue // a change of any pod may let it leave
		refusal = &both
	}
	return false, refusal
}

func knock(s *framework.Session, j *cluster.Job) {
	if v := s.HeldUp(j); v != nil {
		s.Judge(j, v)
		return
	}
	if j.MinResources != nil {
		if v := s.MayEnqueue(j); v != nil {
			if ok, v := mayBeMadeRoomFor(s, j, v); !ok {
				s.Judge(j, v)
				return
			}
		}
	}
	s.LetIn(j)
	// Its pods are made only now: until then it waits for them.
	s.Judge(j, s.Validate(j))
}
