package differential

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/simulator"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

// feature is something that a scenario may have in addition to nodes, queues, gangs and pods.
type feature string

const (
	tree        feature = "tree"
	quotas      feature = "quotas"
	budgets     feature = "budgets"
	volumes     feature = "volumes"
	devices     feature = "devices"
	hyperNodes  feature = "hypernodes"
	affinity    feature = "affinity"
	spread      feature = "spread"
	gates       feature = "gates"
	foreign     feature = "pods of other schedulers"
	leaving     feature = "leaving"
	coolDowns   feature = "cool-downs"
	subgroups   feature = "subgroups"
	roles       feature = "roles"
	ports       feature = "ports"
	shares      feature = "shares"
	nodeGroups  feature = "node groups"
	images      feature = "images"
	loneClasses feature = "lone pods"
	latecomers  feature = "pods that come late"
	crashes     feature = "crashes"
	deadlines   feature = "waiting times"
	refusals    feature = "refusals"
	ranks       feature = "ranks of pods"
	upstream    feature = "as upstream"
	lentNodes   feature = "lent nodes"
	memory      feature = "memory"
	many        feature = "many"
	loads       feature = "loads"
	extenders   feature = "extenders"
	subtrees    feature = "guaranteed shares next to other queues"
	cuts        feature = "queues that give back"
	restarts    feature = "policies that restart"
	successors  feature = "pods that replace others"
	cordons     feature = "cordons while plans are in force"
	closing     feature = "queues that close"
	sharedClaim feature = "claims that pods share"
	asInstalled feature = "the configuration as installed"
)

// features are how often scenarios have them: once in so many.
var features = []struct {
	feature
	in int
}{{tree, 4}, {quotas, 6}, {budgets, 6}, {volumes, 6}, {devices, 8}, {hyperNodes, 6}, {affinity, 8}, {spread, 8}, {gates, 8},
	{foreign, 6}, {leaving, 4}, {coolDowns, 8}, {subgroups, 10}, {roles, 8}, {ports, 12}, {shares, 2}, {nodeGroups, 14}, {images, 14},
	{loneClasses, 5}, {latecomers, 5}, {crashes, 5}, {deadlines, 10}, {refusals, 6}, {ranks, 8}, {upstream, 8},
	{lentNodes, 14}, {memory, 6}, {many, 10}, {loads, 14}, {extenders, 16},
	{subtrees, 4}, {cuts, 6}, {restarts, 6}, {successors, 6}, {cordons, 6}, {closing, 8}, {sharedClaim, 12}, {asInstalled, 10}}

// everywhere are the features that all scenarios are to have besides.
var everywhere = sync.OnceValue(func() (all []feature) {
	for name := range strings.SplitSeq(os.Getenv(featuresEnv), ",") {
		for _, f := range features {
			if name == "all" && f.feature != asInstalled || string(f.feature) == name {
				all = append(all, f.feature)
			}
		}
	}
	return all
})

// maker makes a random scenario.
type maker struct {
	chooser
	*scenario
	has                         map[feature]bool
	births                      int
	nodes, queues, groups, pods []string
	runs                        map[string]bool // groups with pods that run
	free                        map[string]int  // CPUs and devices that are left of each node
	late                        []latecomer
}

// latecomer is a gang of a batch Job, whose pods are made when it is admitted.
type latecomer struct {
	name string
	pods []runtime.Object // and what is made for them
}

// makeScenario makes the scenario of a seed, without some features.
func makeScenario(seed uint64, without ...feature) *scenario {
	m := &maker{chooser: newChooser(seed), scenario: &scenario{policies: map[string]restartPolicy{}}, has: map[feature]bool{}, runs: map[string]bool{}, free: map[string]int{}}
	for _, f := range features {
		m.has[f.feature] = m.once(f.in) || slices.Contains(everywhere(), f.feature)
	}
	for _, f := range without {
		m.has[f] = false
	}
	if m.has[restarts] && m.once(2) { // pods of unequal rank, which come and go
		m.has[ranks], m.has[successors], m.has[many] = true, true, true
	}
	m.configure()
	if m.has[successors] {
		m.replaced = simulator.Successor{Name: "-r", After: time.Duration(m.IntN(3)) * time.Second}
	}
	m.makeClasses()
	nodes, gangs := 1+m.IntN(3)+m.IntN(2)*m.IntN(3), 1+m.IntN(3)
	if m.has[many] {
		nodes, gangs = nodes+3, gangs+3
	}
	for i := range nodes {
		m.makeNode(fmt.Sprintf("n%d", i))
	}
	m.makeSurroundings()
	for i := range 1 + m.IntN(4) {
		m.makeQueue(fmt.Sprintf("q%d", i))
	}
	for i := range 1 + m.IntN(4) {
		m.makeGang(fmt.Sprintf("r%d", i), true)
	}
	if !m.once(3) {
		m.fill()
	}
	for i := range gangs {
		m.makeGang(fmt.Sprintf("w%d", i), false)
	}
	if m.has[crashes] {
		m.changes = append(m.changes, timed{change: m.crash(), isSudden: true})
	}
	if m.has[cordons] {
		m.changes = append(m.changes, timed{change: m.cordonSoon(), isSudden: true})
	}
	if m.has[closing] {
		m.changes = append(m.changes, timed{m.close(), m.once(2), m.IntN(4)})
	}
	if m.has[loads] {
		m.changes = append(m.changes, timed{change: m.measure(), isSudden: true})
	}
	if m.has[refusals] {
		m.changes = append(m.changes, timed{change: m.refusal(), isSudden: true})
	}
	for range 1 + m.IntN(4) {
		m.changes = append(m.changes, timed{m.anyChange(), m.once(5), m.IntN(3)})
	}
	return m.scenario
}

func (m *maker) configure() {
	c := configuration{actions: m.oneOf(append([]string{actionLists[0], actionLists[0], actionLists[0]}, actionLists...)...),
		sharer: m.oneOf("capacity", "capacity", "proportion", "", "guaranteed-shares"), tree: m.has[tree] && !m.once(3), whole: !m.once(3)}
	add := func(name string, on bool) {
		if on {
			c.plugins = append(c.plugins, name)
		}
	}
	add("cdp", m.has[coolDowns])
	add("pdb", m.has[budgets] && m.once(2))
	add("overcommit", m.once(4))
	add("resourcequota", m.has[quotas])
	add("binpack", m.once(4))
	add("nodegroup", m.has[nodeGroups])
	add("network-topology-aware", m.has[hyperNodes])
	add("drf", m.once(6))
	add("sla", m.has[deadlines])
	add("extender", m.has[extenders])
	add("usage", m.has[loads])
	add("tdm", m.has[lentNodes])
	if m.has[upstream] {
		for _, line := range []string{"preemptableByDefault: true", "queuePriority: order", "victimVote: upstream"} {
			if m.once(2) {
				c.upstream = append(c.upstream, line)
			}
		}
		c.preset = m.oneOf("", "kube-1.8")
	}
	if m.has[subtrees] && c.sharer != "guaranteed-shares" {
		c.subtree = "q0"
		c.tree = c.tree || m.once(2)
	}
	c.delay = m.oneOf("", "1s", "1s")
	if m.has[cuts] {
		c.actions += ", shuffle"
		if c.sharer != "guaranteed-shares" && c.subtree == "" {
			c.sharer = "guaranteed-shares"
		}
	}
	if c.asInstalled = m.has[asInstalled]; c.asInstalled {
		c = configuration{asInstalled: true}
	}
	m.configuration = c
}

func (m *maker) add(o runtime.Object) {
	m.births++
	meta := o.(metav1.Object)
	if meta.GetCreationTimestamp().Time.Equal(fixture.Birth) {
		meta.SetCreationTimestamp(metav1.NewTime(fixture.Birth.Add(time.Duration(m.births) * time.Second)))
	}
	m.objects = append(m.objects, o)
}

func (m *maker) makeClasses() {
	for _, class := range fixture.PriorityClasses() {
		m.add(class)
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.Namespace, UID: "work-uid", Labels: map[string]string{"team": "a"}}}
	m.add(space)
}

func (m *maker) makeNode(name string) {
	cpus := m.oneOf("2", "2", "1", "3", "4")
	asks := "cpu=" + cpus + " memory=8Gi"
	if m.once(6) {
		asks += " pods=2"
	}
	n := fixture.Node(name, asks)
	n.Labels["zone"] = m.oneOf("a", "b")
	n.Labels["disk"] = name
	if m.has[nodeGroups] {
		n.Labels[schedulingv1beta1.NodeGroupNameKey] = m.oneOf("g0", "g1")
	}
	if m.has[lentNodes] && m.once(2) {
		n.Labels[schedulingv1beta1.RevocableZoneKey] = m.oneOf("lent", "lent", "other")
	}
	if m.once(12) {
		n.Spec.Taints = []corev1.Taint{{Key: "kept", Effect: corev1.TaintEffectNoSchedule}}
	}
	if m.once(16) {
		n.Spec.Unschedulable = true
	}
	m.nodes = append(m.nodes, name)
	fmt.Sscan(cpus, new(int))
	m.free[name] = int(n.Status.Allocatable.Cpu().Value())
	m.add(n)
}

// makeSurroundings makes what belongs to the features.
func (m *maker) makeSurroundings() {
	if m.has[hyperNodes] {
		for i, name := range m.nodes {
			if !m.once(5) {
				m.add(fixture.HyperNode("h-"+name, 1, name))
			}
			_ = i
		}
		if m.once(2) {
			m.add(fixture.HyperNode("zone-a", 2, "zone=a"))
		}
		m.add(fixture.HyperNode("top", 3, "~n.*"))
	}
	if m.has[volumes] {
		m.add(fixture.LateClass("late", m.oneOf("", "disks.example.com")))
		m.add(fixture.EarlyClass("early", "disks.example.com"))
		for _, name := range m.nodes {
			if m.once(2) {
				m.add(fixture.Volume("v-"+name, "late", m.oneOf("1Gi", "1Gi", "500Mi"), "disk", name))
			}
			if m.once(2) {
				m.add(fixture.Driver(name, int32(m.IntN(3))))
			}
		}
		if m.once(3) {
			m.add(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "disks.example.com", UID: "driver"},
				Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}})
		}
	}
	if m.has[devices] {
		m.add(fixture.Devices("gpu"))
		for _, name := range m.nodes {
			if m.once(2) {
				m.add(fixture.Slice(name, 1+m.IntN(2)))
			}
		}
	}
	if m.has[budgets] {
		least := m.IntN(3)
		m.add(fixture.BudgetKeeping("b0", m.oneOf("x", "y"), least))
	}
	if m.has[quotas] {
		m.add(quota("quota", m.oneOf("pods=3", "requests.cpu=3", "requests.cpu=4 pods=5", "cpu=2")))
	}
	if m.has[foreign] {
		for i := range 1 + m.IntN(2) {
			p := fixture.Pod(fmt.Sprintf("s%d", i), fixture.Asks("cpu=1"), fixture.Labelled("app", m.oneOf("x", "y")))
			p.Spec.SchedulerName = "other"
			if m.settle(p, 1) {
				if i == 1 { // it is to have the room, and waits
					p.Status, p.Spec.NodeName = corev1.PodStatus{Phase: corev1.PodPending, NominatedNodeName: p.Spec.NodeName}, ""
				}
				m.pods = append(m.pods, p.Name)
				m.add(p)
			}
		}
	}
}

func quota(name, hard string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name, UID: "quota"},
		Spec: corev1.ResourceQuotaSpec{Hard: fixture.List(hard)}}
}

func (m *maker) makeQueue(name string) { m.queues = append(m.queues, name); m.add(m.queue(name)) }

// queue is a random queue.
func (m *maker) queue(name string) *schedulingv1beta1.Queue {
	return fixture.Queue(name, func(q *schedulingv1beta1.Queue) {
		q.Spec.Weight = int32(1 + m.IntN(2))
		if m.once(3) {
			q.Spec.Priority = int32(m.IntN(3))
		}
		if m.has[shares] {
			q.Spec.Deserved = fixture.List(m.oneOf("cpu=1", "", "cpu=2", "cpu=3"))
			q.Spec.Guarantee.Resource = fixture.List(m.oneOf("", "", "", "cpu=1"))
			q.Spec.Capability = fixture.List(m.oneOf("", "", "cpu=2", "cpu=3"))
		}
		if m.once(8) {
			q.Spec.Reclaimable = new(false)
		}
		if m.once(12) {
			q.Status.State = schedulingv1beta1.QueueState(m.oneOf("Closed", "Closing"))
		}
		if m.has[tree] && len(m.queues) > 1 && m.once(2) {
			q.Spec.Parent = m.oneOf(m.queues[0], "nowhere", m.queues[0])
		}
		if m.configuration.subtree != "" && len(m.queues) > 1 && m.once(2) {
			q.Spec.Parent = m.configuration.subtree
		}
		if m.has[nodeGroups] && m.once(2) {
			q.Spec.Affinity = &schedulingv1beta1.Affinity{NodeGroupAffinity: &schedulingv1beta1.NodeGroupAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []string{m.oneOf("g0", "g1")}}}
		}
		if m.configuration.hasGuarantees() && m.once(2) {
			q.Spec.Guarantee.Resource = fixture.List(m.oneOf("cpu=1", "cpu=2", "cpu=4"))
			key, value := m.property()
			metav1.SetMetaDataAnnotation(&q.ObjectMeta, key, value)
		}
		if m.has[cuts] && m.once(2) {
			metav1.SetMetaDataAnnotation(&q.ObjectMeta, schedulingv1beta1.QuotaPreemptionDelayKey, m.oneOf("1s", "3s", "30s"))
			q.Spec.Capability = fixture.List(m.oneOf("cpu=1", "cpu=2", "pods=1"))
		}
	})
}

// settle makes a pod run where there is room for so many CPUs.
func (m *maker) settle(p *corev1.Pod, cpus int) bool {
	first := m.IntN(len(m.nodes))
	for i := range m.nodes {
		name := m.nodes[(first+i)%len(m.nodes)]
		if m.free[name] < cpus {
			continue
		}
		m.free[name] -= cpus
		fixture.On(name)(p)
		at := metav1.NewTime(fixture.Birth.Add(time.Duration(m.IntN(4)) * time.Minute))
		p.Status.StartTime = &at
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at}}
		return true
	}
	return false
}

// makeGang makes a gang with its pods. If it runs, its pods do as far as there is room.
func (m *maker) makeGang(name string, runs bool) {
	objects := m.gang(name, runs)
	if !runs && m.has[latecomers] && !m.once(3) {
		m.late = append(m.late, latecomer{name: name, pods: objects[1:]})
		objects = ofJob(objects)
	}
	for _, o := range objects {
		m.add(o)
		if p, ok := o.(*corev1.Pod); ok {
			m.pods = append(m.pods, p.Name)
		}
	}
	m.groups = append(m.groups, name)
	m.runs[name] = runs
	if m.has[restarts] && m.once(2) {
		m.policies[name] = restartPolicies[m.IntN(len(restartPolicies))]
	}
}

// ofJob leaves of a gang and its pods the gang, as the controller of a batch Job makes it before its pods.
func ofJob(objects []runtime.Object) []runtime.Object {
	g := objects[0].(*schedulingv1beta1.PodGroup)
	g.OwnerReferences = []metav1.OwnerReference{{APIVersion: batchv1alpha1.SchemeGroupVersion.String(), Kind: "Job", Name: g.Name, UID: "job", Controller: new(true)}}
	wanted := corev1.ResourceList{}
	for _, o := range objects[1:] {
		if p, ok := o.(*corev1.Pod); ok && int32(indexOf(p)) < g.Spec.MinMember {
			for name, amount := range p.Spec.Containers[0].Resources.Requests {
				sum := wanted[name]
				sum.Add(amount)
				wanted[name] = sum
			}
		}
	}
	g.Spec.MinResources = &wanted
	fixture.PendingAdmission(g)
	return objects[:1]
}

// indexOf is the number at the end of a pod's name.
func indexOf(p *corev1.Pod) (i int) {
	fmt.Sscanf(p.Name[strings.LastIndex(p.Name, "-")+1:], "%d", &i)
	return i
}

// fill makes gangs of low priority take what is left of the nodes, so that the jobs that wait need room.
func (m *maker) fill() {
	for i := 0; i < 3 && m.hasFree(); i++ {
		name := fmt.Sprintf("f%d", i)
		m.makeGang(name, true)
		g := m.objects[slices.IndexFunc(m.objects, func(o runtime.Object) bool {
			g, ok := o.(*schedulingv1beta1.PodGroup)
			return ok && g.Name == name
		})].(*schedulingv1beta1.PodGroup)
		g.Annotations[schedulingv1beta1.PreemptableKey], g.Spec.PriorityClassName = "true", "low"
	}
}

func (m *maker) hasFree() bool {
	for _, cpus := range m.free {
		if cpus > 0 {
			return true
		}
	}
	return false
}

// gang is a random gang and its pods, and what is made for them.
func (m *maker) gang(name string, runs bool) (objects []runtime.Object) {
	size := 1 + m.IntN(3)
	if m.has[many] && m.once(2) {
		size += 3
	}
	least := size
	if runs {
		least = min(size, m.IntN(3))
	} else if m.once(3) {
		least = 1
	}
	queue := "default"
	if len(m.queues) > 0 && !m.once(12) {
		queue = m.oneOf(m.queues...)
	} else if m.once(3) {
		queue = "missing"
	}
	g := fixture.Group(name, queue, int32(least))
	if runs {
		g.Spec.PriorityClassName = m.oneOf("", "low", "low", "middle")
		g.Status.Phase = schedulingv1beta1.PodGroupRunning
	} else {
		g.Spec.PriorityClassName = m.oneOf("high", "middle", "high", "", "polite")
	}
	lone := size == 1 && m.has[loneClasses] && m.once(2)
	if lone {
		g.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: name + "-0", UID: "owner", Controller: new(true)}}
	}
	marked := runs && !m.once(4)
	if marked && m.once(2) {
		g.Annotations[schedulingv1beta1.PreemptableKey] = "true"
	}
	if !runs && m.once(2) {
		fixture.PendingAdmission(g)
		if m.once(2) {
			fixture.Wanting(m.oneOf("cpu=1", "cpu=2", fmt.Sprintf("cpu=%d", size)))(g)
		}
	}
	if m.has[roles] && m.once(2) {
		fixture.NeedingOf("master", 1)(g)
	}
	if m.has[hyperNodes] && m.once(2) {
		fixture.Within(1 + m.IntN(2))(g)
	}
	if m.has[deadlines] && m.once(2) {
		g.Annotations[schedulingv1beta1.SLAWaitingTimeKey] = m.oneOf("1m", "5s", "4m")
	}
	parts := m.has[subgroups] && m.once(2)
	if parts {
		fixture.Parts("part", int32(1+m.IntN(2)), int32(m.IntN(2)), nil)(g)
	}
	objects = append(objects, g)
	cpus := 1 + m.IntN(5)/4
	for i := range size {
		p := fixture.Pod(fmt.Sprintf("%s-%d", name, i), fixture.In(name), fixture.As(m.oneOf("worker", "worker", "master"), i),
			fixture.Asks(m.asks(cpus)), fixture.Labelled("app", m.oneOf("x", "y")))
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: "job", Controller: new(true)}}
		p.Spec.TerminationGracePeriodSeconds = new(int64(m.oneOfInts(5, 30, 30, 600)))
		if marked && g.Annotations[schedulingv1beta1.PreemptableKey] == "" {
			p.Annotations[schedulingv1beta1.PreemptableKey] = "true"
		}
		if parts {
			p.Labels["part"] = fmt.Sprint(i / 2)
		}
		if m.once(16) {
			fixture.Asks("")(p)
		}
		objects = append(objects, m.adorn(p, runs)...)
		if runs {
			m.settle(p, cpus)
		}
		if p.Spec.NodeName != "" {
			p.Spec.SchedulingGates = nil
			if m.has[leaving] && m.once(3) {
				seconds := *p.Spec.TerminationGracePeriodSeconds
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: beginning.Add(time.Duration(seconds) * time.Second)}, &seconds
			}
		}
		objects = append(objects, p)
	}
	return objects
}

// asks is what a pod of so many CPUs requests.
func (m *maker) asks(cpus int) string {
	text := fmt.Sprintf("cpu=%d", cpus)
	if m.has[memory] {
		text += " memory=" + m.oneOf("1Gi", "2Gi", "5Gi")
	}
	return text
}

func (m *maker) oneOfInts(numbers ...int) int { return numbers[m.IntN(len(numbers))] }

// adorn gives a pod what the features of the scenario have for it, and returns what is made for it.
func (m *maker) adorn(p *corev1.Pod, runs bool) (made []runtime.Object) {
	switch {
	case m.has[affinity] && m.once(3):
		m.oneOfFuncs(fixture.ApartFrom("app", m.oneOf("x", "y")), fixture.Near("app", m.oneOf("x", "y")))(p)
	case m.has[spread] && m.once(3):
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: m.oneOf("zone", corev1.LabelHostname),
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Labels["app"]}}}}
	}
	if m.once(10) {
		fixture.Selecting("zone", m.oneOf("a", "b"))(p)
	}
	if m.once(16) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: m.oneOf("kept", "kept", corev1.TaintNodeUnschedulable, ""), Operator: corev1.TolerationOpExists}}
	}
	if m.has[gates] && m.once(3) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}}
	}
	if m.has[ports] && m.once(2) {
		fixture.OnPort(8080)(p)
	}
	if m.has[coolDowns] && m.once(2) {
		p.Annotations[schedulingv1beta1.CooldownTimeKey] = m.oneOf("1m", "100h", "62m")
	}
	if m.has[ranks] && m.once(2) {
		p.Annotations[schedulingv1beta1.TaskPriorityAnnotationKey] = m.oneOf("1", "5", "-2")
	}
	if m.has[lentNodes] && m.once(2) {
		p.Annotations[schedulingv1beta1.RevocableZoneKey] = "*"
	}
	if m.has[images] {
		p.Spec.Containers[0].Image = m.oneOf("busybox", "big")
	}
	if m.has[volumes] && !runs && m.once(2) {
		name := "c-" + p.Name
		fixture.Mounting(name)(p)
		if !m.once(4) {
			made = append(made, fixture.Claim(name, m.oneOf("late", "late", "early", "missing")))
		}
	}
	if m.has[devices] && m.once(2) {
		switch name := "d-" + p.Name; m.IntN(3) {
		case 0:
			if !runs {
				fixture.Asks("cpu=1 deviceclass.resource.kubernetes.io/gpu=1")(p)
			}
		default:
			if m.has[sharedClaim] && m.once(2) {
				name = "d-" + p.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey]
			}
			if !runs {
				fixture.Using(name)(p)
				if !m.once(4) {
					made = append(made, fixture.DeviceClaim(name, m.oneOf("gpu", "gpu", "other"), 1))
				}
			}
		}
	}
	return made
}

func (m *maker) oneOfFuncs(all ...func(*corev1.Pod)) func(*corev1.Pod) { return all[m.IntN(len(all))] }
