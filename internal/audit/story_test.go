package audit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/audit"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	kueue "hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// story writes an audit log, request by request.
type story struct {
	t       *testing.T
	log     bytes.Buffer
	now     time.Time
	version int
	pods    map[string]*corev1.Pod
	nodes   map[string]*corev1.Node

	workloads map[string]*kueue.Workload

	uri string // of the requests
}

const (
	theScheduler = "system:serviceaccount:volcano-system:volcano-scheduler"
	kubelet      = "system:node"

	otherScheduler = "system:kube-scheduler"
	person         = "kubernetes-admin"
)

func newStory(t *testing.T) *story {
	return &story{t: t, now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), pods: map[string]*corev1.Pod{}, nodes: map[string]*corev1.Node{}, workloads: map[string]*kueue.Workload{}}
}

// pass lets time pass, in which nothing happens but a heartbeat of a node that nobody uses.
func (s *story) pass(d time.Duration) {
	s.now = s.now.Add(d)
	s.request("update", "", "configmaps", "", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "tick"}}, nil, person)
}

// request writes a line. The request takes 20 ms.
func (s *story) request(verb, group, resource, subresource string, answer, asked metav1.Object, by string) {
	s.t.Helper()
	named := answer
	if asked != nil {
		named = asked
	}
	line := map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "stage": "ResponseComplete", "verb": verb,
		"user":                     map[string]any{"username": by},
		"requestURI":               s.uri,
		"objectRef":                map[string]any{"apiGroup": group, "resource": resource, "subresource": subresource, "namespace": named.GetNamespace(), "name": named.GetName()},
		"responseStatus":           map[string]any{"code": 200},
		"requestReceivedTimestamp": s.now.Format(time.RFC3339Nano), "stageTimestamp": s.now.Add(20 * time.Millisecond).Format(time.RFC3339Nano),
	}
	if asked != nil {
		line["requestObject"] = asked
	}
	if answer != nil {
		s.version++
		answer.SetResourceVersion(fmt.Sprint(s.version))
		if answer.GetUID() == "" {
			answer.SetUID(types.UID(fmt.Sprintf("uid-%d", s.version)))
			answer.SetCreationTimestamp(metav1.NewTime(s.now))
		}
		line["responseObject"] = answer
	} else {
		line["responseObject"] = map[string]any{"kind": "Status"}
	}
	text, err := json.Marshal(line)
	if err != nil {
		s.t.Fatal(err)
	}
	s.log.Write(append(text, '\n'))
	s.now = s.now.Add(100 * time.Millisecond)
}

func list(cpu string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
}

func (s *story) node(name, cpu string) {
	n, is := s.nodes[name]
	if !is {
		n = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.nodes[name] = n
	}
	n.Status.Allocatable = list(cpu)
	n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("110")
	s.request("update", "", "nodes", "", n, nil, kubelet)
}

// pod makes a pod of namespace work.
func (s *story) pod(name, cpu string, change ...func(p *corev1.Pod)) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: name}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list(cpu)}}}
	for _, c := range change {
		c(p)
	}
	s.pods[name] = p
	s.request("create", "", "pods", "", p, nil, person)
}

func inGroup(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, scheduling.KubeGroupNameAnnotationKey, name)
	}
}

func ofPriority(priority int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Priority = &priority }
}

func annotated(name, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, name, value) }
}

func controlled(p *corev1.Pod) {
	is := true
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "j", UID: "job-j", Controller: &is}}
}

// bind binds a pod, by the scheduler unless another user is named.
func (s *story) bind(pod, node string, by ...string) {
	p := s.pods[pod]
	by = append(by, theScheduler)
	s.request("create", "", "pods", "binding", nil, &metav1Binding{Binding: corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: pod, UID: p.UID},
		Target: corev1.ObjectReference{Kind: "Node", Name: node}}}, by[0])
	p.Spec.NodeName = node
}

// metav1Binding has the methods of an object.
type metav1Binding struct{ corev1.Binding }

func (s *story) change(pod string, change func(p *corev1.Pod)) {
	change(s.pods[pod])
	s.request("patch", "", "pods", "status", s.pods[pod], nil, kubelet)
}

// nominate says that the scheduler keeps room on a node for a pod, or on none.
func (s *story) nominate(pod, node string) {
	s.pods[pod].Status.NominatedNodeName = node
	s.request("patch", "", "pods", "status", s.pods[pod], nil, theScheduler)
}

func (s *story) end(pod string) {
	s.change(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
}

func (s *story) evict(pod string) {
	o := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: pod}}
	s.request("create", "", "pods", "eviction", nil, &metav1Eviction{*o}, theScheduler)
	s.change(pod, func(p *corev1.Pod) {
		now, grace := metav1.NewTime(s.now), int64(30)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &grace
	})
}

type metav1Eviction struct{ policyv1.Eviction }

// remove deletes a pod at once.
func (s *story) remove(pod, by string) {
	now, grace := metav1.NewTime(s.now), int64(0)
	s.pods[pod].DeletionTimestamp, s.pods[pod].DeletionGracePeriodSeconds = &now, &grace
	s.request("delete", "", "pods", "", s.pods[pod], nil, by)
}

func (s *story) leave(pod string) {
	s.evict(pod)
	s.now = s.now.Add(2 * time.Second)
	s.remove(pod, kubelet)
}

func (s *story) group(name, queue string, min int32, change ...func(*scheduling.PodGroup)) {
	o := &scheduling.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: name}, Spec: scheduling.PodGroupSpec{MinMember: min, Queue: queue}}
	for _, c := range change {
		c(o)
	}
	s.request("create", "scheduling.volcano.sh", "podgroups", "", o, nil, person)
}

func (s *story) queue(name, capability string, change ...func(*scheduling.Queue)) {
	o := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if capability != "" {
		o.Spec.Capability = list(capability)
	}
	for _, c := range change {
		c(o)
	}
	s.request("create", "scheduling.volcano.sh", "queues", "", o, nil, person)
}

func (s *story) clusterQueue(name, cohort, cpu string, borrowing *string) {
	r := kueue.ResourceQuota{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse(cpu)}
	if borrowing != nil {
		q := resource.MustParse(*borrowing)
		r.BorrowingLimit = &q
	}
	o := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ClusterQueueSpec{CohortName: cohort, ResourceGroups: []kueue.ResourceGroup{
		{Flavors: []kueue.FlavorQuotas{{Name: "f", Resources: []kueue.ResourceQuota{r}}}}}}}
	s.request("create", "kueue.x-k8s.io", "clusterqueues", "", o, nil, person)
}

// wait makes a Workload that waits.
func (s *story) wait(name string) {
	o := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: name}}
	s.workloads[name] = o
	s.request("create", "kueue.x-k8s.io", "workloads", "", o, nil, person)
}

// workloadOfJob makes a Workload that waits, of a job with a UID.
func (s *story) workloadOfJob(name string, job types.UID) {
	is := true
	o := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: name}}
	o.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "j", UID: job, Controller: &is}}
	s.workloads[name] = o
	s.request("create", "kueue.x-k8s.io", "workloads", "", o, nil, person)
}

func (s *story) admit(name, queue, cpu string) {
	if s.workloads[name] == nil {
		s.wait(name)
	}
	count := int32(1)
	o := s.workloads[name]
	o.Status.Conditions = []metav1.Condition{{Type: kueue.QuotaReserved, Status: metav1.ConditionTrue}}
	o.Status.Admission = &kueue.Admission{ClusterQueue: queue, PodSetAssignments: []kueue.PodSetAssignment{
		{Name: "main", Count: &count, Flavors: map[corev1.ResourceName]string{corev1.ResourceCPU: "f"}, ResourceUsage: list(cpu)}}}
	s.request("patch", "kueue.x-k8s.io", "workloads", "status", o, nil, theScheduler)
}

// preempt evicts a Workload for another one, and has it give its quota back.
func (s *story) preempt(name, preemptor string) {
	o := s.workloads[name]
	o.Status.Conditions = append(o.Status.Conditions, metav1.Condition{Type: kueue.Evicted, Status: metav1.ConditionTrue, Reason: kueue.ReasonPreempted,
		Message: conditions.Preemption{UID: string(s.workloads[preemptor].UID), Reason: "prioritization in the ClusterQueue", Preemptor: "/q1", Preemptee: "/q1"}.String()})
	s.request("patch", "kueue.x-k8s.io", "workloads", "status", o, nil, theScheduler)
	o.Status.Conditions[0].Status, o.Status.Admission = metav1.ConditionFalse, nil
	s.request("patch", "kueue.x-k8s.io", "workloads", "status", o, nil, person)
}

// edit changes the spec of a Workload.
func (s *story) edit(name string, change func(*kueue.WorkloadSpec)) {
	o := s.workloads[name]
	change(&o.Spec)
	o.Generation++
	s.request("patch", "kueue.x-k8s.io", "workloads", "", o, nil, person)
}

// tell changes the status of a Workload.
func (s *story) tell(name string, change func(*kueue.WorkloadStatus)) {
	o := s.workloads[name]
	change(&o.Status)
	s.request("patch", "kueue.x-k8s.io", "workloads", "status", o, nil, person)
}

// report is what the log proves.
func (s *story) report() *audit.Report {
	s.t.Helper()
	a := audit.New(audit.Options{})
	if err := a.Read(&s.log); err != nil {
		s.t.Fatal(err)
	}
	return a.End()
}

// expect checks which rules are broken, each with the objects that it names first, by the log and by watches.
func (s *story) expect(want ...string) {
	s.t.Helper()
	s.expectWatched(want)
	r := s.report()
	var got []string
	for i := range r.Violations {
		got = append(got, r.Violations[i].Rule+" "+r.Violations[i].Objects[0])
	}
	if !slices.Equal(got, want) {
		var said []string
		for i := range r.Violations {
			said = append(said, r.Violations[i].String())
		}
		s.t.Errorf("violations are %q, want %q:\n%s\nunknown: %v", got, want, strings.Join(said, "\n"), r.Unknown)
	}
	if r.Unreadable > 0 {
		s.t.Errorf("%d lines are unreadable: %s", r.Unreadable, r.Problem)
	}
}
