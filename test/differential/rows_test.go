package differential

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/test/fixture"
)

// preemptor is the pod that waits.
func preemptor(options ...func(*corev1.Pod)) *corev1.Pod {
	return fixture.Pod("preemptor-0", append([]func(*corev1.Pod){fixture.In("preemptor")}, options...)...)
}

// victim is the pod that may have to leave.
func victim(options ...func(*corev1.Pod)) *corev1.Pod {
	return fixture.Pod("victim-0", append([]func(*corev1.Pod){fixture.In("victim"), fixture.On("n1"), aLongEnd}, options...)...)
}

// nominee is a pod to which another scheduler has promised the node.
func nominee() *corev1.Pod {
	p := fixture.Pod("nominee")
	p.Spec.SchedulerName, p.Status.NominatedNodeName = "other", "n1"
	return p
}

func marked(p *corev1.Pod) { p.Annotations[schedulingv1beta1.PreemptableKey] = "true" }

func node(options ...func(*corev1.Node)) *corev1.Node { return fixture.Node("n1", "cpu=1", options...) }

func objects(all ...runtime.Object) []runtime.Object { return all }

func causes(all ...wake.Cause) []wake.Cause { return all }

// events are all kinds of events, each with a state in which nothing else is missing.
func events() map[string]event {
	all := map[string]event{}
	for _, some := range []map[string]event{eventsOfNodes(), eventsOfVolumes(), eventsOfDevices(), eventsOfQueues(), eventsOfAdmission(), eventsOfVictims(), eventsOfJobs()} {
		for name, e := range some {
			all[name] = e
		}
	}
	return all
}

func eventsOfNodes() map[string]event {
	shown := causes(wake.NodeShown, wake.NodeLost, wake.NodeRelabelled, wake.ClusterResized, wake.ShareChanged)
	return map[string]event{
		"a node has a label": {kind: "nodes", causes: shown, objects: objects(preemptor(fixture.Selecting("zone", "a"))),
			happens: alter(&corev1.Node{}, "n1", func(n *corev1.Node) { n.Labels["zone"] = "a" })},
		"a node is in a zone with a mate": {kind: "nodes", causes: causes(wake.NodeRelabelled), situations: []situation{free},
			objects: objects(preemptor(nearInZone), fixture.Pod("mate", fixture.On("n0"), fixture.Labelled("app", "x")), fixture.Node("n0", "cpu=1", fixture.InZone("a")), fixture.Node("n1", "cpu=1")),
			happens: alter(&corev1.Node{}, "n1", func(n *corev1.Node) { n.Labels["zone"] = "a" })},
		"a node is where a volume is": {kind: "nodes", causes: causes(wake.NodeRelabelled), situations: []situation{free},
			objects: objects(fixture.LateClass("late", ""), fixture.Claim("c", "late", fixture.BoundTo("v")), fixture.Volume("v", "late", "1Gi", "disk", "d", fixture.OfClaim("c")),
				preemptor(fixture.Mounting("c"))),
			happens: alter(&corev1.Node{}, "n1", func(n *corev1.Node) { n.Labels["disk"] = "d" })},
		"a node grows for a job too large for empty nodes": {kind: "nodes", causes: shown, situations: []situation{full}, objects: objects(preemptor(fixture.Asks("cpu=3"))),
			happens: alter(&corev1.Node{}, "n1", func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = fixture.List("cpu=3")["cpu"] })},
		"a node loses a taint": {kind: "nodes", causes: shown,
			objects: objects(node(func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "kept", Effect: corev1.TaintEffectNoSchedule}}
			})),
			happens: alter(&corev1.Node{}, "n1", func(n *corev1.Node) { n.Spec.Taints = nil })},
		"a node is opened": {kind: "nodes", causes: shown, objects: objects(node(func(n *corev1.Node) { n.Spec.Unschedulable = true })),
			happens: alter(&corev1.Node{}, "n1", func(n *corev1.Node) { n.Spec.Unschedulable = false })},
		"a node is ready": {kind: "nodes", causes: shown, objects: objects(node(func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
		})), happens: alter(&corev1.Node{}, "n1", func(n *corev1.Node) { n.Status.Conditions = nil })},
		"a node has more": {kind: "nodes", causes: shown, objects: objects(preemptor(fixture.Asks("cpu=2"))),
			happens: alter(&corev1.Node{}, "n1", func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = fixture.List("cpu=2")["cpu"] })},
		"a node joins": {kind: "nodes", causes: shown, objects: objects(preemptor(fixture.Asks("cpu=2"))), situations: []situation{free, full},
			happens: come(fixture.Node("n9", "cpu=2"))},
		"a HyperNode comes": {kind: "hypernodes", causes: causes(wake.HyperNodeShown), situations: []situation{free, full}, plugins: []string{"network-topology-aware"},
			objects: objects(gangOf("preemptor", "high", 1, fixture.Within(1))), happens: come(fixture.HyperNode("late", 1, "n1"))},
		"a HyperNode changes": {kind: "hypernodes", causes: causes(wake.HyperNodeShown), situations: []situation{free, full}, plugins: []string{"network-topology-aware"},
			objects: objects(gangOf("preemptor", "high", 1, fixture.Within(1)), fixture.HyperNode("late", 2, "n1")),
			happens: alter(&topologyv1alpha1.HyperNode{}, "late", func(h *topologyv1alpha1.HyperNode) { h.Spec.Tier = 1 })},
		"a namespace has a label": {kind: "namespaces", causes: causes(wake.NamespaceShown), situations: []situation{free},
			objects: objects(preemptor(nearTeam("b")), fixture.Node("n1", "cpu=2"), fixture.Pod("mate", fixture.On("n1"), fixture.Labelled("app", "x"))),
			happens: alter(&corev1.Namespace{}, fixture.Namespace, func(n *corev1.Namespace) { n.Labels = map[string]string{"team": "b"} })},
	}
}

// nearInZone draws a pod to the zone of those of an app.
func nearInZone(p *corev1.Pod) {
	fixture.Near("app", "x")(p)
	p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = "zone"
}

// nearTeam draws a pod to those of an app in the namespaces of a team.
func nearTeam(team string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		fixture.Near("app", "x")(p)
		p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector =
			&metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
	}
}

func eventsOfVolumes() map[string]event {
	shown := causes(wake.SupplyShown)
	capacity := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "room", UID: "room"}, StorageClassName: "late",
		NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: "n1"}}, Capacity: new(fixture.List("storage=5Gi")["storage"])}
	counting := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "disks.example.com", UID: "driver"}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}}
	made := fixture.LateClass("late", "disks.example.com")
	onN1 := fixture.Volume("v", "late", "1Gi", corev1.LabelHostname, "n1")
	// One volume is in use on n1, by a pod that stays and asks for nothing else.
	busy := objects(fixture.LateClass("late", ""), fixture.Volume("v", "late", "1Gi", corev1.LabelHostname, "n1", fixture.OfClaim("c")),
		fixture.Claim("c", "late", fixture.BoundTo("v")), fixture.Volume("w", "late", "1Gi", corev1.LabelHostname, "n1", fixture.OfClaim("d")),
		fixture.Claim("d", "late", fixture.BoundTo("w")), fixture.Pod("user", fixture.On("n1"), fixture.Asks(""), fixture.Mounting("d")),
		fixture.Driver("n1", 1), preemptor(fixture.Mounting("c")))
	return map[string]event{
		"a claim comes": {kind: "persistentvolumeclaims", causes: shown, objects: objects(made, preemptor(fixture.Mounting("c"))), happens: come(fixture.Claim("c", "late"))},
		"a claim is bound": {kind: "persistentvolumeclaims", causes: shown,
			objects: objects(fixture.EarlyClass("early", ""), fixture.Claim("c", "early"), preemptor(fixture.Mounting("c")),
				// It is too small for the controller of volumes, which would bind it at once.
				fixture.Volume("v", "early", "1Mi", corev1.LabelHostname, "n1", fixture.OfClaim("c"))),
			happens: alter(&corev1.PersistentVolumeClaim{}, "c", fixture.BoundTo("v"))},
		"a volume comes": {kind: "persistentvolumes", causes: shown, objects: objects(fixture.LateClass("late", ""), fixture.Claim("c", "late"), preemptor(fixture.Mounting("c"))),
			happens: come(onN1)},
		"a volume comes for a job that waits for admission": {kind: "persistentvolumes", causes: shown, situations: []situation{full}, sharer: "capacity",
			objects: objects(fixture.LateClass("late", ""), fixture.Claim("c", "late"), preemptor(fixture.Mounting("c")), gangOf("preemptor", "high", 1, fixture.PendingAdmission, fixture.Wanting("cpu=1")),
				fixture.Queue("q", func(q *schedulingv1beta1.Queue) { q.Spec.Capability = fixture.List("cpu=1") })),
			happens: come(onN1)},
		"a StorageClass comes": {kind: "storageclasses", causes: shown, objects: objects(fixture.Claim("c", "late"), preemptor(fixture.Mounting("c"))), happens: come(made)},
		"a node attaches more": {kind: "csinodes", causes: shown, objects: busy, happens: come(fixture.Driver("n1", 2)), situations: []situation{free, full}},
		"there is capacity": {kind: "csistoragecapacities", causes: shown, objects: objects(made, counting, fixture.Claim("c", "late"), preemptor(fixture.Mounting("c"))),
			happens: come(capacity)},
		"a volume is detached": {kind: "volumeattachments", causes: shown, situations: []situation{free, full},
			objects: objects(fixture.LateClass("late", ""), fixture.Volume("v", "late", "1Gi", corev1.LabelHostname, "n1", fixture.OfClaim("c")),
				fixture.Claim("c", "late", fixture.BoundTo("v")), fixture.Volume("w", "late", "1Gi", corev1.LabelHostname, "n1"), fixture.Driver("n1", 1),
				preemptor(fixture.Mounting("c")), attached("w", "n1")),
			happens: leave(&storagev1.VolumeAttachment{}, "w")},
		"a driver counts no capacity any more": {kind: "csidrivers", causes: shown, objects: objects(made, counting, fixture.Claim("c", "late"), preemptor(fixture.Mounting("c"))),
			happens: leave(counting, "disks.example.com")},
	}
}

// attached is a volume that a node has, though no pod there uses it any more.
func attached(volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: volume, UID: "attachment"}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: "disks.example.com", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
		Status: storagev1.VolumeAttachmentStatus{Attached: true}}
}

func eventsOfDevices() map[string]event {
	shown := causes(wake.SupplyShown)
	using := preemptor(fixture.Using("d"))
	rule := fixture.TaintRule("broken", "", "")
	return map[string]event{
		"a class of devices comes": {kind: "deviceclasses", causes: causes(wake.SupplyShown, wake.NodeShown, wake.NodeLost, wake.ClusterResized),
			objects: objects(fixture.Slice("n1", 1), fixture.DeviceClaim("d", "gpu", 1), using), happens: come(fixture.Devices("gpu"))},
		"a class of devices comes for a resource": {kind: "deviceclasses", causes: causes(wake.SupplyShown, wake.NodeShown, wake.NodeLost, wake.ClusterResized),
			objects: objects(fixture.Slice("n1", 1), preemptor(fixture.Asks("cpu=1 deviceclass.resource.kubernetes.io/gpu=1"))), happens: come(fixture.Devices("gpu"))},
		"a claim of devices comes": {kind: "resourceclaims", causes: shown, objects: objects(fixture.Devices("gpu"), fixture.Slice("n1", 1), using),
			happens: come(fixture.DeviceClaim("d", "gpu", 1))},
		"devices come": {kind: "resourceslices", causes: shown, objects: objects(fixture.Devices("gpu"), fixture.DeviceClaim("d", "gpu", 1), using),
			happens: come(fixture.Slice("n1", 1))},
		"devices are sound again": {kind: "devicetaintrules", causes: shown,
			objects: objects(fixture.Devices("gpu"), fixture.Slice("n1", 1), fixture.DeviceClaim("d", "gpu", 1), using, rule), happens: leave(&resourcev1beta2.DeviceTaintRule{}, "broken")},
		"a claim of devices is given back": {kind: "resourceclaims", causes: shown, situations: []situation{free},
			objects: objects(fixture.Devices("gpu"), fixture.Slice("n1", 1), fixture.DeviceClaim("d", "gpu", 1), using, taken("other")),
			happens: leave(&resourcev1.ResourceClaim{}, "other")},
	}
}

// taken is a claim that has the first device of n1.
func taken(name string) *resourcev1.ResourceClaim {
	c := fixture.DeviceClaim(name, "gpu", 1)
	c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{
		Request: "gpus", Driver: "gpus.example.com", Pool: "n1", Device: "gpu-0"}}}}
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "somebody", UID: "somebody"}}
	return c
}

func eventsOfQueues() map[string]event {
	shown := causes(wake.QueueShown)
	queue := func(how func(*schedulingv1beta1.Queue)) *schedulingv1beta1.Queue { return fixture.Queue("q", how) }
	alterQueue := func(how func(*schedulingv1beta1.Queue)) func(*run) {
		return alter(&schedulingv1beta1.Queue{}, "q", how)
	}
	of := func(q string) func(*schedulingv1beta1.PodGroup) {
		return func(g *schedulingv1beta1.PodGroup) { g.Spec.Queue = q }
	}
	pendingAdmission := gangOf("preemptor", "high", 1, fixture.PendingAdmission, fixture.Wanting("cpu=1"))
	two := func(how func(a, b *schedulingv1beta1.Queue)) []runtime.Object {
		a, b := fixture.Queue("a"), fixture.Queue("b")
		how(a, b)
		return objects(a, b, gangOf("preemptor", "high", 1, of("b")), gangOf("victim", "low", 0, of("a")))
	}
	deserve := func(a, b string) []runtime.Object {
		return two(func(qa, qb *schedulingv1beta1.Queue) {
			qa.Spec.Deserved, qb.Spec.Deserved = fixture.List(a), fixture.List(b)
		})
	}
	return map[string]event{
		"a queue is open": {kind: "queues", causes: shown, objects: objects(queue(func(q *schedulingv1beta1.Queue) { q.Status.State = schedulingv1beta1.QueueStateClosed })),
			happens: alterQueue(func(q *schedulingv1beta1.Queue) { q.Status.State = schedulingv1beta1.QueueStateOpen })},
		"a queue comes": {kind: "queues", objects: objects(gangOf("preemptor", "high", 1, of("late"))),
			happens: come(fixture.Queue("late")), situations: []situation{free}},
		"a queue has a parent": {kind: "queues", causes: shown, objects: objects(queue(func(q *schedulingv1beta1.Queue) { q.Spec.Parent = "nowhere" })),
			happens: alterQueue(func(q *schedulingv1beta1.Queue) { q.Spec.Parent = "" })},
		"a queue is capable of more": {kind: "queues", causes: shown, sharer: "capacity", situations: []situation{free},
			objects: objects(queue(func(q *schedulingv1beta1.Queue) { q.Spec.Capability = fixture.List("cpu=500m") })),
			happens: alterQueue(func(q *schedulingv1beta1.Queue) { q.Spec.Capability = nil })},
		"a queue deserves more": {kind: "queues", causes: shown, sharer: "capacity", situations: []situation{full}, objects: deserve("", "cpu=500m"),
			happens: alter(&schedulingv1beta1.Queue{}, "b", func(q *schedulingv1beta1.Queue) { q.Spec.Deserved = fixture.List("cpu=1") })},
		"another queue deserves less": {kind: "queues", causes: append(shown, wake.ShareFallen), sharer: "capacity", situations: []situation{full}, objects: deserve("cpu=1", "cpu=1"),
			happens: alter(&schedulingv1beta1.Queue{}, "a", func(q *schedulingv1beta1.Queue) { q.Spec.Deserved = nil })},
		"a queue weighs more": {kind: "queues", causes: causes(wake.ShareChanged, wake.ShareGrown, wake.ShareFallen), sharer: "proportion", situations: []situation{full},
			objects: append(two(func(a, b *schedulingv1beta1.Queue) { a.Spec.Weight = 9 }), fixture.Node("n1", "cpu=2"), victim(marked),
				fixture.Pod("victim-1", fixture.In("victim"), fixture.On("n1"), marked, aLongEnd)),
			happens: alter(&schedulingv1beta1.Queue{}, "b", func(q *schedulingv1beta1.Queue) { q.Spec.Weight = 9 })},
		"others ask for more, and a share shrinks": {kind: "pods", causes: causes(wake.ShareFallen), sharer: "proportion", situations: []situation{full},
			// Of four CPUs a holds three, which it deserves as long as c wants nothing; the one that is free is on n9.
			objects: append(two(func(a, b *schedulingv1beta1.Queue) { a.Spec.Weight = 2 }), fixture.Node("n1", "cpu=3"), fixture.Node("n9", "cpu=1"),
				preemptor(fixture.Selecting(corev1.LabelHostname, "n1")), victim(marked), fixture.Queue("c", func(q *schedulingv1beta1.Queue) { q.Spec.Weight = 2 }),
				fixture.Pod("victim-1", fixture.In("victim"), fixture.On("n1")), fixture.Pod("victim-2", fixture.In("victim"), fixture.On("n1"))),
			happens: come(gangOf("more", "low", 1, of("c")), fixture.Pod("more-0", fixture.In("more"), fixture.Selecting("zone", "nowhere"), important))},
		"a node is cordoned, and a share shrinks": {kind: "nodes", causes: causes(wake.NodeClosed, wake.ClusterResized, wake.ShareChanged, wake.ShareFallen), sharer: "proportion", situations: []situation{full},
			// Of four CPUs a holds three, which it deserves until the one that is free is on no usable node.
			objects: append(two(func(a, b *schedulingv1beta1.Queue) { a.Spec.Weight = 2 }), fixture.Node("n1", "cpu=3"), fixture.Node("n9", "cpu=1"),
				preemptor(fixture.Selecting(corev1.LabelHostname, "n1")), victim(marked),
				fixture.Pod("victim-1", fixture.In("victim"), fixture.On("n1")), fixture.Pod("victim-2", fixture.In("victim"), fixture.On("n1"))),
			happens: alter(&corev1.Node{}, "n9", func(n *corev1.Node) { n.Spec.Unschedulable = true })},
		"a queue has a higher priority": {kind: "queues", causes: shown, situations: []situation{full}, sharer: "capacity", objects: deserve("cpu=1", ""),
			happens: alter(&schedulingv1beta1.Queue{}, "b", func(q *schedulingv1beta1.Queue) { q.Spec.Priority = 9 })},
		"a queue may be reclaimed from": {kind: "queues", causes: shown, situations: []situation{full}, sharer: "capacity",
			objects: two(func(a, b *schedulingv1beta1.Queue) {
				b.Spec.Deserved, a.Spec.Reclaimable = fixture.List("cpu=1"), new(false)
			}),
			happens: alter(&schedulingv1beta1.Queue{}, "a", func(q *schedulingv1beta1.Queue) { q.Spec.Reclaimable = nil })},
		"a queue is guaranteed less": {kind: "queues", causes: append(shown, wake.ShareFallen, wake.ShareGrown), situations: []situation{full}, sharer: "capacity",
			objects: two(func(a, b *schedulingv1beta1.Queue) {
				b.Spec.Deserved, a.Spec.Guarantee.Resource = fixture.List("cpu=1"), fixture.List("cpu=1")
			}),
			happens: alter(&schedulingv1beta1.Queue{}, "a", func(q *schedulingv1beta1.Queue) { q.Spec.Guarantee.Resource = nil })},
		"a quota allows more": {kind: "resourcequotas", causes: causes(wake.QuotaShown), plugins: []string{"resourcequota"}, situations: []situation{free},
			objects: objects(pendingAdmission, quota("quota", "requests.cpu=500m")), happens: come(quota("quota", "requests.cpu=8"))},
		"a quota goes": {kind: "resourcequotas", causes: causes(wake.QuotaShown), plugins: []string{"resourcequota"}, situations: []situation{free},
			objects: objects(pendingAdmission, quota("quota", "requests.cpu=500m")), happens: leave(&corev1.ResourceQuota{}, "quota")},
	}
}

// eventsOfAdmission are those by which a job is admitted, under each plugin that admits jobs by what is left of an
// amount.
func eventsOfAdmission() map[string]event {
	full := []situation{full}
	pending := gangOf("preemptor", "high", 1, fixture.PendingAdmission, fixture.Wanting("cpu=1"))
	narrow := fixture.Queue("q", func(q *schedulingv1beta1.Queue) { q.Spec.Capability = fixture.List("cpu=1") })
	narrowAbove := fixture.Queue("above", func(q *schedulingv1beta1.Queue) { q.Spec.Capability = fixture.List("cpu=1") })
	below := fixture.Queue("q", func(q *schedulingv1beta1.Queue) { q.Spec.Parent = "above" })
	all := map[string]event{}
	for name, e := range map[string]event{
		"overcommit":             {plugins: []string{"overcommit"}},
		"proportion":             {sharer: "proportion"},
		"proportion, narrow":     {sharer: "proportion", objects: objects(fixture.Node("n1", "cpu=2"), narrow)},
		"capacity":               {sharer: "capacity", objects: objects(fixture.Node("n1", "cpu=2"), narrow)},
		"capacity, narrow above": {sharer: "capacity", tree: true, objects: objects(fixture.Node("n1", "cpu=2"), narrowAbove, below)},
		"guaranteed-shares":      {plugins: []string{"guaranteed-shares"}, objects: objects(fixture.Node("n1", "cpu=2"), narrow)},
	} {
		e.kind, e.situations, e.causes = "pods", full, causes(wake.UsageFreed, wake.RoomFreed)
		e.objects = append(e.objects, pending, victim())
		e.happens = leave(&corev1.Pod{}, "victim-0")
		all["a pod is gone, and a job is admitted: "+name] = e
		e.happens = alter(&corev1.Pod{}, "victim-0", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
		all["a pod finishes, and a job is admitted: "+name] = e
	}
	one := fixture.Queue("q", func(q *schedulingv1beta1.Queue) {
		metav1.SetMetaDataAnnotation(&q.ObjectMeta, schedulingv1beta1.MaxApplicationsKey, "1")
	})
	all["a deleted pod finishes, and its place goes to another job"] = event{kind: "pods", situations: full, plugins: []string{"guaranteed-shares"},
		causes: causes(wake.UsageFreed, wake.RoomFreed), objects: objects(gangOf("preemptor", "high", 1, fixture.PendingAdmission), one, victim(beingDeleted)),
		happens: alter(&corev1.Pod{}, "victim-0", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}
	all["a job is over by its lower minimum, and its place goes to another"] = event{kind: "podgroups", situations: full, plugins: []string{"guaranteed-shares"},
		causes: causes(wake.VictimsChanged), objects: objects(gangOf("preemptor", "high", 1, fixture.PendingAdmission), one, gangOf("victim", "low", 2),
			victim(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })),
		happens: alter(&schedulingv1beta1.PodGroup{}, "victim", func(g *schedulingv1beta1.PodGroup) { g.Spec.MinMember = 1 })}
	return all
}

func eventsOfVictims() map[string]event {
	evicts := []situation{full, inHyperNode}
	shield := fixture.BudgetKeeping("shield", "x", 1)
	shielded := victim(marked, fixture.Labelled("app", "x"))
	cooling := victim(marked, fixture.Annotated(schedulingv1beta1.CooldownTimeKey, "100h"))
	freed := causes(wake.RoomFreed, wake.UsageFreed)
	alterVictim := func(how func(*schedulingv1beta1.PodGroup)) func(*run) {
		return alter(&schedulingv1beta1.PodGroup{}, "victim", how)
	}
	return map[string]event{
		"a victim is marked": {kind: "pods", causes: causes(wake.PodRelabelled), situations: evicts, objects: objects(victim()),
			happens: alter(&corev1.Pod{}, "victim-0", marked)},
		"a cool-down is taken off": {kind: "pods", causes: causes(wake.PodRelabelled), situations: evicts, plugins: []string{"cdp"}, objects: objects(cooling),
			happens: alter(&corev1.Pod{}, "victim-0", func(p *corev1.Pod) { delete(p.Annotations, schedulingv1beta1.CooldownTimeKey) })},
		"a budget covers it no more": {kind: "pods", causes: causes(wake.PodRelabelled, wake.BudgetFreed), situations: evicts, plugins: []string{"pdb"},
			objects: objects(shield, shielded), happens: alter(&corev1.Pod{}, "victim-0", func(p *corev1.Pod) { p.Labels["app"] = "y" })},
		"a budget allows more": {kind: "poddisruptionbudgets", causes: causes(wake.BudgetFreed), situations: evicts, plugins: []string{"pdb"},
			objects: objects(shield, shielded), happens: come(fixture.BudgetKeeping("shield", "x", 0))},
		"a budget goes": {kind: "poddisruptionbudgets", causes: causes(wake.BudgetFreed), situations: evicts, plugins: []string{"pdb"},
			objects: objects(shield, shielded), happens: leave(&policyv1.PodDisruptionBudget{}, "shield")},
		"a gang that gives is marked": {kind: "podgroups", causes: causes(wake.VictimsChanged), situations: evicts, objects: objects(victim()),
			happens: alterVictim(func(g *schedulingv1beta1.PodGroup) { g.Annotations[schedulingv1beta1.PreemptableKey] = "true" })},
		"a gang joins the queue": {kind: "podgroups", causes: causes(wake.VictimsChanged), situations: evicts, objects: objects(gangOf("victim", "low", 0, inQueue("nowhere"))),
			happens: alterVictim(func(g *schedulingv1beta1.PodGroup) { g.Spec.Queue = "q" })},
		"a gang needs fewer": {kind: "podgroups", causes: causes(wake.VictimsChanged), situations: evicts, never: true, objects: objects(gangOf("victim", "low", 1)),
			happens: alterVictim(func(g *schedulingv1beta1.PodGroup) { g.Spec.MinMember = 0 })},
		"a gang gives up its parts": {kind: "podgroups", causes: causes(wake.VictimsChanged), situations: evicts, never: true,
			objects: objects(gangOf("victim", "low", 0, fixture.Parts("part", 1, 1, nil)), victim(marked, fixture.Labelled("part", "0"))),
			happens: alterVictim(func(g *schedulingv1beta1.PodGroup) { g.Spec.SubGroupPolicy = nil })},
		"a gang has a lower class": {kind: "podgroups", causes: causes(wake.VictimsChanged, wake.ClassShown), situations: evicts, objects: objects(gangOf("victim", "high", 0)),
			happens: alterVictim(func(g *schedulingv1beta1.PodGroup) { g.Spec.PriorityClassName = "low" })},
		"a class is worth less": {kind: "priorityclasses", causes: causes(wake.ClassShown), situations: evicts,
			objects: objects(fixture.PriorityClass("low", 20)), happens: alter(&schedulingv1.PriorityClass{}, "low", func(c *schedulingv1.PriorityClass) { c.Value = 0 })},
		"a class is bounded by a quota and its pods do not carry it": {kind: "resourcequotas", causes: causes(wake.QuotaShown, wake.ClassShown),
			situations: evicts, objects: objects(gangOf("victim", "high", 0), preemptor(important)), happens: come(ofClass(quota("quota", "pods=9"), "high"))},
		"a pod is deleted": {kind: "pods", causes: freed, situations: []situation{full}, objects: objects(victim()),
			happens: func(l *run) { edit(l, &corev1.Pod{}, "victim-0", ending(l, 5)) }},
		"a nominee of another scheduler gives up": {kind: "pods", causes: causes(wake.RoomFreed, wake.UsageFreed, wake.ShareChanged), objects: objects(nominee()),
			happens: alter(&corev1.Pod{}, "nominee", func(p *corev1.Pod) { p.Status.NominatedNodeName = "" })},
		"a pod is gone": {kind: "pods", causes: freed, situations: []situation{full}, objects: objects(victim()), happens: leave(&corev1.Pod{}, "victim-0")},
		"a pod finishes": {kind: "pods", causes: freed, situations: []situation{full, inHyperNode}, objects: objects(victim()),
			happens: alter(&corev1.Pod{}, "victim-0", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })},
		"a pod shrinks": {kind: "pods", causes: freed, situations: []situation{full, inHyperNode}, objects: objects(victim(), preemptor(fixture.Asks("cpu=500m"))),
			happens: alter(&corev1.Pod{}, "victim-0", fixture.Asks("cpu=500m"))},
		"a pod on a closed node ends, which leaves less to share": {kind: "pods", causes: causes(wake.ShareChanged, wake.ShareFallen), situations: []situation{full}, sharer: "capacity",
			objects: objects(fixture.Node("n1", "cpu=8"), fixture.Node("n8", "cpu=8", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
				fixture.Queue("q", fixture.Deserving("cpu=4"), fixture.Guaranteed("cpu=4")), fixture.Queue("a", fixture.Deserving("cpu=16")),
				fixture.Queue("fixed", fixture.Deserving("cpu=1"), func(q *schedulingv1beta1.Queue) { q.Spec.Reclaimable = new(false) }),
				preemptor(fixture.Asks("cpu=4")), gangOf("victim", "low", 0, inQueue("a")), victim(marked, fixture.Asks("cpu=4")),
				fixture.Pod("victim-1", fixture.In("victim"), fixture.On("n1"), fixture.Asks("cpu=4"), marked, aLongEnd),
				gangOf("fixed", "high", 0, inQueue("fixed")), fixture.Pod("fixed-0", fixture.In("fixed"), fixture.On("n8"), fixture.Asks("cpu=8"))),
			happens: leave(&corev1.Pod{}, "fixed-0")},
		"a part of a gang is broken, so that its pods need no longer stay together": {kind: "pods", causes: freed, situations: []situation{full}, sharer: "capacity",
			objects: append(objects(fixture.Node("n1", "cpu=8"), fixture.Queue("q", fixture.Deserving("cpu=2")), fixture.Queue("a", fixture.Deserving("cpu=6")),
				preemptor(fixture.Asks("cpu=2")), gangOf("victim", "low", 4, inQueue("a"), fixture.Parts("part", 4, 1, nil))), inTwoParts()...),
			happens: alter(&corev1.Pod{}, "victim-0", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })},
		"a pod grows above the share of its queue": {kind: "pods", causes: causes(wake.PodGrown), situations: []situation{full}, sharer: "capacity",
			objects: objects(fixture.Node("n8", "cpu=2"), fixture.Queue("a", func(q *schedulingv1beta1.Queue) { q.Spec.Deserved = fixture.List("cpu=2") }),
				fixture.Queue("q", func(q *schedulingv1beta1.Queue) { q.Spec.Deserved = fixture.List("cpu=2") }), preemptor(fixture.Selecting(corev1.LabelHostname, "n1")),
				gangOf("victim", "low", 0, func(g *schedulingv1beta1.PodGroup) { g.Spec.Queue = "a" }), victim(marked),
				fixture.Pod("victim-1", fixture.In("victim"), fixture.On("n8"))),
			happens: alter(&corev1.Pod{}, "victim-1", fixture.Asks("cpu=2"))},
	}
}

// inTwoParts are eight pods of the gang that gives, four in each part.
func inTwoParts() (pods []runtime.Object) {
	for i := range 8 {
		pods = append(pods, fixture.Pod(fmt.Sprintf("victim-%d", i), fixture.In("victim"), fixture.On("n1"), marked, aLongEnd,
			fixture.Labelled("part", strconv.Itoa(i/4))))
	}
	return pods
}

// ending is a pod that is being deleted.
func ending(l *run, seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		at := metav1.NewTime(l.led.Now().Add(time.Duration(seconds) * time.Second))
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &seconds
	}
}

// beingDeleted deletes a pod that takes long to end.
func beingDeleted(p *corev1.Pod) {
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: beginning.Add(time.Hour)}, new(int64(3600))
}

func eventsOfJobs() map[string]event {
	return map[string]event{
		"a gate is removed": {kind: "pods", objects: objects(preemptor(func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}} })),
			happens: alter(&corev1.Pod{}, "preemptor-0", func(p *corev1.Pod) { p.Spec.SchedulingGates = nil })},
		"the job needs fewer": {kind: "podgroups", objects: objects(gangOf("preemptor", "high", 2)),
			happens: alter(&schedulingv1beta1.PodGroup{}, "preemptor", func(g *schedulingv1beta1.PodGroup) { g.Spec.MinMember = 1 })},
		"the job has a higher class": {kind: "podgroups", objects: objects(gangOf("preemptor", "low", 1)), situations: []situation{full},
			happens: alter(&schedulingv1beta1.PodGroup{}, "preemptor", func(g *schedulingv1beta1.PodGroup) { g.Spec.PriorityClassName = "high" })},
		"the class of the job preempts": {kind: "priorityclasses", situations: []situation{full, inHyperNode}, objects: objects(fixture.NeverPreempting("high", 20)),
			happens: alter(&schedulingv1.PriorityClass{}, "high", func(c *schedulingv1.PriorityClass) { c.PreemptionPolicy = nil })},
		"somebody else begins the job": {kind: "pods", situations: []situation{free},
			objects: objects(gangOf("preemptor", "high", 2), fixture.Node("n9", "cpu=1"), fixture.Pod("preemptor-1", fixture.In("preemptor"), fixture.Asks("cpu=2"))),
			happens: alter(&corev1.Pod{}, "preemptor-1", fixture.On("n9"))},
		"the configuration lets it evict": {situations: []situation{full, inHyperNode}, actions: actionLists[1], happens: func(l *run) {
			l.configuration.actions = actionLists[0]
			if err := l.led.Scheduler().Use(l.configuration.policy()); err != nil {
				panic(err)
			}
		}},
		"a plan is adopted, which frees quota": {causes: causes(wake.PlanAdopted, wake.UsageFreed, wake.PodCommitted, wake.VictimPlaced), situations: []situation{full}, sharer: "capacity",
			objects: append(vip(), fixture.Queue("q", func(q *schedulingv1beta1.Queue) { q.Spec.Capability = fixture.List("cpu=1") }),
				gangOf("preemptor", "low", 1)),
			happens: come(gangOf("vip", "high", 1, inQueue("vip")), fixture.Pod("vip-0", fixture.In("vip"), fixture.Selecting(corev1.LabelHostname, "n1"), important))},
		"a plan ends, which had promised a node": {actions: actionLists[4], causes: causes(wake.PlanEnded, wake.RoomFreed, wake.UsageFreed), situations: []situation{full},
			objects: append(vip(), gangOf("preemptor", "low", 1), preemptor(fixture.Selecting(corev1.LabelHostname, "n9")), gangOf("vip", "high", 2, inQueue("vip")),
				fixture.Pod("vip-0", fixture.In("vip"), fixture.Selecting(corev1.LabelHostname, "n1")),
				fixture.Pod("vip-1", fixture.In("vip"), fixture.Selecting(corev1.LabelHostname, "n9"))),
			happens: func(l *run) {
				drop(l, &schedulingv1beta1.PodGroup{}, "vip")
				drop(l, &corev1.Pod{}, "vip-0")
				drop(l, &corev1.Pod{}, "vip-1")
			}},
		"a pod is labelled": {kind: "pods", causes: causes(wake.PodRelabelled), situations: []situation{free},
			objects: objects(fixture.Node("n1", "cpu=2"), preemptor(fixture.Near("app", "x")), fixture.Pod("mate", fixture.On("n1"))),
			happens: alter(&corev1.Pod{}, "mate", fixture.Labelled("app", "x"))},
		"a pod that attracts is bound": {kind: "pods", causes: causes(wake.PodPlaced), situations: []situation{free},
			objects: objects(fixture.Node("n1", "cpu=2"), preemptor(fixture.Near("app", "x"))),
			happens: come(fixture.Pod("mate", fixture.On("n1"), fixture.Labelled("app", "x")))},
	}
}

// vip is a queue that comes before the other, and an idle node.
func vip() []runtime.Object {
	return objects(fixture.Node("n9", "cpu=1"), fixture.Queue("vip", func(q *schedulingv1beta1.Queue) { q.Spec.Priority = 9 }))
}

func inQueue(name string) func(*schedulingv1beta1.PodGroup) {
	return func(g *schedulingv1beta1.PodGroup) { g.Spec.Queue = name }
}

// ofClass makes a quota bound the pods of a PriorityClass.
func ofClass(quota *corev1.ResourceQuota, class string) *corev1.ResourceQuota {
	quota.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
		ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{class}}}}
	return quota
}

func important(p *corev1.Pod) { p.Spec.Priority = new(int32(20)) }
