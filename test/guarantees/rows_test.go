package guarantees

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// row is a cluster in a few words, and who leaves it. The decision was worked out by hand from the rules.
//
// Nodes, queues and pods are separated by semicolons. A node is a name and amounts, "n1 8" or "n1
// cpu:8,nvidia.com/gpu:2". A queue is a name, the parent after <, and properties: G=AMOUNTS guaranteed, M=AMOUNTS at
// most, kept (not reclaimable), and annotations by the last word of their key, such as policy=fence or offset=5;
// priority=fence is priority.policy. Pods are NAMES@NODE QUEUE AMOUNTS, each the older the earlier it stands, with
// P=PRIORITY (0 or 10), gang=NAME/MINIMUM, app=ID, out (has opted out), kept (marked preemptable: false), daemon=NODE.
// Pods without a node wait.
type row struct{ name, nodes, queues, pods, leave, start string }

var rows = []row{
	// G2 and G5: what the queue of a victim keeps.
	{"in the middle of its way a queue keeps its guarantee", "n1 8", "o1 G=4; l<o1; o2; m2<o2 G=6; a2<m2; b2<m2", "a@n1 a2 3; b,c@n1 b2 2; z@n1 b2 1; x l 2", "c", "x"},
	{"what no single pod may give two may not either", "n1 8", "o1 G=4; l<o1; o2; m2<o2 G=7; a2<m2; b2<m2", "a@n1 a2 3; b,c@n1 b2 2; z@n1 b2 1; x l 2", "", ""},
	{"two queues give down to their guarantees", "n1 8", "g1 G=2; g2 G=2; t G=4", "a1,a2,a3,a4@n1 g1 1; b1,b2,b3,b4@n1 g2 1; x t 4", "a3 a4 b3 b4", "x"},
	{"a device that is not asked for keeps its pod", "n1 cpu:4,nvidia.com/gpu:2", "g G=nvidia.com/gpu:2; t G=2", "a1,a2@n1 g cpu:2,nvidia.com/gpu:1; x t 2", "", ""},
	{"one device may go and two may not", "n1 cpu:4,nvidia.com/gpu:2", "g G=nvidia.com/gpu:1; t G=4", "a1,a2@n1 g cpu:2,nvidia.com/gpu:1; x t 2; w t 2", "a2", "x"},
	{"a pod that holds nothing of the ask stays", "n1 cpu:4,nvidia.com/gpu:2", "g; t G=nvidia.com/gpu:1", "a1,a2@n1 g cpu:1,nvidia.com/gpu:1; c@n1 g 1; x t cpu:1,nvidia.com/gpu:1", "a2", "x"},
	{"half a core is half a core", "n1 3", "q1 G=500m; q2 G=1500m", "a1,a2@n1 q1 1500m; x q2 1500m", "a2", "x"},

	// G4: who takes.
	{"the nearest queue that names a resource counts", "n1 10", "p G=10; l<p G=2; o", "l1@n1 l 2; o1,o2,o3,o4@n1 o 2; x l 1", "", ""},
	{"each resource counts at its own queue", "n1 10", "p G=4; l<p G=memory:1Gi; o", "o1,o2@n1 o cpu:5,memory:1Gi; x l cpu:1,memory:1Gi", "o2", "x"},
	{"one resource beyond its guarantee is enough to wait", "n1 10", "p G=4; l<p G=memory:1Gi; o", "o1,o2@n1 o cpu:5,memory:1Gi; x l cpu:1,memory:2Gi", "", ""},
	{"a sibling uses up the guarantee of the tenant", "n1 12", "o1 G=6; t<o1; l<t; s<t; o2; l2<o2", "s1@n1 s 4; b1,b2,b3,b4@n1 l2 2; x l 3", "", ""},
	{"what is left of the guarantee of the tenant", "n1 12", "o1 G=6; t<o1; l<t; s<t; o2; l2<o2", "s1@n1 s 4; b1,b2,b3,b4@n1 l2 2; x l 2", "b4", "x"},
	{"a gang stops where its queue has what it is guaranteed", "n1 8", "q1; q2 G=4", "v0,v1,v2,v3@n1 q1 2; g0,g1,g2 q2 2 gang=g/2", "v2 v3", "g0 g1"},
	{"a gang takes for further pods within the guarantee", "n1 8", "q1; q2 G=6", "v0,v1,v2,v3@n1 q1 2; g0,g1,g2 q2 2 gang=g/2", "v1 v2 v3", "g0 g1 g2"},
	{"a gang takes room on two nodes", "n1 4; n2 4", "q1; q2 G=6", "v0,v1@n1 q1 2; v2,v3@n2 q1 2; g0,g1,g2 q2 2 gang=g/3", "v1 v2 v3", "g0 g1 g2"},
	{"named pods count at the parent too", "n1 4", "q1; p G=pods:1; q2<p G=4", "w@n1 q2 1; a1,a2,a3@n1 q1 1; x q2 1", "", ""},
	{"a large pod beyond the minimum waits, a small one does not", "n1 8", "g; t G=3", "w9@n1 t 1 gang=w/1; a1,a2,a3,a4,a5,a6,a7@n1 g 1; w0 t 4 gang=w/1; w1 t 2 gang=w/1", "a6 a7", "w1"},

	// G6: priorities.
	{"offsets add up on the way", "n1 2", "t G=2 offset=10; l<t offset=-1; g", "a@n1 g 2 P=10; x l 2", "", ""},
	{"offsets that add up to enough", "n1 2", "t G=2 offset=11; l<t offset=-1; g", "a@n1 g 2 P=10; x l 2", "a", "x"},
	{"a fence above sets what is below it", "n1 2", "t G=2 offset=9 priority=fence; l<t offset=100; g", "a@n1 g 2 P=10; x l 2 P=10", "", ""},
	{"a fence above both changes nothing between them", "n1 2", "p priority=fence offset=50; t<p G=2; g<p", "a@n1 g 2 P=10; x t 2", "", ""},
	{"a fence above the victim lowers its pods", "n1 2", "a priority=fence; a2<a offset=50; b G=2", "a1@n1 a2 2 P=10; x b 2", "a1", "x"},

	// G7: fences, and queues that give nothing.
	{"a fence in the middle leaves what is inside", "n1 4", "p policy=fence G=4; t<p G=2; s<p; o", "s1@n1 s 2; o1@n1 o 2; x t 2", "s1", "x"},
	{"a fence above the victim stops no one", "n1 2", "p policy=fence; s<p; t G=2", "s1@n1 s 2; x t 2", "s1", "x"},
	{"a fence where their ways part stops no one", "n1 2", "p policy=fence; g<p; t<p G=2", "a@n1 g 2; x t 2", "a", "x"},
	{"disabled above is disabled below", "n1 2", "p policy=disabled; g<p policy=default; t G=2", "a@n1 g 2; x t 2", "", ""},
	{"disabled above both holds between them", "n1 2", "p policy=disabled; g<p; t<p G=2", "a@n1 g 2; x t 2", "", ""},
	{"a parent that is not reclaimable keeps what is below", "n1 2", "p kept; g<p; t G=2", "a@n1 g 2; x t 2", "", ""},
	{"not reclaimable above both counts for others only", "n1 2", "p kept; g<p; t<p G=2", "a@n1 g 2; x t 2", "a", "x"},
	{"a ceiling in the middle is lifted by a sibling", "n1 20", "p M=10; m<p M=6; q1<m; q2<m G=2; q3<p", "a1,a2,a3@n1 q1 2; c1,c2@n1 q3 2; x q2 2", "a3", "x"},
	{"two ceilings are lifted by one who is below both", "n1 20", "r M=10; p<r M=4; a<p; b<p G=2; c<r", "c1,c2,c3@n1 c 2; a1,a2@n1 a 2; x b 2", "a2", "x"},
	{"a ceiling of memory is lifted by memory", "n1 20", "p M=memory:8Gi; q1<p; q2<p G=2", "a1,a2@n1 q1 cpu:2,memory:4Gi; a3@n1 q1 2; x q2 cpu:2,memory:1Gi", "a2", "x"},
	{"a ceiling of pods is lifted by a pod", "n1 20", "p M=pods:2; a<p; b<p G=pods:1", "a1,a2@n1 a 1; x b 1", "a2", "x"},
	{"a ceiling above guarantees is not lifted", "n1 20", "p M=6; a<p G=6; b<p G=2", "a1,a2,a3@n1 a 2; x b 2", "", ""},
	{"for a gang a ceiling is lifted on several nodes", "n1 4; n2 4; n3 8", "p M=8; q1<p; q2<p G=6", "v1,v2@n1 q1 2; v3,v4@n2 q1 2; g0,g1,g2 q2 2 gang=g/3", "v2 v3 v4", "g0 g1 g2"},

	// G1, G3 and G8: which pods.
	{"the ratio is worked out again with each victim", "n1 10", "g1 G=2; g2 G=2; t G=4", "b1,b2,b3,b4@n1 g2 1; a1,a2,a3,a4,a5,a6@n1 g1 1; x t 2", "a5 a6", "x"},
	{"a queue that is guaranteed nothing gives first", "n1 12", "a G=1; b; t G=2", "b1,b2,b3@n1 b 2; a1,a2,a3@n1 a 2; x t 2", "b3", "x"},
	{"to have opted out counts before priority", "n1 4", "g; t G=2", "lo@n1 g 2 out; hi@n1 g 2 P=10; x t 2 P=10", "hi", "x"},
	{"the node with fewer that have opted out", "n1 2; n2 2", "g; t G=2", "a1,a2@n1 g 1 out; b1@n2 g 2 out; x t 2", "b1", "x"},
	{"a first pod of two leaves where both must give one", "n1 4", "g; t G=4", "d@n1 g 1 app=s; e1@n1 g 1 app=s; d2@n1 g 1 app=t; e2@n1 g 1 app=t; x t 3", "d2 e1 e2", "x"},
	{"a first pod before one that has opted out", "n1 4", "g; t G=4", "d@n1 g 1 app=s; e@n1 g 1 app=s out; d2@n1 g 1 app=t out; e2@n1 g 1 app=t; x t 2", "d e2", "x"},
	{"two pods rather than the first of an application", "n1 2; n2 2", "g; t G=2", "d@n1 g 2 app=s; w,z@n2 g 1 app=s; x t 2", "w z", "x"},
	{"the node where the highest priority is lower", "n1 2; n2 2", "g; t G=2", "a1@n1 g 1; a2@n1 g 1 P=10; b1,b2@n2 g 1; x t 2 P=10", "b1 b2", "x"},
	{"one victim rather than two", "n1 2; n2 2", "g; t G=2", "b1@n2 g 2; a1,a2@n1 g 1; x t 2", "b1", "x"},
	{"under a ceiling the pod asked first leaves, however large", "n1 20", "p M=6; q1<p G=1; q2<p G=2",
		"c@n1 q1 2; a@n1 q1 cpu:1,memory:2Gi; b@n1 q1 cpu:3,memory:1Gi; x q2 cpu:1,memory:3Gi", "b", "x"},
	{"a large pod leaves though a small one comes first", "n1 6; n2 1", "g G=memory:4Gi; h offset=5; t G=2",
		"k@n2 g cpu:1,memory:3Gi; c@n1 g cpu:3,memory:1Gi; s@n1 g cpu:1,memory:2Gi; d@n1 h 2; x t 2 P=10", "c", "x"},
	{"a pod that is marked stays", "n1 4", "g; t G=2", "a1@n1 g 2; a2@n1 g 2 kept; x t 2", "a1", "x"},
	{"a pod of the same application stays", "n1 4", "g; t G=2", "a1@n1 g 2; a2@n1 g 2 app=s; x t 2 app=s", "a1", "x"},
	{"a gang at its minimum leaves as a whole", "n1 4", "g; t G=2", "v0,v1@n1 g 2 gang=v/2; x t 2", "v0 v1", "x"},
	{"a gang whose whole is guaranteed stays", "n1 4", "g G=2; t G=2", "v0,v1@n1 g 2 gang=v/2; x t 2", "", ""},

	// G10: DaemonSets.
	{"a DaemonSet takes from a queue at its guarantee", "n1 2", "sys policy=fence; q policy=disabled G=2", "a,b@n1 q 1; agent sys 1 daemon=n1", "b", "agent"},
	{"a DaemonSet takes nothing from its own queue", "n1 2", "sys", "a,b@n1 sys 1; agent sys 1 daemon=n1", "", ""},
	{"the ceiling of its queue holds a DaemonSet back", "n1 2; n2 2", "sys M=1; q", "o@n2 sys 1; a,b@n1 q 1; agent sys 1 daemon=n1", "", ""},
	{"of two small ones and a large one a DaemonSet takes the young", "n1 4", "sys; q G=4", "a@n1 q 2; b,c@n1 q 1; agent sys 2 daemon=n1", "b c", "agent"},
	{"no offset helps a DaemonSet", "n1 2", "sys offset=100; q", "a,b@n1 q 1 P=10; agent sys 1 daemon=n1", "", ""},
	{"a pod of a DaemonSet gives nothing", "n1 2", "sys; q G=2", "agent@n1 sys 1 daemon=n1; a@n1 q 1; x q 1", "", ""},

	// G12: capabilities that were cut.
	{"the parent gives first, then the child", "n1 20", "p M=10 cut=1s; a<p M=4; b<p", "a0,a1,a2@n1 a 2; b0,b1,b2@n1 b 2", "a2 b2", ""},
	{"what the parent lacks the child may give alone", "n1 20", "p M=10 cut=1s; a<p M=4; b<p G=6", "a0,a1,a2@n1 a 2; b0,b1,b2@n1 b 2", "a2", ""},
	{"a child may turn it off", "n1 20", "p cut=1s; a<p M=4 cut=0", "a0,a1,a2@n1 a 2", "", ""},
	{"a queue that gives nothing to others gives to its capability", "n1 20", "a M=4 cut=1s policy=disabled", "x,w,z@n1 a 2", "z", ""},
	{"as near as the guarantees below allow", "n1 20", "p M=4 cut=1s; q1<p G=6; q2<p", "a,b,c@n1 q1 2; d@n1 q2 2", "d", ""},
	{"one pod brings both resources down", "n1 20", "a M=cpu:4,memory:4Gi cut=1s", "a0@n1 a cpu:2,memory:1Gi; a1@n1 a cpu:1,memory:2Gi; a2@n1 a cpu:1,memory:3Gi", "a2", ""},
	{"a gang at its minimum goes whole under a capability", "n1 20", "a M=2 cut=1s", "x@n1 a 2; v0,v1@n1 a 2 gang=v/2", "v0 v1", ""},
	{"a DaemonSet stays where a capability was cut", "n1 20", "a M=2 cut=1s", "x@n1 a 2; agent@n1 a 2 daemon=n1", "x", ""},

	// G14: who is served.
	{"fair serves the job that holds less", "n1 4", "a sort=fair", "j0@n1 a 3 gang=j/1; j1 a 1 gang=j/1; k a 1", "", "k"},
	{"fifo serves the older job", "n1 4", "a sort=fifo", "j0@n1 a 3 gang=j/1; j1 a 1 gang=j/1; k a 1", "", "j1"},
	{"the queue that holds less of its guarantee is served", "n1 5", "a G=4; b G=8", "a0@n1 a 2; b0@n1 b 2; x a 1; w b 1", "", "w"},
	{"an offset counts before what is held", "n1 5", "a G=4 offset=1; b G=8", "a0@n1 a 2; b0@n1 b 2; x a 1; w b 1", "", "x"},
	{"where nothing is guaranteed the capability counts", "n1 5", "a M=4; b M=8", "a0@n1 a 2; b0@n1 b 2; x a 1; w b 1", "", "w"},
	{"queues are compared where their ways part", "n1 5", "p1 G=2; a<p1 G=100; p2 G=8; b<p2 G=2", "a0@n1 a 2; b0@n1 b 2; x a 1; w b 1", "", "w"},
}

// documents writes a row as manifests.
func (r row) documents() []string {
	c := &randomCluster{queueOf: map[string]string{}, requests: map[string]map[string]int{}}
	c.documents = append(c.documents, strings.Replace(draw(1).documents[0], "backfill", "backfill, shuffle", 1))
	for _, p := range []int{0, 10} {
		c.add("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: p%d, uid: p%d, creationTimestamp: %q}\nvalue: %d\n", p, p, stamp(0), p)
	}
	for i, words := range split(r.nodes) {
		c.add("apiVersion: v1\nkind: Node\nmetadata: {name: %s, uid: %s, creationTimestamp: %q, labels: {kubernetes.io/hostname: %s}}\nstatus:\n"+
			"  allocatable: {memory: 64Gi, pods: \"20\", %s}\n  conditions: [{type: Ready, status: \"True\"}]\n", words[0], words[0], stamp(i), words[0], amounts(words[1]))
	}
	for i, words := range split(r.queues) {
		c.addQueue(i, words)
	}
	for i, words := range split(r.pods) {
		names, node, _ := strings.Cut(words[0], "@")
		for k, name := range strings.Split(names, ",") {
			c.addOf(name, node, 60*(10*i+k), words[1], amounts(words[2]), words[3:])
		}
	}
	return c.documents
}

func split(text string) (all [][]string) {
	for _, part := range strings.Split(text, ";") {
		all = append(all, strings.Fields(part))
	}
	return all
}

// amounts reads "2" as CPU, and "cpu:2,memory:1Gi" as it stands.
func amounts(text string) string {
	if !strings.Contains(text, ":") {
		text = "cpu:" + text
	}
	var parts []string
	for _, part := range strings.Split(text, ",") {
		name, amount, _ := strings.Cut(part, ":")
		parts = append(parts, fmt.Sprintf("%s: %q", name, amount))
	}
	return strings.Join(parts, ", ")
}

func (c *randomCluster) addQueue(i int, words []string) {
	name, parent, _ := strings.Cut(words[0], "<")
	if parent == "" {
		parent = "root"
	}
	spec := "weight: 1, parent: " + parent
	var annotations []string
	for _, word := range words[1:] {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "G":
			spec += ", guarantee: {resource: {" + amounts(value) + "}}"
		case "M":
			spec += ", capability: {" + amounts(value) + "}"
		case "kept":
			spec += ", reclaimable: false"
		default:
			full := map[string]string{"policy": "preemption.policy", "offset": "priority.offset", "priority": "priority.policy",
				"cut": "quota.preemption.delay", "sort": "application.sort.policy"}[key]
			annotations = append(annotations, fmt.Sprintf("hekla.sh/%s: %q", full, value))
		}
	}
	c.add("apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s, uid: %s, creationTimestamp: %q, annotations: {%s}}\nspec: {%s}\nstatus: {state: Open}\n",
		name, name, stamp(i), strings.Join(annotations, ", "), spec)
}

// addOf adds a pod, and its PodGroup with the first pod of it.
func (c *randomCluster) addOf(name, node string, second int, queue, requests string, options []string) {
	group, minimum, priority, kind, owner := name, 1, 0, "batch/v1, kind: Job", name
	where, labels, annotations := "", "", ""
	for _, option := range options {
		switch key, value, _ := strings.Cut(option, "="); key {
		case "P":
			_, _ = fmt.Sscan(value, &priority)
		case "gang":
			of, least, _ := strings.Cut(value, "/")
			group, owner = of, of
			_, _ = fmt.Sscan(least, &minimum)
		case "app":
			labels = "applicationId: " + value
		case "out":
			annotations = `, yunikorn.apache.org/allow-preemption: "false"`
		case "kept":
			annotations = `, volcano.sh/preemptable: "false"`
		case "daemon":
			kind, owner = "apps/v1, kind: DaemonSet", "agent"
			where = "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: " +
				"[{key: metadata.name, operator: In, values: [" + value + "]}]}]}}}\n"
		}
	}
	phase, status, created := "Inqueue", "{phase: Pending}", 7200+second
	if node != "" {
		phase, created, where = "Running", second, where+"  nodeName: "+node+"\n"
		status = fmt.Sprintf("{phase: Running, startTime: %q}", stamp(created+1))
	}
	if !slices.ContainsFunc(c.documents, func(d string) bool { return strings.Contains(d, "uid: g-"+group+",") }) {
		c.addGroup(group, queue, minimum, created, phase, priority)
	}
	c.add("apiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\n  namespace: work\n  uid: u-%s\n  creationTimestamp: %q\n  labels: {%s}\n"+
		"  annotations: {scheduling.k8s.io/group-name: %s%s}\n  ownerReferences: [{apiVersion: %s, name: %s, uid: o-%s, controller: true}]\n"+
		"spec:\n  schedulerName: volcano\n%s  terminationGracePeriodSeconds: 30\n  containers: [{name: main, image: i, resources: {requests: {%s}}}]\nstatus: %s\n",
		name, name, stamp(created), labels, group, annotations, kind, owner, owner, where, requests, status)
}

// Pods that were evicted are made again, and wait. With each row the scheduler comes to rest.
func TestWhoLeavesAndWhoStarts(t *testing.T) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			c, _, err := lead(r.documents(), -1)
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, uid := range c.evicted {
				left = append(left, strings.TrimPrefix(uid, "u-"))
			}
			slices.Sort(left)
			if got := strings.Join(left, " "); got != r.leave {
				t.Errorf("%q leave, want %q", got, r.leave)
			}
			for _, words := range split(r.pods) {
				for _, name := range strings.Split(words[0], ",") {
					isWaiting, isToStart := !strings.Contains(words[0], "@"), slices.Contains(strings.Fields(r.start), name)
					if starts := c.nodes[name] != ""; isWaiting && starts != isToStart {
						t.Errorf("%s has node %q, and it is %t that it should have one", name, c.nodes[name], isToStart)
					}
				}
			}
		})
	}
}
