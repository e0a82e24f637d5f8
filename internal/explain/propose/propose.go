package propose

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

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
	// Kind is fewerPods, smallerRequests, anotherQueue, moreQuota or newNodes.
	Kind string `json:"kind"`
	// Message is a sentence with the numbers.
	Message string `json:"message"`
	// Starts says that the placing code found nodes for all pods under the change. For moreQuota it is false: it is
	// needed, and may not be enough. For newNodes it is false, too: there are no such nodes yet on which pods could be
	// placed.
	Starts bool `json:"starts"`
	// Nodes are some of the nodes that it would use.
	Nodes []string `json:"nodes,omitempty"`
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
	// IsRefused says that nodes refuse it, IsImpossible that it cannot start as things are, IsTooLarge that no node is
	// large enough for a pod.
	IsRefused, IsImpossible, IsTooLarge bool
	// Suppose calls a function as if another job had been submitted, in a session of its own.
	Suppose func(group *schedulingv1beta1.PodGroup, pods []*corev1.Pod, look func(s *framework.Session, j *cluster.Job)) error
}

// For looks for changes with which a job would start, or says why it does not look.
func For(j Job) ([]Proposal, string) {
	var pending []*cluster.Task
	for _, t := range j.Tasks() {
		if t.Status == cluster.Pending {
			pending = append(pending, t)
		}
	}
	switch {
	case len(pending) == 0:
		return nil, "no pod of it waits for a node yet"
	case len(pending) > maxPods:
		return nil, fmt.Sprintf("the job has more than %d waiting pods", maxPods)
	case len(pending) < len(j.Tasks()):
		return nil, "some of its pods have started already"
	case j.IsOfWorkload():
		return nil, "what a Workload might request is decided by its ClusterQueue"
	case len(j.Subgroups()) > 0 || j.Proximity != nil:
		return nil, "its pods must be close to each other, for which no changes are tried"
	}
	slices.SortFunc(pending, cluster.CompareTasks)
	p := proposer{job: j, pending: pending}
	p.fewerPods()
	p.smallerRequests()
	p.anotherQueue()
	p.moreQuota()
	p.newNodes()
	return p.found, ""
}

type proposer struct {
	job     Job
	pending []*cluster.Task
	found   []Proposal
}

// variant returns the job as it is, under other names.
func (p *proposer) variant() variant {
	group := p.job.Group.DeepCopy()
	group.Name = "supposed-" + group.Name
	group.OwnerReferences = nil
	v := variant{group: group}
	for _, t := range p.pending {
		pod := t.Pod.Object().DeepCopy()
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
		if j.Queue != p.job.Queue && s.HeldUp(j) != nil {
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
	if p.job.MinMember < 2 || p.job.IsImpossible || !p.job.IsRefused {
		return
	}
	try := func(pods int) ([]string, bool) {
		v := p.variant()
		v.group.Spec.MinMember, v.group.Spec.MinTaskMember, v.pods = int32(pods), nil, v.pods[:min(len(v.pods), pods)]
		return p.starts(v)
	}
	low, best := 0, []string(nil)
	high := p.job.MinMember // does not start
	if placed := p.placed(); placed > 0 && placed < high {
		if nodes, ok := try(placed); ok {
			low, best = placed, nodes
		} else {
			high = placed
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

func (p *proposer) placed() int {
	if v := p.job.Verdict; v != nil {
		return v.Placed
	}
	return 0
}

// smallerRequests tries requests that are as large as what is free on the best node, of each resource that is short.
func (p *proposer) smallerRequests() {
	if len(p.pending) == 0 || !p.lacksRoom() {
		return
	}
	task := p.pending[0]
	for _, t := range p.pending {
		if t.Key().String() == p.job.Pod {
			task = t
		}
	}
	// First half of what is requested, then towards what would just fit.
	var short []resources.Dim
	for d, need := range task.Request() {
		if name := p.job.Cluster.Resources.Name(resources.Dim(d)); need > 0 && p.isShort(string(name)) {
			short = append(short, resources.Dim(d))
		}
	}
	if len(short) == 0 {
		return
	}
	const steps = 10 // tenths of the request
	low, best := 0, []string(nil)
	high := steps
	for high-low > 1 {
		middle := (low + high) / 2
		if nodes, ok := p.starts(p.scaled(task, short, middle, steps)); ok {
			low, best = middle, nodes
		} else {
			high = middle
		}
	}
	if low == 0 {
		return
	}
	message := "would start now if its pods requested less:"
	for i, d := range short {
		name := p.job.Cluster.Resources.Name(d)
		if i > 0 {
			message += ","
		}
		message += fmt.Sprintf(" %s %s instead of %s", name, resources.Format(name, scale(name, task.Request().At(d), low, steps)), resources.Format(name, task.Request().At(d)))
	}
	p.found = append(p.found, Proposal{Kind: "smallerRequests", Starts: true, Nodes: best, Message: message})
}

func (p *proposer) lacksRoom() bool {
	return p.job.IsTooLarge || p.job.Verdict != nil && p.job.Verdict.Code.LacksRoom() && len(p.job.Short) > 0
}

func (p *proposer) isShort(resource string) bool {
	return slices.Contains(p.job.Short, resource)
}

// scale returns a part of an amount, in whole devices if it is one of those.
func scale(name corev1.ResourceName, amount int64, part, of int) int64 {
	scaled := amount / int64(of) * int64(part)
	if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
		scaled = amount * int64(part) / int64(of)
	}
	return max(scaled, 1)
}

// scaled is the job with smaller requests in all pods that request as much as a task.
func (p *proposer) scaled(like *cluster.Task, short []resources.Dim, part, of int) variant {
	v := p.variant()
	index := p.job.Cluster.Resources
	for i, pod := range v.pods {
		request := p.pending[i].Request()
		for c := range pod.Spec.Containers {
			container := &pod.Spec.Containers[c]
			for _, d := range short {
				name := index.Name(d)
				for _, list := range []corev1.ResourceList{container.Resources.Requests, container.Resources.Limits} {
					amount, ok := list[name]
					if !ok || request.At(d) < like.Request().At(d) {
						continue
					}
					if name == corev1.ResourceCPU {
						list[name] = *resource.NewMilliQuantity(scale(name, amount.MilliValue(), part, of), amount.Format)
					} else {
						list[name] = *resource.NewQuantity(scale(name, amount.Value(), part, of), amount.Format)
					}
				}
			}
		}
	}
	v.group.Spec.MinResources = nil
	return v
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
	for q := j.Queue; q != nil; q = q.Parent {
		message := ""
		for d := range j.Usage.Request {
			may, limited := q.Capability.At(resources.Dim(d))
			need := q.Subtree.Allocated.At(resources.Dim(d)) + j.Usage.Request.At(resources.Dim(d)) - j.Usage.Allocated.At(resources.Dim(d))
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
