package scheduler_test

import "hekla.sh/hekla/pkg/framework"

// panics is an action with a bug.
type panics struct{}

func (panics) Name() string { return "panics" }

func (panics) Execute(*framework.Session) { panic("on purpose") }

// panicsOver is an action with a bug that one job brings out.
type panicsOver struct{ name string }

func (panicsOver) Name() string { return "panics" }

func (p panicsOver) Execute(s *framework.Session) {
	for _, q := range s.Queues() {
		for _, j := range s.Jobs(q) {
			s.LookAt(j, func() {
				if j.ID.Name == p.name {
					panic("on purpose")
				}
			})
		}
	}
}
