package edge

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/edge/plans"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// diary logs what was decided, one line for each plan, eviction, admission and start of a gang, in the words of the
// Events, which are limited and forgotten after an hour. A goroutine writes the lines: the loop, which passes decisions
// on, does not wait for the log.
type diary struct {
	logger logr.Logger

	mutex    sync.Mutex
	lines    []line
	isClosed bool
	wake     *sync.Cond
	writer   sync.WaitGroup
}

// line is a message and its values, in the order key, value.
type line struct {
	message string
	values  []any
}

func newDiary(logger logr.Logger) *diary {
	d := &diary{logger: logger}
	d.wake = sync.NewCond(&d.mutex)
	return d
}

// start begins to write, until the context ends and what was told before is written.
func (d *diary) start(ctx context.Context) {
	context.AfterFunc(ctx, d.close)
	d.writer.Go(func() {
		for {
			d.mutex.Lock()
			for len(d.lines) == 0 && !d.isClosed {
				d.wake.Wait()
			}
			lines := d.lines
			d.lines = nil
			d.mutex.Unlock()
			if len(lines) == 0 {
				return
			}
			for _, l := range lines {
				d.logger.Info(l.message, l.values...)
			}
		}
	})
}

// close lets the writer end when it has written what is there. What is told later is lost.
func (d *diary) close() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.isClosed = true
	d.wake.Broadcast()
}

func (d *diary) tell(message string, values ...any) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if !d.isClosed {
		d.lines = append(d.lines, line{message, values})
		d.wake.Signal()
	}
}

// begun tells of a plan.
func (d *diary) begun(p *decision.PlanStart) {
	values := []any{"plan", p.ID, "action", p.Action, "scope", p.Scope.String()}
	if p.Job != (cluster.JobID{}) {
		values = append(values, "job", p.Job.String())
	}
	d.tell("A plan begins", append(values, "evictions", len(p.Evictions), "nominations", len(p.Nominations))...)
}

// ended tells of a plan that is cancelled.
func (d *diary) ended(p *decision.PlanEnd) {
	if p.Job == (cluster.JobID{}) && len(p.Spared) == 0 {
		return // the plan of a job that is gone
	}
	d.tell("A plan was cancelled", "plan", p.ID, "job", p.Job.String(), "why", p.Why, "spared", len(p.Spared))
}

// evicted tells of a pod whose eviction was sent.
func (d *diary) evicted(e *decision.Eviction, result plans.EvictionResult) {
	values := []any{"pod", e.Pod.String(), "node", e.Node, "of", e.VictimJob.String()}
	if e.For != (cluster.JobID{}) {
		values = append(values, "for", e.For.String())
	}
	d.tell("A pod was evicted", append(values, "action", e.Action, "rule", e.Rule, "plan", e.Plan, "isPastBudget", result == plans.EvictionForced,
		"message", e.Message)...)
}

// admitted tells of a job whose admission is decided.
func (d *diary) admitted(g *decision.GroupStatus) {
	d.tell("A job is admitted", "job", g.Job.String(), "queue", g.Queue)
}

// noticed tells of an Event that says that a gang has its nodes.
func (d *diary) noticed(n *decision.Notice) {
	if n.Regarding.Kind == "PodGroup" && n.Reason == string(schedulingv1beta1.PodGroupScheduledType) {
		d.tell("A gang starts", "job", name(&n.Regarding), "message", n.Message)
	}
}

// workload tells what was written about a Workload: quota, admission, eviction.
func (d *diary) workload(n *decision.Notice) {
	d.tell("A Workload is decided", "workload", name(&n.Regarding), "reason", n.Reason, "message", n.Message)
}

func name(of *corev1.ObjectReference) string { return of.Namespace + "/" + of.Name }
