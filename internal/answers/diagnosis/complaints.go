package diagnosis

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hekla.sh/hekla/internal/explain/survey"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
)

const (
	// longClock is the difference of clocks from which on ages and deadlines are wrong.
	longClock = 2 * time.Second
	// longCycle is a cycle that holds up others, longRequest a request that holds up the outbox. Milliseconds.
	longCycle, longRequest = 1000, 1000
	// manyWaiting is a number of waiting writes that are some seconds of work.
	manyWaiting = 1000
)

// Complain lists what is wrong, the worst first.
func (d *Diagnosis) Complain() {
	say := func(next, format string, values ...any) {
		d.Health.Complaints = append(d.Health.Complaints, Complaint{Fault: fmt.Sprintf(format, values...), Next: next})
	}
	const logs = "kubectl -n volcano-system logs deployment/volcano-scheduler"
	if d.Cycles.Broken > 0 {
		say(logs, "%d of %d cycles broke, and their decisions were dropped", d.Cycles.Broken, d.Cycles.Count)
	}
	for i := range d.Supervised {
		if text := d.Supervised[i].String(); text != "" {
			say("hekla up", "%s", text)
		}
	}
	if problem := d.Configuration.Problem; problem != "" {
		say("hekla diag -o yaml", "%s", problem)
	}
	if missing := d.Health.MissingRights; len(missing) > 0 {
		say("kubectl apply --server-side -f installer/hekla.yaml", "the scheduler lacks rights: %s", strings.Join(missing, ", "))
	}
	if why := d.Charts; why != "" {
		say("kubectl apply --server-side -f installer/hekla.yaml", "the charts of the web page are not handed over to the next leader: %s", why)
	}
	if why := d.Health.RightsUnknown; why != "" {
		say("kubectl auth can-i --list --as=system:serviceaccount:volcano-system:volcano-scheduler", "the rights of the scheduler could not be found out: %s", why)
	}
	if ahead := d.Health.ClockAheadSeconds; math.Abs(ahead) >= longClock.Seconds() {
		say("timedatectl", "the clock of the API server differs from that of the scheduler by %.0f s", ahead)
	}
	nodes := &d.Health.Nodes
	list := func(l *survey.NodeList, what string) {
		if l.Count > 0 {
			say("kubectl describe node "+l.Nodes[0], "%d nodes %s, such as %s", l.Count, what, l.Nodes[0])
		}
	}
	list(&nodes.NotReady, "are not ready")
	list(&nodes.Silent, fmt.Sprintf("have not reported for %s", survey.Silence))
	list(&nodes.Ahead, fmt.Sprintf("have a clock that is ahead by more than %s", survey.Skew))
	if l := &nodes.Unknown; l.Count > 0 {
		say("hekla why node "+l.Nodes[0], "%d nodes do not exist, and pods name them, such as %s", l.Count, l.Nodes[0])
	}
	for i := range d.Queues {
		if q := &d.Queues[i]; q.State == survey.Missing {
			say("hekla queue create "+q.Queue, "%d jobs name queue %s, which does not exist", q.Jobs, q.Queue)
		}
	}
	if d.Configuration.AdmitsNoWorkloads {
		waiting := 0
		for i := range d.ClusterQueues {
			waiting += d.ClusterQueues[i].Pending
		}
		if waiting > 0 {
			say("kubectl -n volcano-system edit configmap volcano-scheduler-configmap", "%s: %d Workloads wait, and %s", conditions.WorkloadsOff, waiting,
				conditions.WorkloadsOffMessage)
		}
	}
	for i := range d.ClusterQueues {
		if q := &d.ClusterQueues[i]; q.Inactive != "" && q.Pending > 0 {
			say("kubectl describe clusterqueues.kueue.x-k8s.io "+q.ClusterQueue, "ClusterQueue %s admits nothing, and %d Workloads wait for it: it %s", q.ClusterQueue, q.Pending, q.Inactive)
		}
	}
	if d.Cycles.Longest > longCycle {
		say("hekla diag -o yaml", "a cycle of the latest %d took %.1f s", len(d.Cycles.Recent), d.Cycles.Longest/1000)
	}
	for i := range d.Requests {
		r := &d.Requests[i]
		if r.Median > longRequest {
			say("kubectl get --raw /metrics", "half of the requests %q take more than %.1f s", r.Request, r.Median/1000)
		}
	}
	if waiting := d.Outbox.Waiting + d.Outbox.StepsWaiting + d.Outbox.StatusesWaiting; waiting > manyWaiting {
		say("hekla diag -o yaml", "%d writes wait for the API server", waiting)
	}
	d.Health.Complaints = slices.Clip(d.Health.Complaints)
}
