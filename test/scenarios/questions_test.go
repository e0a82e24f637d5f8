package scenarios

import (
	"encoding/json"
	"fmt"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	boards "hekla.sh/hekla/internal/explain/rows"
	"hekla.sh/hekla/internal/explain/survey"
	"hekla.sh/hekla/internal/simulator"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
)

// checkQuestions runs it again while everything is asked before each cycle: what is asked changes no decision, no
// verdict, and no total.
func (s *scenario) checkQuestions(report *simulator.Report) []string {
	var wrong []string
	again, err := s.run(s.manifests, func(o *simulator.Options) {
		happens := o.Before
		var page boards.Maker
		o.Before = func(cycle int, l *simulator.Led) error {
			wrong = append(wrong, disagreements(l, &page, cycle)...)
			if happens != nil {
				if err := happens(cycle, l); err != nil {
					return err
				}
			}
			found, err := askEverything(l)
			wrong = append(wrong, found...)
			return err
		}
	})
	if again == nil {
		return append(wrong, fmt.Sprintf("while it is asked: %v", err))
	}
	if diff := gocmp.Diff(printed(report), printed(again)); diff != "" {
		wrong = append(wrong, fmt.Sprintf("while it is asked it decides otherwise (-first +now):\n%s", diff))
	}
	return wrong
}

// disagreements says where the page, the answer about a job, the condition of its PodGroup, and the metrics have not
// the same reason, after a cycle.
func disagreements(l *simulator.Led, page *boards.Maker, cycle int) (wrong []string) {
	m, err := l.Scheduler().Reader()
	if err != nil {
		return []string{err.Error()}
	}
	board, counted := page.Board(m, l.Now()), map[string]int{}
	for _, row := range board.Jobs {
		if row.Kind != boards.KindPodGroup || row.State == boards.StateFinished {
			continue
		}
		namespace, name, _ := strings.Cut(row.Job, "/")
		why, err := m.Why(l.Now(), cluster.GroupID(types.NamespacedName{Namespace: namespace, Name: name}), false)
		if err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		if row.Reason != "" && why.Cause.Waits && row.Reason != why.Cause.Code {
			wrong = append(wrong, fmt.Sprintf("before cycle %d job %s says %s on the page, and %s in the answer", cycle, row.Job, row.Reason, why.Cause.Code))
		}
		group, _ := l.Get(&schedulingv1beta1.PodGroup{}, namespace, name).(*schedulingv1beta1.PodGroup)
		if group == nil {
			continue
		}
		for _, c := range group.Status.Conditions {
			if c.Type == schedulingv1beta1.PodGroupUnschedulableType && c.Status == corev1.ConditionTrue && row.Reason != "" && row.Reason != c.Reason {
				wrong = append(wrong, fmt.Sprintf("before cycle %d job %s says %s on the page, and %s in its PodGroup", cycle, row.Job, row.Reason, c.Reason))
			}
		}
		if row.Reason != "" && (row.State == boards.StatePending || row.State == boards.StateAdmitted) {
			counted[row.Queue+" "+row.Reason]++
		}
	}
	shown := map[string]int{}
	for queue, b := range survey.Backlogs(l.Scheduler().Cluster()) {
		for reason, jobs := range b.Reasons {
			shown[queue+" "+reason] = jobs
		}
	}
	for reason, jobs := range counted {
		if shown[reason] < jobs {
			wrong = append(wrong, fmt.Sprintf("before cycle %d the metrics count %d jobs of queue and reason %s, and the page %d", cycle, shown[reason], reason, jobs))
		}
	}
	return wrong
}

// askEverything asks about all there is, and what would happen if each job were submitted once more.
func askEverything(l *simulator.Led) (wrong []string, err error) {
	c := l.Scheduler().Cache()
	m, err := l.Scheduler().Reader()
	if err != nil {
		return nil, err
	}
	told := func(answer any, err error) error {
		if err == nil {
			_, err = json.Marshal(answer)
		}
		return err
	}
	for _, j := range c.Jobs() {
		if err := told(m.Job(l.Now(), j.ID)); err != nil {
			return nil, err
		}
		group := &schedulingv1beta1.PodGroup{ObjectMeta: *j.Group.ObjectMeta.DeepCopy(), Spec: *j.Group.Spec.DeepCopy()}
		group.Name = "again-" + group.Name
		var pods []*corev1.Pod
		for _, t := range j.Tasks() {
			if err := told(m.Pod(l.Now(), t.Key())); err != nil {
				return nil, err
			}
			if t.Pod.Spec.SchedulerName != schedulingv1beta1.DefaultSchedulerName {
				continue
			}
			pod := t.Pod.DeepCopy()
			pod.Name, pod.Spec.NodeName, pod.DeletionTimestamp = "again-"+pod.Name, "", nil
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
			pods = append(pods, pod)
		}
		if err := told(m.Submit(l.Now(), group, pods)); err != nil {
			return nil, err
		}
	}
	for _, q := range c.Queues() {
		if err := told(m.Queue(l.Now(), q.Name)); err != nil {
			return nil, err
		}
	}
	for _, n := range c.Nodes() {
		if err := told(m.Node(n.Name)); err != nil {
			return nil, err
		}
	}
	for _, problem := range c.Audit() {
		wrong = append(wrong, "after questions: "+problem)
	}
	return wrong, nil
}
