package guarantees

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/resources"
)

// spark is an application with task groups: a driver, and executors that it creates later.
type spark struct {
	id, queue, group string
	executors        int // of the task group
	cpu              int // of each executor
	timeout          time.Duration
	isHard           bool
	made             int // executors
}

// standIn is a place that is held for a pod of a task group that does not exist yet.
type standIn struct {
	group, role, queue, node string
	cpu                      int
}

// addApplication adds the driver of an application.
func (s *story) addApplication() error {
	s.made++
	a := &spark{id: fmt.Sprintf("spark%d", s.made), queue: s.leaves[s.random.IntN(len(s.leaves))], executors: 1 + s.random.IntN(3), cpu: 1 + s.random.IntN(2),
		timeout: time.Duration(3+s.random.IntN(20)) * time.Second, isHard: s.random.IntN(3) == 0}
	a.group = "podgroup-app-" + a.id
	s.applications, s.all = append(s.applications, a), append(s.all, a)
	style := "Soft"
	if a.isHard {
		style = "Hard"
	}
	return s.addMember(a, a.id+"-driver", "driver", 1, func(pod *corev1.Pod) {
		pod.Annotations[yunikorn.TaskGroupsKey] = fmt.Sprintf(`[{"name": "driver", "minMember": 1, "minResource": {"cpu": "1"}},
			{"name": "executor", "minMember": %d, "minResource": {"cpu": "%d"}}]`, a.executors, a.cpu)
		pod.Annotations[yunikorn.GangParametersKey] = fmt.Sprintf("placeholderTimeoutInSeconds=%d gangSchedulingStyle=%s", int(a.timeout.Seconds()), style)
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "sparkoperator.k8s.io/v1beta2", Kind: "SparkApplication", Name: a.id, UID: types.UID(a.id), Controller: new(true)}}
	})
}

// addExecutor adds an executor to an application whose driver runs, sometimes a larger one than it has announced.
func (s *story) addExecutor() error {
	if len(s.applications) == 0 {
		return nil
	}
	a := s.applications[s.random.IntN(len(s.applications))]
	if !s.runs("work/" + a.id + "-driver") {
		return nil
	}
	a.made++
	cpu := a.cpu
	if s.random.IntN(6) == 0 {
		cpu++
	}
	return s.addMember(a, fmt.Sprintf("%s-e%d", a.id, a.made), "executor", cpu, func(*corev1.Pod) {})
}

func (s *story) addMember(a *spark, name, role string, cpu int, option func(*corev1.Pod)) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "work", CreationTimestamp: metav1.NewTime(s.led.Now()), Generation: 1,
		Labels: map[string]string{"spark-app-selector": a.id, "queue": a.queue}, Annotations: map[string]string{yunikorn.TaskGroupNameKey: role}}}
	option(pod)
	return s.addPod(pod, a.queue, cpu)
}

// addPod adds a waiting pod with one container.
func (s *story) addPod(pod *corev1.Pod, queue string, cpu int) error {
	pod.Spec.SchedulerName = "volcano"
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "i", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(cpu), resource.DecimalSI)}}}}
	pod.Status.Phase = corev1.PodPending
	s.queueOf["work/"+pod.Name], s.requests["work/"+pod.Name] = queue, map[string]int{"cpu": cpu}
	return s.led.Set(pod)
}

// endApplication ends all pods of an application.
func (s *story) endApplication() {
	if len(s.applications) == 0 {
		return
	}
	i := s.random.IntN(len(s.applications))
	id := s.applications[i].id
	s.applications = slices.Delete(s.applications, i, i+1)
	for _, o := range s.led.Objects() {
		if pod, ok := o.(*corev1.Pod); ok && pod.Labels["spark-app-selector"] == id {
			ended := pod.DeepCopy()
			ended.Status.Phase = corev1.PodSucceeded
			s.led.Delete(ended)
		}
	}
}

// standIns counts the places that are held for pods that do not exist yet; with those that pods of others have yet to
// leave, if they are wanted too.
func (s *story) standIns(statuses ...cluster.Status) map[standIn]int {
	held := map[standIn]int{}
	s.led.Scheduler().Cluster().EachJob(func(j *cluster.Job) {
		for _, status := range statuses {
			for _, t := range j.StandIns(status) {
				held[standIn{group: j.ID.Name, role: t.Role, queue: j.Queue.Name, node: t.Node.Name, cpu: int(t.Request().At(resources.CPU) / 1000)}]++
			}
		}
	})
	return held
}

// allPlaces are the places that are held or promised.
func (s *story) allPlaces() map[standIn]int { return s.standIns(cluster.Awaited, cluster.Pipelined) }

// placesNow are the places that are held or promised before a cycle. A scheduler that has just begun will find those on
// record.
func (s *story) placesNow() map[standIn]int {
	if !s.isCutOff {
		return s.allPlaces()
	}
	held := map[standIn]int{}
	for _, o := range s.led.Objects() {
		group, ok := o.(*schedulingv1beta1.PodGroup)
		if !ok || s.sparkOf(group.Name) == nil {
			continue
		}
		for role, nodes := range decision.StandInsOf(group).Nodes {
			for _, node := range nodes {
				cpu := 1
				if role == "executor" {
					cpu = s.sparkOf(group.Name).cpu
				}
				held[standIn{group: group.Name, role: role, queue: group.Spec.Queue, node: node, cpu: cpu}]++
			}
		}
	}
	return held
}

// bookPlaces adds places to what their queues and all above hold.
func (s *story) bookPlaces(held map[string]map[string]int, places map[standIn]int, sign int) {
	for of, count := range places {
		for q := of.queue; q != ""; q = s.parent[q] {
			if held[q] == nil {
				held[q] = map[string]int{}
			}
			held[q]["cpu"] += sign * count * of.cpu
		}
	}
}

// missing returns the places that are in one count, and not or fewer in another.
func missing(from, in map[standIn]int) map[standIn]int {
	less := map[standIn]int{}
	for of, count := range from {
		if count > in[of] {
			less[of] = count - in[of]
		}
	}
	return less
}

// of keeps the places of the PodGroups that a function chooses.
func of(places map[standIn]int, chooses func(group string) bool) map[standIn]int {
	places = maps.Clone(places)
	maps.DeleteFunc(places, func(at standIn, _ int) bool { return !chooses(at.group) })
	return places
}

// sparkOf returns the application of a PodGroup, nil if it has no task groups.
func (s *story) sparkOf(group string) *spark {
	for _, a := range s.all {
		if a.group == group {
			return a
		}
	}
	return nil
}

// gangs checks what a cycle does to applications with task groups (rule G13), by the places that are held after it.
func (j *judge) gangs(d *decision.Decisions, held map[standIn]int) error {
	for _, f := range d.Fails {
		pod := j.pods[f.UID]
		if pod == nil {
			return fmt.Errorf("G13: pod %s fails, and is not there", f.Pod)
		}
		a := j.sparkOf(pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey])
		if a == nil || !a.isHard {
			return fmt.Errorf("G13: pod %s fails, and its application does not say Hard", f.Pod)
		}
		since := j.firstOf(a.group)
		if record := decision.StandInsOf(j.groups[a.group]); record.Since != nil && record.Since.Time.Before(since) {
			since = record.Since.Time // its gang had its places, and the pods since then are others
		}
		if j.now.Before(since.Add(a.timeout)) {
			return fmt.Errorf("G13: pod %s fails before %s have passed since %s", f.Pod, a.timeout, since)
		}
	}
	for _, b := range d.Binds {
		a := j.sparkOf(b.Job.Name)
		if a == nil || j.hasRunning(a.group) {
			continue
		}
		if record := decision.StandInsOf(j.groups[a.group]); record.IsOver || record.Since != nil {
			continue // its gang had its places, and its driver comes again
		}
		have := map[string]int{}
		for at, count := range held {
			if at.group == a.group {
				have[at.role] += count
			}
		}
		for _, other := range d.Binds {
			if other.Job.Name == a.group {
				have[j.pods[other.UID].Annotations[yunikorn.TaskGroupNameKey]]++
			}
		}
		for role, need := range map[string]int{"driver": 1, "executor": a.executors} {
			if have[role] < need {
				return fmt.Errorf("G13: pod %s starts, and of task group %s %d of %d have a place", b.Pod, role, have[role], need)
			}
		}
	}
	return nil
}

// firstOf is when the first living pod of a PodGroup was created.
func (j *judge) firstOf(group string) (first time.Time) {
	for _, pod := range j.pods {
		if at := pod.CreationTimestamp.Time; pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] == group && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

func (j *judge) hasRunning(group string) bool {
	for _, pod := range j.pods {
		if pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] == group && pod.Spec.NodeName != "" {
			return true
		}
	}
	return false
}

// isWithinNodes checks that nodes hold no more than they have, with the places that are held (rule S5).
func (s *story) isWithinNodes() error {
	used := map[string]map[string]int{}
	add := func(node string, count int, requests map[string]int) {
		if used[node] == nil {
			used[node] = map[string]int{}
		}
		used[node]["pods"] += count
		for name, amount := range requests {
			used[node][name] += count * amount
		}
	}
	for at, count := range s.standIns(cluster.Awaited) {
		add(at.node, count, map[string]int{"cpu": at.cpu})
	}
	objects := s.led.Objects()
	for _, o := range objects {
		if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			add(pod.Spec.NodeName, 1, s.requests[nameOf(pod)])
		}
	}
	for _, o := range objects {
		if node, ok := o.(*corev1.Node); ok {
			for name, most := range roomOf(node) {
				if used[node.Name][name] > most {
					return fmt.Errorf("S5: node %s holds %s %d of %d", node.Name, name, used[node.Name][name], most)
				}
			}
		}
	}
	return nil
}
