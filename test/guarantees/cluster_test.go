package guarantees

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// randomCluster is a cluster as manifests, with what the checks need of it.
type randomCluster struct {
	documents  []string
	parent     map[string]string         // of each queue
	guaranteed map[string]map[string]int // by queue and resource
	queueOf    map[string]string         // by pod
	requests   map[string]map[string]int // by pod and resource
}

var birth = time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)

// draw returns a cluster of at most twelve queues and forty pods. With delays, pods that wait are a few seconds old.
func draw(seed uint64) *randomCluster {
	r := rand.New(rand.NewPCG(seed, 7))
	c := &randomCluster{parent: map[string]string{}, guaranteed: map[string]map[string]int{}, queueOf: map[string]string{}, requests: map[string]map[string]int{}}
	c.add(`apiVersion: v1
kind: ConfigMap
metadata: {name: volcano-scheduler-configmap, namespace: volcano-system, uid: config, creationTimestamp: "%s"}
data:
  volcano-scheduler.conf: |
    actions: "enqueue, allocate, reclaim, backfill"
    tiers:
    - plugins:
      - name: priority
      - name: gang
      - name: predicates
      - name: guaranteed-shares
      - name: nodeorder
`, stamp(0))
	for _, p := range []int{0, 10} {
		c.add("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: p%d, uid: p%d, creationTimestamp: %q%s}\nvalue: %d\n", p, p, stamp(0), optOut(r), p)
	}
	leaves := c.addQueues(r)
	nodes := 1 + r.IntN(4)
	free := make([]int, nodes)
	for i := range nodes {
		free[i] = 4 + r.IntN(8)
		c.add("apiVersion: v1\nkind: Node\nmetadata: {name: n%d, uid: n%d, creationTimestamp: %q, labels: {kubernetes.io/hostname: n%d}}\nstatus:\n"+
			"  allocatable: {cpu: \"%d\", memory: 64Gi, pods: \"20\"}\n  conditions: [{type: Ready, status: \"True\"}]\n", i, i, stamp(0), i, free[i])
	}
	for i := range 3 + r.IntN(24) {
		c.addRunning(r, i, leaves[r.IntN(len(leaves))], free)
	}
	for i := range 1 + r.IntN(8) {
		c.addWaiting(r, i, leaves[r.IntN(len(leaves))])
	}
	return c
}

func optOut(r *rand.Rand) string {
	if r.IntN(4) == 0 {
		return `, annotations: {yunikorn.apache.org/allow-preemption: "false"}`
	}
	return ""
}

func stamp(seconds int) string {
	return birth.Add(time.Duration(seconds) * time.Second).Format(time.RFC3339)
}

func (c *randomCluster) add(format string, values ...any) {
	c.documents = append(c.documents, fmt.Sprintf(format, values...))
}

// addQueues adds a tree of queues and returns its leaves.
func (c *randomCluster) addQueues(r *rand.Rand) (leaves []string) {
	names := []string{"root"}
	hasChild := map[string]bool{}
	for i := range 2 + r.IntN(11) {
		name, parent := fmt.Sprintf("q%d", i), names[r.IntN(len(names))]
		names, hasChild[parent], c.parent[name] = append(names, name), true, parent
		c.guaranteed[name] = map[string]int{}
		guarantee, ceiling := "", ""
		if r.IntN(3) > 0 {
			c.guaranteed[name]["cpu"] = r.IntN(9)
			guarantee = fmt.Sprintf("cpu: %q", fmt.Sprint(c.guaranteed[name]["cpu"]))
		}
		if r.IntN(4) == 0 {
			c.guaranteed[name]["memory"] = r.IntN(9)
			guarantee = strings.TrimPrefix(guarantee+fmt.Sprintf(", memory: %dGi", c.guaranteed[name]["memory"]), ", ")
		}
		if r.IntN(4) == 0 {
			ceiling = fmt.Sprintf("\n  capability: {cpu: %q}", fmt.Sprint(4+r.IntN(12)))
		}
		c.add("apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s, uid: %s, creationTimestamp: %q, annotations: {%s}}\nspec:\n"+
			"  weight: 1\n  parent: %s\n  guarantee: {resource: {%s}}%s\nstatus: {state: Open}\n", name, name, stamp(i), policies(r), parent, guarantee, ceiling)
	}
	for _, name := range names[1:] {
		if !hasChild[name] {
			leaves = append(leaves, name)
		}
	}
	return leaves
}

// policies are some annotations of a queue.
func policies(r *rand.Rand) string {
	var some []string
	for _, choice := range []struct {
		key    string
		values []string
	}{{"preemption.policy", []string{"fence", "disabled", "default"}}, {"priority.policy", []string{"fence"}},
		{"priority.offset", []string{"-5", "5"}}, {"preemption.delay", []string{"3s", "8s"}}} {
		if value := choice.values[r.IntN(len(choice.values))]; r.IntN(5) == 0 {
			some = append(some, fmt.Sprintf("hekla.sh/%s: %q", choice.key, value))
		}
	}
	return strings.Join(some, ", ")
}

// addRunning adds a job of one pod that runs, if a node has room for it.
func (c *randomCluster) addRunning(r *rand.Rand, i int, queue string, free []int) {
	cpu, memory, node := 1+r.IntN(3), r.IntN(4), r.IntN(len(free))
	if free[node] < cpu {
		return
	}
	free[node] -= cpu
	name := fmt.Sprintf("r%d", i)
	c.addGroup(name, queue, 1, 100+i, "Running", r.IntN(2)*10)
	c.addPod(name, name, queue, cpu, memory, 100+r.IntN(20), fmt.Sprintf("n%d", node), r)
}

// addWaiting adds a job of a few pods that wait.
func (c *randomCluster) addWaiting(r *rand.Rand, i int, queue string) {
	name, pods := fmt.Sprintf("w%d", i), 1+r.IntN(3)
	c.addGroup(name, queue, 1+r.IntN(pods), 21600, "Inqueue", r.IntN(2)*10)
	cpu, memory := 1+r.IntN(3), r.IntN(4)
	for k := range pods {
		c.addPod(fmt.Sprintf("%s-%d", name, k), name, queue, cpu, memory, 21600+k, "", r)
	}
}

func (c *randomCluster) addGroup(name, queue string, minimum, created int, phase string, priority int) {
	c.add("apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: %s, namespace: work, uid: g-%s, creationTimestamp: %q}\n"+
		"spec: {minMember: %d, queue: %s, priorityClassName: p%d}\nstatus: {phase: %s}\n", name, name, stamp(created), minimum, queue, priority, phase)
}

// addPod adds a pod that a controller makes again when it is evicted.
func (c *randomCluster) addPod(name, group, queue string, cpu, memory, created int, node string, r *rand.Rand) {
	c.queueOf["work/"+name], c.requests["work/"+name] = queue, map[string]int{"cpu": cpu, "memory": memory}
	where, status, label := "", "{phase: Pending}", ""
	if node != "" {
		where = "  nodeName: " + node + "\n"
		status = fmt.Sprintf("{phase: Running, startTime: %q}", stamp(created+1))
	}
	if r.IntN(4) == 0 {
		label = fmt.Sprintf("applicationId: app%d", r.IntN(3))
	}
	requests := fmt.Sprintf("cpu: %q", fmt.Sprint(cpu))
	if memory > 0 {
		requests += fmt.Sprintf(", memory: %dGi", memory)
	}
	c.add("apiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\n  namespace: work\n  uid: u-%s\n  creationTimestamp: %q\n  labels: {%s}\n"+
		"  annotations: {scheduling.k8s.io/group-name: %s}\n  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: %s, uid: o-%s, controller: true}]\n"+
		"spec:\n  schedulerName: volcano\n%s  terminationGracePeriodSeconds: 30\n  containers: [{name: main, image: i, resources: {requests: {%s}}}]\nstatus: %s\n",
		name, name, stamp(created), label, group, group, group, where, requests, status)
}
