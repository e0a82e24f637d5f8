package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/apis/batch/builder"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/batch/validation"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// machine is a Job, its pods and its PodGroup in a world in which anything may happen to them. It takes the steps that
// the Reconciler takes, without the requests.
type machine struct {
	job   *batch.Job
	pods  []*corev1.Pod
	group *scheduling.PodGroup
	now   time.Time
	made  int

	// refused is whether the API server refuses to delete pods just now.
	refused bool

	// old are the pods that were there when the Job was last restarted as a whole.
	old []*corev1.Pod

	// charged counts how often the Job was seen to restart for another reason than that it was resumed.
	charged int32
}

func drawMachine(t *rapid.T) *machine {
	tasks := make([]batch.TaskSpec, rapid.IntRange(1, 3).Draw(t, "tasks"))
	for i := range tasks {
		replicas := rapid.Int32Range(0, 3).Draw(t, "replicas")
		tasks[i] = withMin(task(string(rune('a'+i)), replicas, ""), rapid.Int32Range(0, replicas).Draw(t, "task minimum"))
		tasks[i].Policies = drawPolicies(t)
		if i > 0 && rapid.Bool().Draw(t, "depends") {
			tasks[i].DependsOn = &batch.DependsOn{Name: []string{"a"}}
		}
	}
	job := jobOf(tasks...)
	job.Generation = 1
	job.Spec.MinAvailable = rapid.Int32Range(0, job.TotalReplicas()).Draw(t, "minAvailable")
	job.Spec.MaxRetry = rapid.SampledFrom([]int32{1, 2, 3, 4, 7}).Draw(t, "maxRetry")
	job.Spec.Policies = drawPolicies(t)
	if rapid.Bool().Draw(t, "has minSuccess") {
		job.Spec.MinSuccess = pointer(rapid.Int32Range(1, 3).Draw(t, "minSuccess"))
	}
	if problems := validation.ValidateJob(job); len(problems) > 0 {
		t.Fatalf("the Job is invalid: %v", problems)
	}
	return &machine{job: job, group: groupIn(scheduling.PodGroupPending, ""), now: noon}
}

func drawPolicies(t *rapid.T) batch.LifecyclePolicies {
	var policies batch.LifecyclePolicies
	for _, event := range validation.PolicyEvents()[1:] {
		if !rapid.Bool().Draw(t, "answered") {
			continue
		}
		policy := onEvent(rapid.SampledFrom(validation.JobActions()).Draw(t, "action"), event)
		if event == bus.PodPendingEvent || rapid.Bool().Draw(t, "delayed") {
			policy = after(time.Hour, policy)
		}
		policies = append(policies, policy)
	}
	return policies
}

// reconcile takes one step. If it crashes, the deletions and creations of the step are done and its status is lost.
func (m *machine) reconcile(t *rapid.T, command bus.Action, crash bool) {
	before := m.job.Status.DeepCopy()
	m.refused = rapid.IntRange(0, 4).Draw(t, "refused") == 0
	asked := m.asked(command)
	var status *batch.JobStatus
	if len(asked) > 0 {
		if IsPartial(asked[0].Action) && before.RetryCount+1 < m.job.Spec.MaxRetry {
			if m.refused {
				return
			}
			m.delete(Targets(m.job, m.pods, asked))
		}
		status = Follow(m.job, m.pods, asked, m.now)
		if !crash && status.State.Phase == batch.Restarting && !IsPartial(asked[0].Action) {
			m.old = slices.Clone(m.pods)
		}
	} else {
		m.advance()
		status = Observe(m.job, m.pods, m.group, Trouble{}, m.now)
	}
	if crash {
		return
	}
	if status.State.Phase == batch.Restarting && before.State.Phase != batch.Restarting && (len(asked) == 0 || asked[0].Action != bus.ResumeJobAction) {
		m.charged++
	}
	m.job.Status = *status
	m.check(t, before)
}

func (m *machine) asked(command bus.Action) []Demand {
	if _, follows := Transition(m.job.Status.State.Phase, command); follows && !IsPartial(command) {
		return []Demand{Commanded(command, "asked")}
	}
	if !MakesPods(m.job.Status.State.Phase) {
		return nil
	}
	due, _ := Demands(m.job, Occurrences(m.job, m.pods, nil, m.group), func(o *Occurrence) time.Time { return o.Since }, m.now)
	return Chosen(m.job.Status.State.Phase, due)
}

func (m *machine) advance() {
	if !MakesPods(m.job.Status.State.Phase) {
		m.delete(Leftovers(m.job, m.pods))
		return
	}
	held := HeldBack(m.job, m.pods)
	// As if little went into one step, so that Jobs are often stopped while they are made.
	missing, _, surplus := MissingAndSurplus(m.job, m.pods, nil, held, 3)
	m.delete(surplus)
	if !Admitted(m.group) {
		return
	}
	for _, slot := range missing {
		m.made++
		pod := builder.Pod(m.job, &m.job.Spec.Tasks[slot.Task], slot.Index)
		pod.UID, pod.Status.Phase = types.UID(fmt.Sprint(m.made)), pending
		pod.CreationTimestamp = metav1.NewTime(m.now)
		m.pods = append(m.pods, pod)
	}
}

func (m *machine) delete(pods []*corev1.Pod) {
	for _, pod := range pods {
		if !m.refused {
			pod.DeletionTimestamp = &metav1.Time{Time: m.now}
		}
	}
}

// check holds the invariants of one step.
func (m *machine) check(t *rapid.T, before *batch.JobStatus) {
	status := &m.job.Status
	sum := status.Pending + status.Running + status.Succeeded + status.Failed + status.Unknown + status.Terminating
	if int(sum) != len(m.pods) {
		t.Fatalf("%d pods are counted as %d: %+v", len(m.pods), sum, status)
	}
	if status.RetryCount > m.job.Spec.MaxRetry || status.RetryCount != m.charged {
		t.Fatalf("%d retries of %d, restarted %d times", status.RetryCount, m.job.Spec.MaxRetry, m.charged)
	}
	from, to := before.State.Phase, status.State.Phase
	if IsFinal(from) && to != from {
		t.Fatalf("the Job came back from %s to %s", from, to)
	}
	if from != to && !slices.Contains(arrows[from], to) {
		t.Fatalf("there is no way from %q to %q", from, to)
	}
	if to == batch.Failed && status.State.Reason == "" && (from != to || before.State.Reason != "") {
		t.Fatalf("a Job failed without a reason, or lost it")
	}
	for _, pod := range m.pods {
		if MakesPods(to) && pod.DeletionTimestamp == nil && slices.Contains(m.old, pod) {
			t.Fatalf("in phase %s there is pod %s from before the restart", to, pod.Name)
		}
	}
}

// arrows are all the ways there are between phases.
var arrows = map[batch.JobPhase][]batch.JobPhase{
	"":                {batch.Pending, batch.Aborting, batch.Terminating, batch.Completing, batch.Restarting},
	batch.Pending:     {batch.Running, batch.Failed, batch.Aborting, batch.Terminating, batch.Completing, batch.Restarting},
	batch.Running:     {batch.Pending, batch.Completed, batch.Failed, batch.Aborting, batch.Terminating, batch.Completing, batch.Restarting},
	batch.Restarting:  {batch.Pending, batch.Failed, batch.Aborting, batch.Terminating, batch.Completing},
	batch.Aborting:    {batch.Aborted, batch.Restarting, batch.Terminating},
	batch.Aborted:     {batch.Restarting, batch.Terminating},
	batch.Completing:  {batch.Completed},
	batch.Terminating: {batch.Terminated},
}

// upset does something to the Job that its controller did not ask for.
func (m *machine) upset(t *rapid.T) {
	m.now = m.now.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Hour}).Draw(t, "time"))
	switch rapid.IntRange(0, 4).Draw(t, "upset") {
	case 0:
		m.group.Status.Phase = rapid.SampledFrom([]scheduling.PodGroupPhase{scheduling.PodGroupPending, scheduling.PodGroupInqueue,
			scheduling.PodGroupRunning, scheduling.PodGroupUnknown}).Draw(t, "group")
	case 1:
		task := &m.job.Spec.Tasks[rapid.IntRange(0, len(m.job.Spec.Tasks)-1).Draw(t, "task")]
		task.Replicas = rapid.Int32Range(*task.MinAvailable, 4).Draw(t, "scale")
		m.job.Spec.MinAvailable = min(m.job.Spec.MinAvailable, m.job.TotalReplicas())
		m.job.Generation++
	default:
		for _, pod := range m.pods {
			switch rapid.IntRange(0, 5).Draw(t, "fate") {
			case 0:
				pod.DeletionTimestamp = &metav1.Time{Time: m.now}
			case 1, 2:
				if pod.Status.Phase == pending || pod.Status.Phase == running {
					pod.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{running, succeeded, failed}).Draw(t, "phase")
				}
			}
		}
		m.sweep(func() bool { return rapid.Bool().Draw(t, "gone") })
	}
}

// sweep takes away terminating pods.
func (m *machine) sweep(gone func() bool) {
	m.pods = slices.DeleteFunc(m.pods, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil && gone() })
}

// calm lets everything go well until the Job has ended, and resumes it when it was aborted. It says whether it ended.
func (m *machine) calm(t *rapid.T) bool {
	const enough = 200
	m.group.Status.Phase = scheduling.PodGroupRunning
	for range enough {
		phase := m.job.Status.State.Phase
		if IsFinal(phase) || phase == batch.Running && m.job.TotalReplicas() == 0 {
			return true
		}
		var command bus.Action
		if phase == batch.Aborted {
			command = bus.ResumeJobAction
		}
		m.reconcile(t, command, false)
		m.now = m.now.Add(max(PauseLeft(&m.job.Status, m.now), 0))
		m.sweep(func() bool { return true })
		for _, pod := range m.pods {
			if pod.Status.Phase == running {
				pod.Status.Phase = succeeded
			} else if pod.Status.Phase == pending {
				pod.Status.Phase = running
			}
		}
	}
	return false
}

func TestWhateverHappensAJobKeepsItsInvariantsAndComesToAnEnd(t *testing.T) {
	ended := map[batch.JobPhase]int{}
	rapid.Check(t, func(t *rapid.T) {
		m := drawMachine(t)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "upset or reconcile") {
				m.upset(t)
				continue
			}
			var command bus.Action
			if rapid.IntRange(0, 9).Draw(t, "commanded") == 0 {
				command = rapid.SampledFrom(validation.JobActions()).Draw(t, "command")
			}
			m.reconcile(t, command, rapid.IntRange(0, 9).Draw(t, "crash") == 0)
		}
		// An answer with AbortJob to what a resumed Job does first would abort it for ever; that is as it was asked
		// for.
		m.job.Spec.Policies = withoutAborting(m.job.Spec.Policies)
		for i := range m.job.Spec.Tasks {
			m.job.Spec.Tasks[i].Policies = withoutAborting(m.job.Spec.Tasks[i].Policies)
		}
		if !m.calm(t) {
			t.Fatalf("the Job does not end: %+v", m.job.Status)
		}
		ended[m.job.Status.State.Phase]++
	})
	for _, phase := range []batch.JobPhase{batch.Completed, batch.Failed, batch.Terminated} {
		if ended[phase] == 0 {
			t.Errorf("no Job ended %s: %v", phase, ended)
		}
	}
}

func withoutAborting(policies batch.LifecyclePolicies) batch.LifecyclePolicies {
	return slices.DeleteFunc(slices.Clone(policies), func(policy batch.LifecyclePolicy) bool { return policy.Action == bus.AbortJobAction })
}
