package scheduler

import "hekla.sh/hekla/pkg/framework"

// panics is an action with a bug.
type panics struct{}

func (panics) Name() string { return "panics" }

func (panics) Execute(*framework.Session) { panic("on purpose") }
