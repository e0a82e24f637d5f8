package edge

import (
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/edge/plans"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// kept keeps the lines of a log.
type kept struct {
	mutex sync.Mutex
	lines []string
}

func (k *kept) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		k.mutex.Lock()
		defer k.mutex.Unlock()
		k.lines = append(k.lines, line)
	}, funcr.Options{})
}

func TestEachDecisionIsOneLineOfTheLog(t *testing.T) {
	log := new(kept)
	d := newDiary(log.logger())
	d.start(t.Context())
	taker, victim := cluster.GroupID(types.NamespacedName{Namespace: "team", Name: "taker"}), cluster.GroupID(types.NamespacedName{Namespace: "other", Name: "victim"})
	eviction := decision.Eviction{Pod: types.NamespacedName{Namespace: "other", Name: "victim-0"}, Node: "node-1", VictimJob: victim, For: taker, Plan: "p1", Action: "reclaim",
		Rule: "Q4", Message: "reclaimed for team/taker: cpu 4 of 8"}
	d.begun(&decision.PlanStart{ID: "p1", Action: "reclaim", Job: taker, Evictions: []decision.Eviction{eviction}, Nominations: make([]decision.Nomination, 2)})
	d.evicted(&eviction, plans.EvictionForced)
	d.ended(&decision.PlanEnd{ID: "p1", Job: taker, Why: "its queue has no room any more", Spared: make([]decision.Spared, 3)})
	d.ended(&decision.PlanEnd{ID: "p2"})
	d.admitted(&decision.GroupStatus{Job: taker, Queue: "research"})
	d.noticed(&decision.Notice{Regarding: corev1.ObjectReference{Kind: "PodGroup", Namespace: "team", Name: "taker"}, Reason: "Scheduled", Message: "3 pods have their nodes; the minimum is 2"})
	d.noticed(&decision.Notice{Regarding: corev1.ObjectReference{Kind: "PodGroup", Namespace: "team", Name: "taker"}, Reason: "Unschedulable", Message: "no node"})
	d.workload(&decision.Notice{Regarding: corev1.ObjectReference{Kind: "Workload", Namespace: "team", Name: "job-a"}, Reason: "Admitted",
		Message: "Admitted by ClusterQueue a, wait time since reservation was 3s"})
	d.close()
	d.tell("too late")
	d.writer.Wait()
	want := []string{
		`"level"=0 "msg"="A plan begins" "plan"="p1" "action"="reclaim" "scope"="" "job"="team/taker" "evictions"=1 "nominations"=2`,
		`"level"=0 "msg"="A pod was evicted" "pod"="other/victim-0" "node"="node-1" "of"="other/victim" "for"="team/taker" "action"="reclaim" "rule"="Q4" "plan"="p1" ` +
			`"isPastBudget"=true "message"="reclaimed for team/taker: cpu 4 of 8"`,
		`"level"=0 "msg"="A plan was cancelled" "plan"="p1" "job"="team/taker" "why"="its queue has no room any more" "spared"=3`,
		`"level"=0 "msg"="A job is admitted" "job"="team/taker" "queue"="research"`,
		`"level"=0 "msg"="A gang starts" "job"="team/taker" "message"="3 pods have their nodes; the minimum is 2"`,
		`"level"=0 "msg"="A Workload is decided" "workload"="team/job-a" "reason"="Admitted" "message"="Admitted by ClusterQueue a, wait time since reservation was 3s"`,
	}
	for i := range log.lines { // what the scope is called is not what is tested
		if before, after, ok := strings.Cut(log.lines[i], `"scope"="`); ok {
			_, after, _ = strings.Cut(after, `"`)
			log.lines[i] = before + `"scope"=""` + after
		}
	}
	if diff := cmp.Diff(want, log.lines); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}
