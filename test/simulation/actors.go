package simulation

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// moveKind is something that users and operators do.
type moveKind struct {
	rate int
	do   func(*driver, *rand.Rand) bool
}

func (m moveKind) weight() int { return m.rate }

// moveKinds are all moves.
var moveKinds = map[string]moveKind{
	"submit a Volcano Job":  {10, submitVolcanoJob},
	"submit a Job":          {10, submitJob},
	"submit a pod":          {3, submitPod},
	"submit twice":          {2, submitTwice},
	"delete a Job":          {3, deleteJob},
	"resume a Job":          {3, resumeOften},
	"suspend a Job":         {2, toggle(true)},
	"edit and revert":       {2, editAndRevert},
	"label late":            {2, labelLate},
	"change parallelism":    {2, changeParallelism},
	"delete a pod":          {3, deletePod},
	"cordon":                {2, cordon(true)},
	"uncordon":              {3, cordon(false)},
	"add a node":            {2, addNode},
	"change a quota":        {3, changeQuota},
	"change a weight":       {2, changeWeight},
	"delete a PodGroup":     {1, deletePodGroup},
	"delete a Workload":     {1, deleteWorkload},
	"submit a lot":          {1, submitMany},
	"submit a group":        {2, submitGroup},
	"command":               {2, command},
	"default LocalQueue":    {1, defaultLocalQueue},
	"apply definitions":     {1, applyDefinitions},
	"remove a definition":   {1, removeDefinition},
	"hold a queue":          {1, holdQueue},
	"change capability":     {1, changeCapability},
	"touch a node":          {1, touchNode},
	"submit a JobSet":       {2, submitJobSet},
	"foreign Workload":      {1, submitForeignWorkload},
	"cut at a preemption":   {2, cutAtPreemption},
	"contest a quota":       {3, contestQuota},
	"cut what is contested": {1, cutContested},
	"contest of nodes":      {4, contestNodes},
	"leave pods behind":     {2, leavePodsBehind},
	"submit replicas":       {3, submitReplicas},
	"scale replicas":        {3, scaleReplicas},
	"delete replicas":       {1, deleteReplicas},
	"budget":                {2, budget},
	"submit with a device":  {1, submitWith(withDevice)},
	"submit with a volume":  {1, submitWith(withVolume)},
	"add a namespace":       {1, addProject},
	"delete a namespace":    {1, deleteProject},
	"submit a JobFlow":      {2, submitJobFlow},
	"delete a JobFlow":      {1, deleteJobFlow},
	"submit a CronJob":      {2, submitCronJob},
	"change a CronJob":      {1, changeCronJob},
}

const (
	jobs          = "/apis/batch/v1/jobs"
	volcanoJobs   = "/apis/batch.volcano.sh/v1alpha1/jobs"
	pods          = "/api/v1/pods"
	nodes         = "/api/v1/nodes"
	podGroups     = "/apis/scheduling.volcano.sh/v1beta1/podgroups"
	queues        = "/apis/scheduling.volcano.sh/v1beta1/queues"
	workloads     = "/apis/kueue.x-k8s.io/v1beta2/workloads"
	clusterQueues = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
	localQueues   = "/apis/kueue.x-k8s.io/v1beta2/localqueues"
)

// tenants are the namespaces of users.
var tenants = []string{"a", "b"}

func some[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

// fate decides how pods of a template fare, in annotations.
func fate(random *rand.Rand) map[string]any {
	seconds := 1 + random.IntN(90)
	if random.IntN(5) == 0 {
		seconds += 200
	}
	a := map[string]any{runFor: fmt.Sprintf("%ds", seconds)}
	if random.IntN(4) > 0 {
		a["volcano.sh/preemptable"] = "true"
	}
	if random.IntN(6) == 0 {
		a[exitCode] = "1"
	}
	if random.IntN(6) == 0 {
		a[isSlow] = "true"
	}
	return a
}

func podSpec(random *rand.Rand, scheduler string) map[string]any {
	spec := map[string]any{
		"restartPolicy": "Never", "terminationGracePeriodSeconds": some(random, 0, 1, 5, 30),
		"containers": []any{map[string]any{"name": "main", "image": "busybox", "resources": map[string]any{
			"requests": map[string]any{"cpu": some(random, "500m", "1", "1", "2")},
		}}},
	}
	if random.IntN(4) == 0 { // the pod as a whole is limited, and the API server gives it the request
		containers := spec["containers"].([]any)
		requests := containers[0].(map[string]any)["resources"].(map[string]any)["requests"]
		containers[0].(map[string]any)["resources"] = map[string]any{}
		spec["resources"] = map[string]any{"limits": requests}
	}
	if scheduler != "" {
		spec["schedulerName"] = scheduler
	}
	if class := some(random, "", "", "high", "low"); class != "" {
		spec["priorityClassName"] = class
	}
	return spec
}

func (d *driver) name(kind string) string {
	d.names++
	return fmt.Sprintf("%s-%d", kind, d.names)
}

func submitVolcanoJob(d *driver, random *rand.Rand) bool {
	namespace := d.someNamespace(random)
	spec := volcanoJobSpec(random)
	d.lastSubmitted = submission{pathOf(volcanoJobs, namespace, ""), map[string]any{
		"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": map[string]any{"name": d.name("vj"), "namespace": namespace}, "spec": spec,
	}}
	return d.create("user", d.lastSubmitted.path, d.lastSubmitted.object)
}

// volcanoJobSpec is what a Volcano Job asks for: a gang of one or two tasks.
func volcanoJobSpec(random *rand.Rand) map[string]any {
	var tasks []any
	replicas := 0
	// Of a gang without such a policy the pods that wait are left to wait when others have failed, as in Volcano.
	followsFailures := random.IntN(2) == 0
	class := some(random, "", "high", "low")
	for i := range 1 + random.IntN(2) {
		n := 1 + random.IntN(3)
		replicas += n
		annotations := fate(random)
		if !followsFailures {
			delete(annotations, exitCode)
		}
		pod := podSpec(random, "")
		sometimes(random, pod)
		// The scheduler goes by the class of the job and the audit by that of its pods.
		if delete(pod, "priorityClassName"); class != "" {
			pod["priorityClassName"] = class
		}
		task := map[string]any{"name": fmt.Sprintf("t%d", i), "replicas": n, "template": map[string]any{
			"metadata": map[string]any{"annotations": annotations}, "spec": pod,
		}}
		if random.IntN(4) == 0 {
			task["policies"] = []any{map[string]any{"event": "TaskCompleted", "action": "CompleteJob"}}
		}
		tasks = append(tasks, task)
	}
	spec := map[string]any{
		"schedulerName": "volcano", "queue": some(random, "default", "q1", "q2"), "minAvailable": 1 + random.IntN(replicas), "tasks": tasks,
		"maxRetry": 2,
	}
	if followsFailures {
		spec["policies"] = []any{map[string]any{"event": "PodFailed", "action": some(random, "RestartJob", "TerminateJob")},
			map[string]any{"event": "PodEvicted", "action": some(random, "RestartJob", "RestartTask", "RestartPod", "TerminateJob")}}
	}
	if random.IntN(6) == 0 {
		spec["ttlSecondsAfterFinished"] = random.IntN(60)
	}
	if class != "" {
		spec["priorityClassName"] = class
	}
	return spec
}

func submitJob(d *driver, random *rand.Rand) bool {
	d.lastSubmitted = d.newJob(random)
	return d.create("user", d.lastSubmitted.path, d.lastSubmitted.object)
}

func (d *driver) newJob(random *rand.Rand) submission {
	namespace := d.someNamespace(random)
	parallelism := 1 + random.IntN(3)
	spec := map[string]any{
		"parallelism": parallelism, "completions": parallelism + random.IntN(4), "backoffLimit": random.IntN(4),
		"template": map[string]any{"metadata": map[string]any{"annotations": fate(random)}, "spec": podSpec(random, "volcano")},
	}
	if random.IntN(3) == 0 {
		spec["completionMode"] = "Indexed"
		// Of a Job with limits for its indexes the Job controller keeps a pod that has failed until it has made the
		// next one. In a namespace that is being deleted it cannot make one, and so the namespace is never emptied.
		if random.IntN(2) == 0 && slices.Contains(tenants, namespace) {
			delete(spec, "backoffLimit")
			spec["backoffLimitPerIndex"] = 1
			spec["maxFailedIndexes"] = 3
		}
	}
	if random.IntN(4) == 0 {
		spec["podReplacementPolicy"] = "Failed"
	}
	metadata := map[string]any{"name": d.name("job"), "namespace": namespace}
	if random.IntN(4) > 0 {
		metadata["labels"] = map[string]any{queueLabel: "lq"}
		spec["suspend"] = random.IntN(3) > 0
	}
	return submission{pathOf(jobs, namespace, ""), map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}}
}

func submitPod(d *driver, random *rand.Rand) bool {
	namespace := d.someNamespace(random)
	metadata := map[string]any{"name": d.name("pod"), "namespace": namespace, "annotations": fate(random)}
	spec := podSpec(random, "volcano")
	if random.IntN(2) == 0 {
		metadata["labels"] = map[string]any{queueLabel: "lq"}
	} else {
		sometimes(random, spec)
	}
	d.lastSubmitted = submission{pathOf(pods, namespace, ""), map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}}
	return d.create("user", d.lastSubmitted.path, d.lastSubmitted.object)
}

// submitWith submits a pod that has something more.
func submitWith(add func(map[string]any)) func(*driver, *rand.Rand) bool {
	return func(d *driver, random *rand.Rand) bool {
		namespace, spec := d.someNamespace(random), podSpec(random, "volcano")
		add(spec)
		return d.create("user", pathOf(pods, namespace, ""), map[string]any{"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": d.name("pod"), "namespace": namespace, "annotations": fate(random)}, "spec": spec})
	}
}

// submitTwice sends what was submitted last once more: it is there, or it was deleted and comes back under its name.
func submitTwice(d *driver, _ *rand.Rand) bool {
	return d.lastSubmitted.object != nil && d.create("user", d.lastSubmitted.path, d.lastSubmitted.object)
}

func (d *driver) someObject(random *rand.Rand, collections ...string) (*object, bool) {
	var all []*object
	for _, c := range collections {
		all = append(all, d.observer.all(c)...)
	}
	return pick(random, all)
}

func deleteJob(d *driver, random *rand.Rand) bool {
	o, ok := d.someObject(random, jobs, volcanoJobs)
	for range 3 { // one that has pods, mostly
		if active, _, _ := unstructured.NestedFieldNoCopy(fieldsOf(o), "status", "active"); active != nil {
			break
		}
		o, ok = d.someObject(random, jobs, volcanoJobs)
	}
	return ok && d.delete("user", o.path(), map[string]any{"propagationPolicy": some(random, "Background", "Foreground", "Orphan")})
}

func fieldsOf(o *object) map[string]any {
	if o == nil {
		return nil
	}
	return o.Object
}

func deletePod(d *driver, random *rand.Rand) bool {
	o, ok := d.someObject(random, pods)
	return ok && d.delete("user", o.path(), nil)
}

func deletePodGroup(d *driver, random *rand.Rand) bool {
	o, ok := d.someObject(random, podGroups)
	return ok && d.delete("user", o.path(), nil)
}

func deleteWorkload(d *driver, random *rand.Rand) bool {
	o, ok := d.someObject(random, workloads)
	return ok && d.delete("user", o.path(), nil)
}

func toggle(suspend bool) func(*driver, *rand.Rand) bool {
	return func(d *driver, random *rand.Rand) bool {
		o, ok := d.someObject(random, jobs)
		return ok && d.merge("user", o.path(), map[string]any{"spec": map[string]any{"suspend": suspend}})
	}
}

func editAndRevert(d *driver, random *rand.Rand) bool {
	o, ok := d.someObject(random, jobs, volcanoJobs, podGroups)
	if !ok {
		return false
	}
	const key = "simulation.hekla.sh/edit"
	if o.GetAnnotations()[key] != "" {
		return d.merge("user", o.path(), map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: nil}}})
	}
	return d.merge("user", o.path(), map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: "1"}}})
}

func labelLate(d *driver, random *rand.Rand) bool {
	o, ok := d.someObject(random, jobs)
	return ok && o.GetLabels()[queueLabel] == "" && !isChild(o) &&
		d.merge("user", o.path(), map[string]any{"metadata": map[string]any{"labels": map[string]any{queueLabel: "lq"}}})
}

func changeParallelism(d *driver, random *rand.Rand) bool {
	o, ok := d.someObject(random, jobs)
	return ok && d.merge("user", o.path(), map[string]any{"spec": map[string]any{"parallelism": 1 + random.IntN(4)}})
}

func cordon(unschedulable bool) func(*driver, *rand.Rand) bool {
	return func(d *driver, random *rand.Rand) bool {
		o, ok := d.someNode(random)
		return ok && d.merge("admin", o.path(), map[string]any{"spec": map[string]any{"unschedulable": unschedulable}})
	}
}

func addNode(d *driver, random *rand.Rand) bool {
	return len(d.observer.all(nodes)) < mostNodes && d.addNode(d.name("node"), some(random, 2, 4, 8))
}

// mostNodes is how many nodes there are at most as long as administrators add some.
const mostNodes = 6

// addNode makes a node that is ready.
func (d *driver) addNode(name string, cpus int) bool {
	amounts := map[string]any{"cpu": fmt.Sprint(cpus), "memory": "16Gi", "pods": "20"}
	return d.create("cloud", nodes, map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name, "labels": map[string]any{"kubernetes.io/hostname": name}},
		"spec":   map[string]any{},
		"status": map[string]any{"capacity": amounts, "allocatable": amounts, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}) && d.ask("kubelet", http.MethodPatch, nodes+"/"+name+"/status", mergeType, map[string]any{"status": map[string]any{
		"capacity": amounts, "allocatable": amounts, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}}).Code < 400 &&
		d.merge("cloud", nodes+"/"+name, map[string]any{"spec": map[string]any{"taints": nil}}) && d.addDevicesOf(name)
}

func (d *driver) addDevicesOf(name string) bool {
	d.look()
	return d.addDevices(d.observer.get(nodes, "", name))
}

func changeQuota(d *driver, random *rand.Rand) bool {
	o, ok := d.someObject(random, clusterQueues)
	return ok && d.setQuota(o.GetName(), 1+random.IntN(6))
}

func (d *driver) setQuota(name string, cpus int) bool {
	return d.merge("admin", clusterQueues+"/"+name, map[string]any{"spec": map[string]any{"resourceGroups": quota(cpus)}})
}

func quota(cpus int) []any {
	return []any{map[string]any{"coveredResources": []any{"cpu"}, "flavors": []any{map[string]any{
		"name": "default", "resources": []any{map[string]any{"name": "cpu", "nominalQuota": fmt.Sprint(cpus)}}}}}}
}

func changeWeight(d *driver, random *rand.Rand) bool {
	o, ok := d.someObject(random, queues)
	return ok && strings.HasPrefix(o.GetName(), "q") && d.merge("admin", o.path(), map[string]any{"spec": map[string]any{"weight": 1 + random.IntN(5)}})
}

// submitMany submits more than there is room for.
func submitMany(d *driver, random *rand.Rand) bool {
	for range 4 + random.IntN(6) {
		some(random, submitJob, submitVolcanoJob)(d, random)
	}
	return true
}

// command asks for something to be done with a Volcano Job or a Queue.
func command(d *driver, random *rand.Rand) bool {
	o, ok := d.someObject(random, volcanoJobs)
	return ok && d.create("user", pathOf("/apis/bus.volcano.sh/v1alpha1/commands", o.GetNamespace(), ""), map[string]any{
		"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": map[string]any{"name": d.name("command"), "namespace": o.GetNamespace()},
		"action": some(random, "AbortJob", "ResumeJob", "ResumeJob", "RestartJob"),
		"target": map[string]any{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": o.GetName(), "uid": string(o.GetUID()), "controller": true},
	})
}

// resumeOften sets suspend to false again and again, as a client that fights does, mostly of a Job that waits.
func resumeOften(d *driver, random *rand.Rand) bool {
	o, ok := d.someObject(random, jobs)
	if !ok {
		return false
	}
	for range 5 {
		if suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend"); suspended {
			break
		}
		o, _ = d.someObject(random, jobs)
	}
	isDone := false
	for range 1 + random.IntN(3) {
		isDone = d.merge("user", o.path(), map[string]any{"spec": map[string]any{"suspend": false}})
	}
	return isDone
}

// defaultLocalQueue makes a LocalQueue that serves Jobs without a label from now on, or deletes it.
func defaultLocalQueue(d *driver, random *rand.Rand) bool {
	namespace := some(random, tenants...)
	if d.observer.get(localQueues, namespace, "default") != nil {
		return d.delete("admin", pathOf(localQueues, namespace, "default"), nil)
	}
	return d.create("admin", pathOf(localQueues, namespace, ""), map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
		"metadata": map[string]any{"name": "default", "namespace": namespace}, "spec": map[string]any{"clusterQueue": "cq-" + namespace}})
}

// applyDefinitions applies a definition of the installer again.
func applyDefinitions(d *driver, random *rand.Rand) bool {
	definition, ok := pick(random, d.definitions)
	return ok && (d.disturbances.definition == nil || nameOf(definition) != nameOf(d.disturbances.definition)) &&
		d.apply("admin", definitions+"/"+nameOf(definition), definition)
}

// holdQueue stops a ClusterQueue, or lets it go on.
func holdQueue(d *driver, random *rand.Rand) bool {
	o, ok := d.someObject(random, clusterQueues)
	return ok && d.merge("admin", o.path(), map[string]any{"spec": map[string]any{"stopPolicy": some(random, "None", "None", "Hold", "HoldAndDrain")}})
}

func changeCapability(d *driver, random *rand.Rand) bool {
	return d.merge("admin", queues+"/q1", map[string]any{"spec": map[string]any{"capability": map[string]any{"cpu": fmt.Sprint(2 + random.IntN(6))}}})
}

// touchNode writes what a kubelet writes now and then.
func touchNode(d *driver, random *rand.Rand) bool {
	o, ok := d.someNode(random)
	return ok && d.merge("kubelet", o.path(), map[string]any{"metadata": map[string]any{"labels": map[string]any{"touched": fmt.Sprint(d.step)}}})
}
