package explain

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/explain/holders"
	"hekla.sh/hekla/internal/explain/mistakes"
	"hekla.sh/hekla/internal/explain/propose"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// Why says why a job waits: one cause, and what would make it start.
type Why struct {
	Job   Job   `json:"job"`
	Cause Cause `json:"cause"`
	// Also are further reasons for which it could not start, once Cause is put right.
	Also []Cause `json:"also,omitempty"`
	// Mistakes are names in the job that nothing in the cluster has.
	Mistakes []mistakes.Mistake `json:"mistakes,omitempty"`
	// Ahead are the jobs of its queue that are tried before it, the first in front.
	Ahead []Ahead `json:"ahead,omitempty"`
	// Holders say who holds what it waits for, absent if that is nothing that others hold.
	Holders *holders.Holders `json:"holders,omitempty"`
	// Proposals are changes with which the job would start now. Each was tried by the code that places.
	Proposals []propose.Proposal `json:"proposals,omitempty"`
	// Queued is how a Workload of kueue.x-k8s.io stands, absent if the answer is about another job.
	Queued *queued.Workload `json:"queued,omitempty"`
	// Returns says whether pods of it that are evicted come back.
	Returns string `json:"returns"`
	// NoProposals says why none were looked for, "" if they were.
	NoProposals string `json:"noProposals,omitempty"`
}

// Ahead is a job that is tried before another.
type Ahead struct {
	Job      string `json:"job"`
	Priority int32  `json:"priority"`
	// Because says why it comes before: its priority, its age, or the order of a plugin.
	Because string `json:"because"`
	Reason  string `json:"reason,omitempty"` // why it waits itself, a code
}

// maxAhead is the number of jobs in front that are named: the first ones decide.
const maxAhead = 10

// Why explains a job. Proposals are looked for only if they are wanted, because each costs a trial.
func (m *Model) Why(now time.Time, id cluster.JobID, wantsProposals bool) (Why, error) {
	j := m.cluster.Job(id)
	if j != nil && j.LacksGroup() {
		return Why{Job: m.state(now, j), Returns: returns(j), Cause: m.ungrouped(j)}, nil
	}
	if j == nil || j.Group == nil {
		return Why{}, NotFound{Kind: "PodGroup", Name: id.String()}
	}
	answer := Why{Job: m.state(now, j), Returns: returns(j)}
	m.try(now, func(s *framework.Session) {
		answer.Ahead = ahead(j, m.explore(s, j, &answer.Job))
		answer.Cause = m.cause(s, j, &answer.Job)
		if answer.Cause.Waits {
			answer.Also = m.also(s, j, &answer.Cause)
		}
	})
	if answer.Cause.Waits || j.IsForeign {
		answer.Mistakes = m.mistakesOf(j)
	}
	switch {
	case !answer.Cause.Waits:
	case !wantsProposals:
		answer.NoProposals = "the scheduler answers many questions now; ask again in some seconds"
	default:
		answer.Proposals, answer.NoProposals = m.proposals(now, j, &answer.Cause)
	}
	return answer, nil
}

// FindJob returns the job that users call by a name: that of its PodGroup, or of the object for which a controller made
// the PodGroup. Of several with one name it is the youngest.
func (m *Model) FindJob(namespace, name string) (cluster.JobID, error) {
	id := cluster.JobID{Namespace: namespace, Name: name}
	known := m.cluster.Job(id)
	if known != nil && known.Group != nil {
		return id, nil
	}
	if j := m.cache.Called.Youngest(id.Key()); j != nil {
		return j.ID, nil
	}
	if known != nil && known.LacksGroup() {
		return id, nil
	}
	return id, NotFound{Kind: "job", Name: id.String(), Schedulers: m.cache.SchedulerNames()}
}

// Cause returns why the job of a pod waits, nil if the pod has a node or no job.
func (m *Model) Cause(now time.Time, id cluster.JobID) *Cause {
	j := m.cluster.Job(id)
	if j == nil || j.Group == nil {
		return nil
	}
	state := m.state(now, j)
	var c Cause
	m.try(now, func(s *framework.Session) {
		m.explore(s, j, &state)
		c = m.cause(s, j, &state)
	})
	return &c
}

// returns says whether pods of a job that are evicted come back: if they have a controller, which makes them again.
func returns(j *cluster.Job) string {
	const gone = "no: no controller makes pods of it again"
	for _, t := range j.Tasks() {
		if owner := metav1.GetControllerOfNoCopy(t.Pod); owner != nil {
			return fmt.Sprintf("yes: %s %s makes pods again that were evicted, and they wait in queue %s", owner.Kind, owner.Name, j.QueueName)
		}
	}
	if j.Group == nil {
		return gone
	}
	if owner := metav1.GetControllerOfNoCopy(j.Group); owner != nil && owner.Kind != "Pod" {
		return fmt.Sprintf("yes: %s %s makes pods again that were evicted, and they wait in queue %s", owner.Kind, owner.Name, j.QueueName)
	}
	return gone
}

// ahead says why some jobs are tried before a job.
func ahead(j *cluster.Job, before []*cluster.Job) []Ahead {
	var all []Ahead
	for _, other := range before {
		a := Ahead{Job: other.Name(), Priority: other.Priority, Because: whyAhead(other, j)}
		if other.Verdict != nil {
			code, _ := other.Reason()
			a.Reason = string(code)
		}
		all = append(all, a)
	}
	return all
}

func whyAhead(other, j *cluster.Job) string {
	switch {
	case other.Priority > j.Priority:
		return fmt.Sprintf("its priority %d is higher than %d", other.Priority, j.Priority)
	case other.Priority == j.Priority && other.Created().Before(j.Created()):
		return "it is older by " + j.Created().Sub(other.Created()).Round(time.Second).String()
	}
	return "the plugins of the configuration order it so"
}
