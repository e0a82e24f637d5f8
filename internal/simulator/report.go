package simulator

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/internal/simulator/report"
	"hekla.sh/hekla/pkg/cluster"
)

// Report and its parts are in package report.
type (
	Report       = report.Report
	Explanations = report.Explanations
	Bind         = report.Bind
	Eviction     = report.Eviction
	Nomination   = report.Nomination
	Job          = report.Job
	Queue        = report.Queue
	Workload     = report.Workload
	LeftOut      = report.LeftOut
)

// teller is a simulation that tells where it stands.
type teller struct{ *simulation }

// finish adds the state at the end to the report.
func (s teller) finish() {
	r := s.report
	c := s.scheduler.Cluster()
	for _, j := range c.Jobs() {
		if j.Workload != nil {
			continue
		}
		row := Job{Job: s.names[j.ID], Queue: j.QueueName, Phase: string(j.Phase), Ready: j.Ready(), MinAvailable: j.MinMember}
		if v := j.Verdict; v != nil && !j.Over() && (j.IsPendingAdmission() || j.Lacks() > 0 || j.Count(cluster.Pending) > 0) {
			code, sentence := j.Reason()
			row.Reason, row.Message = string(code), sentence()
		}
		r.Jobs = append(r.Jobs, row)
	}
	slices.SortStableFunc(r.Jobs, func(a, b Job) int { return cmp.Compare(a.Job, b.Job) })
	for _, w := range s.queued.Workloads() {
		at := s.queued.Stand(w)
		r.Workloads = append(r.Workloads, Workload{Workload: w.Namespace + "/" + w.Name, ClusterQueue: at.ClusterQueue, Admitted: at.IsAdmitted,
			Flavors: at.Flavors, Nodes: at.Nodes, Reason: at.Reason, Message: at.Message})
	}
	r.LeftOut = s.leftOut()
	for _, q := range c.Queues() {
		row := Queue{Queue: q.Name, Allocated: printed(c.Resources.List(q.Subtree.Allocated)), Deserved: map[string]string{}}
		if share, ok := s.scheduler.Policy().Share(q); ok {
			row.Deserved = printed(c.Resources.List(share.Deserved.Vector()))
			if value := share.Share.Float(); !math.IsInf(value, 0) {
				row.Share = &value
			}
		}
		r.Queues = append(r.Queues, row)
	}
}

// explain adds the state at the end in full, as a running scheduler explains it.
func (s teller) explain() error {
	c := s.scheduler.Cluster()
	m, err := s.scheduler.Reader()
	if err != nil {
		return err
	}
	all := &Explanations{Jobs: []explain.Job{}, Queues: []explain.Queue{}, Nodes: []explain.Node{}}
	for _, j := range c.Jobs() {
		if j.Workload != nil {
			continue
		}
		answer, err := m.Job(s.now, j.ID)
		if err != nil {
			return err
		}
		all.Jobs = append(all.Jobs, answer)
		eta, err := s.scheduler.ETA(s.now, j.ID)
		if err != nil {
			return err
		}
		if eta != nil {
			all.Starts = append(all.Starts, report.Start{Job: answer.Job, ETA: eta})
		}
	}
	for _, q := range c.Queues() {
		answer, err := m.Queue(s.now, q.Name)
		if err != nil {
			return err
		}
		all.Queues = append(all.Queues, answer)
	}
	for _, n := range c.Nodes() {
		answer, err := m.Node(n.Name)
		if err != nil {
			return err
		}
		all.Nodes = append(all.Nodes, answer)
	}
	all.Workloads = m.Workloads()
	s.report.Explanations, s.report.Journal = all, s.scheduler.Journal().All(journal.DefaultLimits.Entries)
	return nil
}

// explainAsked adds what a running scheduler says of some Workloads to the report.
func (s teller) explainAsked() error {
	m, err := s.scheduler.Reader()
	if err != nil {
		return err
	}
	for _, name := range s.options.Asked {
		if why, err := m.WhyWorkload(name); err == nil { // one that is gone has its row all the same
			s.report.Asked = append(s.report.Asked, why)
		}
	}
	return nil
}

func printed(list corev1.ResourceList) map[string]string {
	texts := make(map[string]string, len(list))
	for name, quantity := range list {
		texts[string(name)] = quantity.String()
	}
	return texts
}
