package cluster

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// trial is what a trial restores beside what the undo log does.
type trial struct {
	world                               wake.Counts
	planned                             uint64
	classesAreStale                     bool
	waiting, touchedJobs, touchedQueues int
	generations                         map[*Node]uint64 // of nodes that were changed, as they were before
	isOutdated                          bool             // plugins say other things of nodes
	forgotten                           Forgotten
}

// Try runs a function that may try on the model whatever is logged, and leaves the model as it was: what was tried is undone; causes
// that were noted wake no job; jobs and queues do not count as changed; nodes have the generations that they had, so that code that
// did not look meanwhile keeps what it knows of them. What was found out meanwhile is void. It is for questions between cycles.
func (c *Cluster) Try(try func()) {
	invariant(len(c.log) == 0 && c.trial == nil, "a trial begins inside a transaction, or another trial")
	if c.isStale() {
		c.Settle()
	}
	c.trial = &trial{world: c.world.Counts, planned: c.plans.made, classesAreStale: c.classes.IsStale, waiting: len(c.waiting),
		touchedJobs: len(c.touchedJobs), touchedQueues: c.quota.Touched(), generations: map[*Node]uint64{}, forgotten: c.forgotten}
	c.changes.BeginTrial()
	defer c.endTrial()
	try()
}

// isStale reports whether Settle has anything to bring up to date beside the list of jobs that wait.
func (c *Cluster) isStale() bool {
	return c.ranksAreStale || c.quota.IsStale() || c.classes.IsStale || len(c.questioned)+len(c.requoted) > 0 || !c.topology.IsSettled()
}

func (c *Cluster) endTrial() {
	c.Undo(0)
	t := c.trial
	c.trial = nil
	c.world.Counts, c.plans.made, c.classes.IsStale, c.questioned = t.world, t.planned, t.classesAreStale, nil
	for _, j := range c.waiting[t.waiting:] {
		j.waiting = false
	}
	c.waiting = c.waiting[:t.waiting]
	for _, j := range c.touchedJobs[t.touchedJobs:] {
		j.touched = false
	}
	c.touchedJobs = c.touchedJobs[:t.touchedJobs]
	c.quota.Untouch(t.touchedQueues)
	c.forgotten = t.forgotten // what is only supposed has never been
	for n, generation := range t.generations {
		n.Generation = generation
	}
	c.changes.EndTrial(!t.isOutdated)
}

// Suppose is Try with a PodGroup and pods of it that do not exist, as if they had just been submitted. They are taken into the model
// as events would be, and are gone when the function returns. The function is given their job. The objects are not changed; what
// the API server would fill in is for the caller. It is an error, and the function is not called, if one of them exists or they
// are not what they should be.
//
// Pods that wait already keep their classes: if the supposed pods are the first with terms about labels, what others say of those
// labels is not looked at.
func (c *Cluster) Suppose(group *schedulingv1beta1.PodGroup, pods []*corev1.Pod, look func(j *Job)) error {
	supposed, err := c.supposable(group, pods)
	if err != nil {
		return err
	}
	c.Try(func() {
		set := 0
		defer func() {
			c.Undo(0)
			for _, o := range slices.Backward(supposed[:set]) {
				o.apply(c)
			}
		}()
		for i := range supposed {
			Set(supposed[i]).apply(c)
			set++
		}
		c.settleOwners()
		j := c.jobs[JobID{Namespace: group.Namespace, Name: group.Name}]
		for _, t := range j.tasks {
			if t.Status == Pending {
				c.setClass(t, c.classOf(t)) // the terms of its siblings are known now
			}
		}
		look(j)
	})
	return nil
}

// supposable checks what is to be supposed, and returns copies with what the model must know, in the order in which they come; how
// they go is the other way round.
func (c *Cluster) supposable(group *schedulingv1beta1.PodGroup, pods []*corev1.Pod) ([]Delete, error) {
	if group == nil || group.Name == "" || group.Namespace == "" {
		return nil, errors.New("the PodGroup has no name or no namespace")
	}
	id := JobID{Namespace: group.Namespace, Name: group.Name}
	switch j := c.jobs[id]; {
	case j != nil && j.Group != nil:
		return nil, fmt.Errorf("PodGroup %s exists already", id)
	case j != nil:
		return nil, fmt.Errorf("pods name PodGroup %s already", id)
	}
	group = group.DeepCopy()
	group.UID = types.UID("supposed " + id.String())
	supposed := []Delete{{group}}
	seen := map[string]bool{}
	for _, pod := range pods {
		key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
		_, isStranger := c.strangers[key]
		switch {
		case pod.Name == "":
			return nil, errors.New("a pod has no name")
		case pod.Namespace != group.Namespace:
			return nil, fmt.Errorf("pod %s is not in the namespace of PodGroup %s", key, id)
		case c.tasks[key] != nil || isStranger:
			return nil, fmt.Errorf("pod %s exists already", key)
		case seen[pod.Name]:
			return nil, fmt.Errorf("pod %s is there twice", key)
		case pod.Spec.NodeName != "":
			return nil, fmt.Errorf("pod %s has a node already: spec.nodeName is %q", key, pod.Spec.NodeName)
		case !c.isOurs(pod):
			return nil, fmt.Errorf("pod %s is not for this scheduler: spec.schedulerName is %q", key, pod.Spec.SchedulerName)
		}
		seen[pod.Name] = true
		pod = pod.DeepCopy()
		pod.UID = types.UID("supposed " + key.String())
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, schedulingv1beta1.KubeGroupNameAnnotationKey, group.Name)
		supposed = append(supposed, Delete{pod})
	}
	return supposed, nil
}
