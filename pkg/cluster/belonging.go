package cluster

import schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"

// Belonging is what placement needs to know of the job and the queue of a pod, besides the pod itself. It is zero unless one
// of them speaks of nodes, so that equal pods of many jobs and queues share a class.
type Belonging struct {
	// Queue is the queue of the pod, if it or a queue above it speaks of node groups.
	Queue string
	// Job and Role are the pod's, if the PodGroup says which of its roles belong together or keep apart. Affinity and
	// AntiAffinity are how it says so.
	Job                          JobID
	Role, Affinity, AntiAffinity string
}

// belonging returns what placement needs to know of the job and the queue of a task.
func (t *Task) belonging() Belonging {
	if t.Job == nil {
		return Belonging{}
	}
	b := t.Job.belonging
	if b.Job != (JobID{}) {
		b.Role = t.Role
	}
	return b
}

// belong brings up to date what the tasks of a job belong to, and with it the classes of those that have no node yet. While
// the tree is stale the queues above are not known; Settle comes back to every job then.
func (c *Cluster) belong(j *Job) {
	var b Belonging
	if g := j.Group; g != nil {
		affinity, anti := g.Annotations[schedulingv1beta1.TaskTopologyAffinityKey], g.Annotations[schedulingv1beta1.TaskTopologyAntiAffinityKey]
		if affinity != "" || anti != "" {
			b = Belonging{Job: j.ID, Affinity: affinity, AntiAffinity: anti}
		}
	}
	for q := j.Queue; q != nil; q = q.Parent {
		if q.speaksOfNodes() {
			b.Queue = j.QueueName
			break
		}
	}
	if j.belonging == b {
		return
	}
	j.belonging = b
	for _, t := range j.tasks {
		if t.Node != nil {
			c.changed(t.Node) // what is said of a node may rest on whose pods stand there
		}
		if t.Status == Pending || t.Status == Gated || t.Status.Assumed() {
			c.setClass(t, c.classOf(t))
		}
	}
}

// speaksOfNodes reports whether a queue says on which node groups its pods go, or how much of them it may use.
func (q *Queue) speaksOfNodes() bool {
	return q.Object != nil && (q.Object.Spec.Affinity != nil || q.Object.Annotations[schedulingv1beta1.NodeGroupResourceLimitsKey] != "")
}
