package cluster

import "maps"

// Belonging is what placement needs to know of the job and the queue of a pod, besides the pod itself. It is zero unless plugins have
// declared that they read something of them that is there ([Keys]), so that equal pods of many jobs and queues share a class.
type Belonging struct {
	// Queue is the queue of the pod, if it matters that the pod is in it or in one above.
	Queue string `json:",omitempty"`
	// Job and Role are the pod's, if it matters which they are.
	Job  JobID
	Role string `json:",omitempty"`
	// What is declared of the PodGroup and of the queue, nil if nothing of it is there.
	JobAnnotations, JobLabels     map[string]string `json:",omitempty"`
	QueueAnnotations, QueueLabels map[string]string `json:",omitempty"`
}

func (b *Belonging) equal(o *Belonging) bool {
	return b.Queue == o.Queue && b.Job == o.Job && b.Role == o.Role && maps.Equal(b.JobAnnotations, o.JobAnnotations) &&
		maps.Equal(b.JobLabels, o.JobLabels) && maps.Equal(b.QueueAnnotations, o.QueueAnnotations) && maps.Equal(b.QueueLabels, o.QueueLabels)
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
		b.JobAnnotations, b.JobLabels = pick(g.Annotations, c.keys.JobAnnotations), pick(g.Labels, c.keys.JobLabels)
		if c.keys.PerJob != nil && c.keys.PerJob(g) {
			b.Job = j.ID
		}
	}
	if q := j.Queue; q != nil && q.Object != nil {
		b.QueueAnnotations, b.QueueLabels = pick(q.Object.Annotations, c.keys.QueueAnnotations), pick(q.Object.Labels, c.keys.QueueLabels)
	}
	for q := j.Queue; q != nil && c.keys.PerQueue != nil; q = q.Parent {
		if q.Object != nil && c.keys.PerQueue(q.Object) {
			b.Queue = j.QueueName
			break
		}
	}
	if j.belonging.equal(&b) {
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
