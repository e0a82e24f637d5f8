package world

import (
	"strings"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// Question is whether pods may leave.
type Question struct {
	Session *framework.Session
	Reclaim bool // for a job of another queue
	Taker   string
	For     string // the taker's pod that needs room, "" if its job stands at the door
	Victims string // pods, separated by spaces
	Whole   bool   // they are all of their gang
}

// Vote asks the plugin: "yes", "" if it has no say, else why not.
func (w *World) Vote(q Question) string {
	w.tb.Helper()
	d := &framework.VictimProposal{Taker: w.JobNamed(q.Taker), Whole: q.Whole}
	if q.For != "" {
		d.For = w.TaskNamed(q.For)
	}
	for _, name := range strings.Fields(q.Victims) {
		d.Victims = append(d.Victims, w.TaskNamed(name))
	}
	poll := q.Session.PollPreempt()
	if q.Reclaim {
		poll = q.Session.PollReclaim()
	}
	why, by := poll.Ask(d)
	switch {
	case why != "":
		return why
	case by == poll.Tiers():
		return ""
	}
	return "yes"
}

// Evict counts pods as leaving, as an earlier part of a plan would.
func (w *World) Evict(x framework.Transaction, names string) {
	w.tb.Helper()
	for _, name := range strings.Fields(names) {
		x.Evict(w.TaskNamed(name))
	}
}

// Promise promises a pod room on a node, as an earlier part of a plan would.
func (w *World) Promise(x framework.Transaction, name, node string) {
	w.tb.Helper()
	x.Pipeline(w.TaskNamed(name), w.node(node))
}

func (w *World) node(name string) *cluster.Node {
	w.tb.Helper()
	n := w.Node(name)
	if n == nil {
		w.tb.Fatalf("there is no node %s", name)
	}
	return n
}
