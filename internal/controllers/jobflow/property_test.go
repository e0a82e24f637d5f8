package jobflow

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

// machine is a JobFlow to which anything may happen. It takes the steps that the Reconciler takes, without
// the requests.
type machine struct {
	*surroundings

	// finished are the flows whose Jobs were ever Completed.
	finished map[string]bool

	// isReady are the flows whose pods answer, or are in the phase that is asked for.
	isReady map[string]bool
}

func drawFlow(t *rapid.T) *machine {
	flows := make([]flowapi.Flow, rapid.IntRange(1, 6).Draw(t, "flows"))
	kinds := slices.Sorted(maps.Keys(aboutMain))
	for i := range flows {
		flows[i].Name = string(rune('a' + i))
		var targets []string
		for j := range i {
			if rapid.Bool().Draw(t, "depends") {
				targets = append(targets, flows[j].Name)
			}
		}
		if len(targets) == 0 {
			continue
		}
		flows[i].DependsOn = &flowapi.DependsOn{Targets: targets}
		if rapid.Bool().Draw(t, "probed") {
			flows[i] = probed(flows[i], aboutMain[rapid.SampledFrom(kinds).Draw(t, "probe")])
		}
	}
	jobFlow := jobFlowOf(rapid.Permutation(flows).Draw(t, "order")...)
	return &machine{surroundings: newSurroundings(jobFlow), finished: map[string]bool{}, isReady: map[string]bool{}}
}

// reconcile takes one step. If it crashes, what was created is there and the status is lost.
func (m *machine) reconcile(t *rapid.T, crash bool) {
	before := m.flow.Status.DeepCopy()
	d := m.view.decide()
	for _, job := range d.create {
		flow := job.Name[len("f-"):]
		if isFinal(before.State.Phase) {
			t.Fatalf("%s is made though the flow is %s", job.Name, before.State.Phase)
		}
		if m.jobs[job.Name] != nil || m.finished[flow] {
			t.Fatalf("%s is made for the second time", job.Name)
		}
		m.mayBegin(t, flow)
		m.add(flow, "")
	}
	if crash {
		return
	}
	m.flow.Status = *m.view.observe(&d)
	m.check(t, before)
}

// mayBegin checks, by what its surroundings know, that all that a flow depends on holds.
func (m *machine) mayBegin(t *rapid.T, name string) {
	at := slices.IndexFunc(m.flow.Spec.Flows, func(flow flowapi.Flow) bool { return flow.Name == name })
	depends := m.flow.Spec.Flows[at].DependsOn
	if depends == nil {
		return
	}
	for _, target := range depends.Targets {
		isReady := depends.Probe != nil && m.isReady[target] && m.jobs["f-"+target] != nil
		if !m.finished[target] && !isReady {
			t.Fatalf("%s is made before %s is Completed or answers", name, target)
		}
	}
}

// check holds the invariants of one step.
func (m *machine) check(t *rapid.T, before *flowapi.JobFlowStatus) {
	status := &m.flow.Status
	var listed []string
	for phases, list := range map[*[]string][]batch.JobPhase{
		&status.PendingJobs: {"", batch.Pending}, &status.RunningJobs: {batch.Running}, &status.FailedJobs: {batch.Failed},
		&status.CompletedJobs: {batch.Completed}, &status.TerminatedJobs: {batch.Terminated}, &status.UnKnowJobs: {batch.Aborted},
	} {
		for _, name := range *phases {
			job := m.jobs[name]
			if job == nil && !m.finished[name[len("f-"):]] || job != nil && !slices.Contains(list, job.Status.State.Phase) {
				t.Fatalf("%s stands in the wrong list: %+v", name, status)
			}
			listed = append(listed, name)
		}
	}
	there := slices.Collect(maps.Keys(m.jobs))
	for flow := range m.finished {
		if m.jobs["f-"+flow] == nil {
			there = append(there, "f-"+flow)
		}
	}
	slices.Sort(listed)
	slices.Sort(there)
	if !slices.Equal(listed, there) || len(status.JobStatusList) != len(there) || len(status.Conditions) != len(there) {
		t.Fatalf("the Jobs %v are told as %v: %+v", there, listed, status)
	}
	from, to := before.State.Phase, status.State.Phase
	if isFinal(from) && to != from || from == flowapi.Running && to == flowapi.Pending {
		t.Fatalf("the flow came back from %s to %s", from, to)
	}
	if (to == flowapi.Succeed) != (len(m.finished) == len(m.flow.Spec.Flows)) && !isFinal(from) && to != flowapi.Failed {
		t.Fatalf("the flow is %s with %d of %d Jobs Completed", to, len(m.finished), len(m.flow.Spec.Flows))
	}
	if to == flowapi.Pending && status.State.Message == "" && len(m.jobs) == 0 {
		t.Fatalf("nothing is done, and nobody says why: %+v", status)
	}
}

// upset lets something happen to a Job or a template.
func (m *machine) upset(t *rapid.T) {
	if flow := rapid.SampledFrom(m.flow.Spec.Flows).Draw(t, "template").Name; rapid.IntRange(0, 4).Draw(t, "missing") == 0 {
		if m.templates[flow] != nil {
			delete(m.templates, flow)
		} else {
			m.templates[flow] = templateOf(flow, batch.TaskSpec{Name: "main", Replicas: 1}, batch.TaskSpec{Name: "side"})
		}
	}
	if len(m.jobs) == 0 {
		return
	}
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(m.jobs))).Draw(t, "job")
	job, flow := m.jobs[name], name[len("f-"):]
	phase := &job.Status.State.Phase
	switch what := rapid.IntRange(0, 11).Draw(t, "what"); {
	case *phase == batch.Completed || *phase == batch.Failed || *phase == batch.Terminated:
		if what < 4 { // its time to live is over, or a user has deleted it
			m.lose(name)
		}
	case what == 0:
		*phase = batch.Failed
	case what == 1:
		*phase = batch.Terminated
	case what == 2:
		*phase = batch.Aborted
	case what == 3:
		m.lose(name)
	case what < 7 && *phase == batch.Running:
		*phase = batch.Completed
		m.finished[flow] = true
	case what < 10 && *phase == batch.Running && !m.isReady[flow]:
		satisfy(m.surroundings, job)
		m.isReady[flow] = true
	default:
		*phase = batch.Running
	}
}

// lose takes a Job away, as the garbage collector would.
func (m *machine) lose(name string) {
	job := m.jobs[name]
	switch job.Status.State.Phase {
	case batch.Completed, batch.Failed, batch.Terminated:
		if !IsRecorded(m.flow, job) {
			return
		}
	}
	delete(m.jobs, name)
	delete(m.ownPods, name)
	delete(m.isReady, name[len("f-"):])
	clear(m.answers)
	for flow := range m.isReady {
		satisfy(m.surroundings, m.jobs["f-"+flow])
	}
}

// calm lets everything go well until the flow has ended, and says whether it did.
func (m *machine) calm(t *rapid.T) bool {
	for _, flow := range m.flow.Spec.Flows {
		m.templates[flow.Name] = templateOf(flow.Name, batch.TaskSpec{Name: "main", Replicas: 1})
	}
	for range len(m.flow.Spec.Flows) + 2 {
		m.reconcile(t, false)
		if isFinal(m.flow.Status.State.Phase) {
			return true
		}
		for name, job := range m.jobs {
			if phase := job.Status.State.Phase; phase != batch.Failed && phase != batch.Terminated {
				job.Status.State.Phase = batch.Completed
				m.finished[name[len("f-"):]] = true
			}
		}
	}
	return false
}

func TestWhateverHappensAFlowKeepsItsInvariantsAndComesToAnEnd(t *testing.T) {
	ended := map[flowapi.Phase]int{}
	byProbe := 0
	rapid.Check(t, func(t *rapid.T) {
		m := drawFlow(t)
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "upset or reconcile") {
				m.upset(t)
				continue
			}
			m.reconcile(t, rapid.IntRange(0, 5).Draw(t, "crash") == 0)
			if len(m.jobs) > len(m.finished)+1 && len(m.isReady) > 0 {
				byProbe++
			}
		}
		if !m.calm(t) {
			t.Fatalf("the flow does not end: %+v", m.flow.Status)
		}
		ended[m.flow.Status.State.Phase]++
	})
	if testing.Short() {
		return // it takes few flows then, which may all end alike
	}
	if ended[flowapi.Succeed] == 0 || ended[flowapi.Failed] == 0 || byProbe == 0 {
		t.Errorf("the flows ended %v, of which %d times some began by probes", ended, byProbe)
	}
}
