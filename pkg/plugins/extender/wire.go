package extender

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
)

// amounts are resources in the form of Volcano's structure.
type amounts struct {
	MilliCPU        float64
	Memory          float64
	ScalarResources map[corev1.ResourceName]float64
	MaxTaskNum      int
}

type task struct {
	UID         types.UID
	Job         string
	Name        string
	Namespace   string
	TaskRole    string
	Resreq      amounts
	InitResreq  amounts
	NodeName    string
	Status      int
	Priority    int32
	Preemptable bool
	BestEffort  bool
	Pod         *corev1.Pod `json:",omitempty"`
}

type node struct {
	Name        string
	Node        *corev1.Node
	Releasing   amounts
	Pipelined   amounts
	Idle        amounts
	Used        amounts
	Allocatable amounts
	Tasks       map[types.UID]task `json:",omitempty"`
}

type job struct {
	UID               string
	PgUID             types.UID
	Name              string
	Namespace         string
	Queue             string
	Priority          int32
	MinAvailable      int
	Allocated         amounts
	TotalRequest      amounts
	CreationTimestamp metav1.Time
	Tasks             map[types.UID]task `json:",omitempty"`
	PodGroup          *schedulingv1beta1.PodGroup
}

type queue struct {
	UID    string
	Name   string
	Weight int64
	Queue  *schedulingv1beta1.Queue
}

// The questions.
type (
	aboutNode struct {
		Task task `json:"task"`
		Node node `json:"node"`
	}
	aboutVictims struct {
		Evictor  task   `json:"evictor"`
		Evictees []task `json:"evictees"`
	}
	aboutJob struct {
		Job job `json:"job"`
	}
	aboutQueue struct {
		Queue queue `json:"queue"`
	}
	aboutTask struct {
		Task task `json:"task"`
	}
	aboutSession struct {
		Jobs     map[string]job
		Nodes    map[string]node
		Queues   map[string]queue
		NodeList []string
	}
)

// The answers.
type (
	ofNode struct {
		Status       string `json:"status"`
		ErrorMessage string `json:"errorMessage"`
	}
	ofVictims struct {
		Status  int      `json:"status"`
		Victims []victim `json:"victims"`
	}
	victim struct{ UID types.UID }
	ofVote struct {
		Status int `json:"status"`
	}
	ofQueue struct {
		Overused bool `json:"overused"`
	}
	ofReady struct {
		Status bool `json:"status"`
	}
)

// statuses are Volcano's numbers for the states of a task.
var statuses = map[cluster.Status]int{cluster.Pending: 1, cluster.Gated: 1, cluster.Allocated: 2, cluster.Pipelined: 4,
	cluster.Binding: 8, cluster.Awaited: 8, cluster.Bound: 16, cluster.Running: 32, cluster.Evicting: 64, cluster.Releasing: 64,
	cluster.Lingering: 64, cluster.Succeeded: 128, cluster.Failed: 256, cluster.Unknown: 512}

func (p *plugin) amounts(v resources.Vector) amounts {
	a := amounts{MilliCPU: float64(v.At(resources.CPU)), Memory: float64(v.At(resources.Memory)), MaxTaskNum: int(v.At(resources.Pods))}
	for i, value := range v {
		if d := resources.Dim(i); value != 0 && d != resources.CPU && d != resources.Memory {
			if a.ScalarResources == nil {
				a.ScalarResources = map[corev1.ResourceName]float64{}
			}
			name, scaled := p.cluster.Resources.Name(d), float64(value)
			if d != resources.Pods {
				scaled *= 1000 // Volcano counts in thousandths
			}
			a.ScalarResources[name] = scaled
		}
	}
	return a
}

// task encodes a task without its pod.
func (p *plugin) task(t *cluster.Task) task {
	request := p.amounts(t.Request())
	mark, _ := t.Mark()
	w := task{UID: t.UID(), Name: t.Pod.Name, Namespace: t.Pod.Namespace, TaskRole: t.Role, Resreq: request, InitResreq: request,
		Status: statuses[t.Status], Priority: t.Priority, Preemptable: mark == "true", BestEffort: t.BestEffort()}
	if t.Job != nil {
		w.Job = t.Job.ID.String()
	}
	if t.Node != nil {
		w.NodeName = t.Node.Name
	}
	return w
}

func (p *plugin) taskAndPod(t *cluster.Task) task {
	w := p.task(t)
	w.Pod = t.Pod.Object()
	return w
}

// node encodes a node without the pods on it.
func (p *plugin) node(n *cluster.Node) node {
	idle := n.Allocatable.Clone()
	idle.Sub(n.Used)
	return node{Name: n.Name, Node: n.Object, Releasing: p.amounts(n.Releasing), Pipelined: p.amounts(n.Promised), Idle: p.amounts(idle),
		Used: p.amounts(n.Used), Allocatable: p.amounts(n.Allocatable)}
}

func (p *plugin) nodeAndTasks(n *cluster.Node) node {
	w := p.node(n)
	w.Tasks = map[types.UID]task{}
	for _, t := range n.Tasks() {
		// A node on which nothing is releasing, though a pod is, comes from the outlook.
		if !t.Status.Leaves() || !n.Releasing.IsZero() {
			w.Tasks[t.UID()] = p.task(t)
		}
	}
	return w
}

// job encodes a job without its tasks.
func (p *plugin) job(j *cluster.Job) job {
	return job{UID: j.ID.String(), PgUID: j.UID(), Name: j.ID.Text(), Namespace: j.ID.Namespace, Queue: j.QueueName, Priority: j.Priority,
		MinAvailable: j.MinMember, Allocated: p.amounts(j.Usage.Allocated), TotalRequest: p.amounts(j.Usage.Request),
		CreationTimestamp: metav1.NewTime(j.Created()), PodGroup: j.Group}
}

func (p *plugin) jobAndTasks(j *cluster.Job) job {
	w := p.job(j)
	w.Tasks = map[types.UID]task{}
	for _, t := range j.Tasks() {
		w.Tasks[t.UID()] = p.taskAndPod(t)
	}
	return w
}

func (p *plugin) queue(q *cluster.Queue) queue {
	return queue{UID: q.Name, Name: q.Name, Weight: q.Weight, Queue: q.Object}
}
