package propose

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"hekla.sh/hekla/internal/explain/expected"
	"hekla.sh/hekla/internal/gang"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Proposal is a change with which a job would start now, without evictions.
type Proposal struct {
	// Kind is fewerPods, smallerRequests, tolerations, anotherQueue, moreQuota or newNodes.
	Kind string `json:"kind"`
	// Message is a sentence with the numbers.
	Message string `json:"message"`
	// Starts says that the placing code found nodes for all pods under the change. For moreQuota it is false: it is
	// needed, and may not be enough. For newNodes it is false, too: there are no such nodes yet on which pods could be
	// placed.
	Starts bool `json:"starts"`
	// Nodes are some of the nodes that it would use.
	Nodes []string `json:"nodes,omitempty"`
	// Assumes says what is taken for granted, "" if nothing is.
	Assumes string `json:"assumes,omitempty"`
}

// The limits of a search for proposals: it costs a trial for each.
const (
	maxQueues   = 8
	maxFewer    = 4 // numbers of pods that are tried
	maxExamples = 3
	maxPods     = 200 // of a job for which proposals are looked for
)

// variant is a job as it might have been submitted.
type variant struct {
	group *schedulingv1beta1.PodGroup
	pods  []*corev1.Pod
}

// Job is a job for which changes are looked for.
type Job struct {
	*cluster.Job
	Cluster *model.Cluster
	Engine  framework.Outlook // finds nodes as they will be after evictions
	// Code is why the job waits, Pod the pod that is stopped, Short the resources of which it lacks some.
	Code, Pod string
	Short     []string
	// Tainted are nodes that refuse pods of it for a taint.
	Tainted []string
	// IsRefused says that nodes refuse it, IsImpossible that it cannot start as things are, IsTooLarge that no node is
	// large enough for a pod.
	IsRefused, IsImpossible, IsTooLarge bool
	// Suppose calls a function as if another job had been submitted, in a session of its own.
	Suppose func(group *schedulingv1beta1.PodGroup, pods []*corev1.Pod, look func(s *framework.Session, j *cluster.Job)) error
}

// For looks for changes with which a job would start, or says why it does not look.
func For(j Job) ([]Proposal, string) {
	pending := pendingOf(j)
	assumes := ""
	if expected.AreExpected(j.Job) {
		pending = append(pending, expectedOf(j)...)
		assumes = "its pods, which do not exist yet, request equal parts of its minResources"
		if len(j.Tasks()) > 0 {
			assumes = "those of its pods that do not exist yet request equal parts of its minResources"
		}
	}
	switch {
	case len(pending) > maxPods:
		return nil, fmt.Sprintf("the job has more than %d waiting pods", maxPods)
	case len(pending) == 0:
		return nil, "no pod of it waits for a node yet"
	case len(pending) < len(j.Tasks()):
		return nil, "some of its pods have started already"
	case j.IsOfWorkload():
		return nil, "what a Workload might request is decided by its ClusterQueue"
	case len(j.Subgroups()) > 0 || j.Proximity != nil:
		return nil, "its pods must be close to each other, for which no changes are tried"
	}
	p := proposer{job: j, pending: pending}
	p.placed = p.placedNow()
	p.fewerPods()
	p.smallerRequests()
	p.tolerations()
	p.anotherQueue()
	p.moreQuota()
	p.newNodes()
	for i := range p.found {
		p.found[i].Assumes = assumes
	}
	return p.found, ""
}

// pod is one that waits, or is expected.
type pod struct {
	object  *corev1.Pod
	request resources.Vector
	task    *cluster.Task // nil if it does not exist
}

// pendingOf are the pods of a job that wait for nodes.
func pendingOf(j Job) (pending []pod) {
	var tasks []*cluster.Task
	for _, t := range j.Tasks() {
		if t.Status == cluster.Pending {
			tasks = append(tasks, t)
		}
	}
	slices.SortFunc(tasks, cluster.CompareTasks)
	for _, t := range tasks {
		p := pod{request: t.Request(), task: t}
		if len(tasks) <= maxPods {
			p.object = t.Pod.Object()
		}
		pending = append(pending, p)
	}
	return pending
}

// expectedOf are the pods that a job will have once it is admitted.
func expectedOf(j Job) (pending []pod) {
	for _, object := range expected.Pods(j.Job, maxPods) {
		request := j.Cluster.Resources.Vector(object.Spec.Containers[0].Resources.Requests)
		request.Add(j.Cluster.Resources.Vector(corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)}))
		pending = append(pending, pod{object: object, request: request})
	}
	return pending
}

type proposer struct {
	job     Job
	pending []pod
	placed  int // how many of them had a place
	found   []Proposal
}

// placedNow is how many of the pods have a place, as the last attempt found. No attempt has looked at the pods of a job
// that is not admitted.
func (p *proposer) placedNow() (placed int) {
	if !p.job.IsPendingAdmission() {
		if v := p.job.Verdict; v != nil {
			placed = v.Placed
		}
		return placed
	}
	v := p.variant()
	_ = p.job.Suppose(v.group, v.pods, func(s *framework.Session, j *cluster.Job) {
		if j.Queue == nil || s.Validate(j) != nil {
			return
		}
		tasks := s.Pending(j)
		if refused := gang.Place(s, j, tasks); refused != nil {
			placed = refused.Placed
		} else {
			placed = len(tasks)
		}
	})
	return placed
}

// variant returns the job as it is, under other names.
func (p *proposer) variant() variant {
	group := p.job.Group.DeepCopy()
	group.Name = "supposed-" + group.Name
	group.OwnerReferences = nil
	v := variant{group: group}
	for i := range p.pending {
		pod := p.pending[i].object.DeepCopy()
		pod.Name, pod.Status.NominatedNodeName = "supposed-"+pod.Name, ""
		v.pods = append(v.pods, pod)
	}
	return v
}

// starts reports whether a variant would be placed now on free nodes, and on which.
func (p *proposer) starts(v variant) (nodes []string, ok bool) {
	err := p.job.Suppose(v.group, v.pods, func(s *framework.Session, j *cluster.Job) {
		if j.Queue == nil || s.Validate(j) != nil || s.Overused(j.Queue) != nil {
			return
		}
		if (j.Queue != p.job.Queue || p.job.IsPendingAdmission()) && s.HeldUp(j) != nil {
			return
		}
		tasks := s.Pending(j)
		if gang.Place(s, j, tasks) != nil {
			return
		}
		ok = true
		for _, t := range tasks {
			if t.Node != nil && !slices.Contains(nodes, t.Node.Name) && len(nodes) < maxExamples {
				nodes = append(nodes, t.Node.Name)
			}
		}
	})
	return nodes, ok && err == nil
}

// fewerPods looks for the largest smaller gang that would start.
func (p *proposer) fewerPods() {
	if p.job.MinMember < 2 || p.job.IsImpossible || !p.job.IsRefused && !p.job.IsPendingAdmission() {
		return
	}
	try := func(pods int) ([]string, bool) {
		v := p.variant()
		v.group.Spec.MinMember, v.group.Spec.MinTaskMember, v.pods = int32(pods), nil, v.pods[:min(len(v.pods), pods)]
		if p.job.IsPendingAdmission() {
			var sum resources.Vector
			for _, one := range p.pending[:len(v.pods)] {
				sum.Add(one.request)
			}
			least := p.job.Cluster.Resources.List(sum)
			v.group.Spec.MinResources = &least
		}
		return p.starts(v)
	}
	low, best := 0, []string(nil)
	high := p.job.MinMember // does not start
	if p.placed > 0 && p.placed < high {
		if nodes, ok := try(p.placed); ok {
			low, best = p.placed, nodes
		} else {
			high = p.placed
		}
	}
	for tries := 1; tries < maxFewer && high-low > 1; tries++ {
		middle := (low + high) / 2
		if nodes, ok := try(middle); ok {
			low, best = middle, nodes
		} else {
			high = middle
		}
	}
	if low > 0 {
		first := "pod"
		if low > 1 {
			first = fmt.Sprintf("%d pods", low)
		}
		p.found = append(p.found, Proposal{Kind: "fewerPods", Starts: true, Nodes: best,
			Message: fmt.Sprintf("with minAvailable %d instead of %d its first %s would start now", low, p.job.MinMember, first)})
	}
}

// anotherQueue looks for queues in which the job would start.
func (p *proposer) anotherQueue() {
	if p.job.IsTooLarge || p.job.Code == string(verdict.SchedulingGated) || p.job.Code == string(verdict.NotEnoughTasks) {
		return
	}
	tried := 0
	for _, q := range p.job.Cluster.Queues() {
		if q == p.job.Queue || q.Object == nil || len(q.Children) > 0 || !q.Open() || q.Problem != "" || tried == maxQueues {
			continue
		}
		tried++
		v := p.variant()
		v.group.Spec.Queue = q.Name
		if nodes, ok := p.starts(v); ok {
			p.found = append(p.found, Proposal{Kind: "anotherQueue", Starts: true, Nodes: nodes, Message: "in queue " + q.Name + " it would start now"})
			return
		}
	}
}

// moreQuota says by how much the queue's limit would have to grow, and whether nodes have room then.
func (p *proposer) moreQuota() {
	if code := verdict.Code(p.job.Code); code != verdict.OverCapability && code != verdict.TooLargeForQueue {
		return
	}
	j := p.job
	v := p.variant()
	isRoom := false
	err := j.Suppose(v.group, v.pods, func(s *framework.Session, supposed *cluster.Job) {
		isRoom = true
		for _, t := range s.Pending(supposed) {
			if n := s.Placer.Best(t); n == nil {
				isRoom = false
				return
			}
		}
	})
	if err != nil {
		return
	}
	var sum resources.Vector
	for i := range p.pending {
		sum.Add(p.pending[i].request)
	}
	for q := j.Queue; q != nil; q = q.Parent {
		message := ""
		for d := range sum {
			may, limited := q.Capability.At(resources.Dim(d))
			need := q.Subtree.Allocated.At(resources.Dim(d)) + sum.At(resources.Dim(d))
			if name := p.job.Cluster.Resources.Name(resources.Dim(d)); limited && may != resources.Unlimited && need > may {
				message += fmt.Sprintf(" %s %s instead of %s;", name, resources.Format(name, need), resources.Format(name, may))
			}
		}
		if message == "" {
			continue
		}
		message = "queue " + q.Name + " needs the capability" + message
		if isRoom {
			message += " each of the pods has room on a node"
		} else {
			message += " nodes lack the room as well"
		}
		p.found = append(p.found, Proposal{Kind: "moreQuota", Starts: false, Message: message})
	}
}
