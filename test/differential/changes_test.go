package differential

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/simulator"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/test/fixture"
)

// anyChange is something that may happen in the scenario.
func (m *maker) anyChange() change {
	makers := []func() change{m.changeNode, m.changeNode, m.changeNode, m.changeQueue, m.changeQueue, m.changePod, m.changePod, m.changePod,
		m.changeGang, m.changeGang, m.changeClass, m.passTime, m.changeConfiguration, m.newGang, m.newGang, m.newQueue, m.changeNamespace}
	for _, f := range features {
		if special := m.special(f.feature); m.has[f.feature] && special != nil {
			makers = append(makers, special, special, special, special)
		}
	}
	return makers[m.IntN(len(makers))]()
}

// special are the changes of what belongs to a feature.
func (m *maker) special(f feature) func() change {
	switch f {
	case volumes:
		return m.changeVolumes
	case devices:
		return m.changeDevices
	case hyperNodes:
		return m.changeHyperNode
	case budgets:
		return m.changeBudget
	case quotas:
		return m.changeQuota
	case leaving, deadlines, lentNodes:
		return m.passTime
	case latecomers:
		if len(m.late) > 0 {
			return m.podsCome
		}
	case crashes:
		return m.crash
	case loads:
		return m.measure
	case refusals:
		return m.refusal
	case cordons:
		return m.cordonSoon
	case closing:
		return m.close
	}
	return nil
}

// crash ends the scheduler in the middle of what it writes next, and starts it again.
func (m *maker) crash() change {
	writes, ofPlans := m.IntN(9), !m.once(4)
	return change{fmt.Sprintf("the scheduler is to end after %d writes, only those of plans counted: %t", writes, ofPlans), func(l *run) {
		l.led.Crash(simulator.CrashPlan{Writes: writes, OfPlans: ofPlans, Policy: func() *framework.Policy { return l.configuration.policy() }})
	}}
}

// refusal makes the API server refuse to evict or to bind a pod, or makes the pod outlive its time.
func (m *maker) refusal() change {
	if pod, late := m.oneOf(m.pods...), time.Duration(m.oneOfInts(30, 100, 400))*time.Second; m.once(4) {
		return change{fmt.Sprintf("pod %s: is to leave %s late", pod, late), func(l *run) { l.overdue[pod] = late }}
	}
	pod, times := m.oneOf(m.pods...), 1+m.IntN(2)
	return change{fmt.Sprintf("pod %s: refused %d times", pod, times), func(l *run) { l.refusals[pod] = times }}
}

// measure sets the measured load of a node, too high for more pods or not.
func (m *maker) measure() change {
	node, parts := m.oneOf(m.nodes...), int64(m.oneOfInts(100_000, 900_000, 900_000))
	return change{fmt.Sprintf("node %s: %d millionths of its CPU are in use", node, parts), func(l *run) {
		l.led.Measure(cache.Measured{Node: node, At: l.led.Now(), CPU: parts, Memory: 100_000})
	}}
}

// podsCome makes the pods of a batch Job, as its controller does, if the Job was admitted.
func (m *maker) podsCome() change {
	late := m.late[m.IntN(len(m.late))]
	most := 1 + m.IntN(4)
	return change{fmt.Sprintf("up to %d pods of gang %s come", most, late.name), func(l *run) {
		g, ok := get(l, &schedulingv1beta1.PodGroup{}, late.name)
		if !ok || isOutside(g.Status.Phase) {
			return
		}
		made := 0
		for _, o := range late.pods {
			if _, isThere := get(l, o, o.(metav1.Object).GetName()); isThere || made == most {
				continue
			}
			if p, ok := o.(*corev1.Pod); ok {
				made++
				p = p.DeepCopy()
				p.CreationTimestamp, p.Spec.Priority = metav1.NewTime(l.led.Now()), new(int32)
				o = p
			}
			l.set(o)
		}
	}}
}

func (m *maker) changeNode() change {
	name := m.oneOf(m.nodes...)
	on := func(what string, how func(*corev1.Node)) change {
		return change{fmt.Sprintf("node %s: %s", name, what), func(l *run) { edit(l, &corev1.Node{}, name, how) }}
	}
	switch m.IntN(15) {
	case 10:
		return change{"node " + name + " goes, its pods stay for now", func(l *run) { drop(l, &corev1.Node{}, name) }}
	case 0:
		cpus := m.oneOf("1", "2", "3", "4", "6")
		return on("has "+cpus+" CPU", func(n *corev1.Node) {
			n.Status.Allocatable[corev1.ResourceCPU] = fixture.List("cpu=" + cpus)[corev1.ResourceCPU]
		})
	case 1:
		return on("cordoned or opened", func(n *corev1.Node) { n.Spec.Unschedulable = !n.Spec.Unschedulable })
	case 2:
		return on("loses its taints", func(n *corev1.Node) { n.Spec.Taints = nil })
	case 3:
		return on("gets a taint", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "kept", Effect: corev1.TaintEffectNoSchedule}}
		})
	case 4, 5:
		zone := m.oneOf("a", "b")
		return on("is in zone "+zone, func(n *corev1.Node) { n.Labels["zone"] = zone })
	case 6:
		return on("is not ready", func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
		})
	case 7:
		return on("is ready", func(n *corev1.Node) { n.Status.Conditions = nil })
	case 8:
		group := m.oneOf("g0", "g1", "")
		return on("is in group "+group, func(n *corev1.Node) { n.Labels[schedulingv1beta1.NodeGroupNameKey] = group })
	case 9:
		added := fixture.Node(fmt.Sprintf("n%d", 6+m.IntN(3)), "cpu="+m.oneOf("1", "2", "3"))
		added.Labels["zone"] = m.oneOf("a", "b")
		return change{"node " + added.Name + " joins", func(l *run) { l.set(added) }}
	case 11: // no pod selects by it
		rack := m.oneOf("r0", "r1")
		return on("is in rack "+rack, func(n *corev1.Node) { n.Labels["rack"] = rack })
	case 12:
		disk := m.oneOf(m.nodes...)
		return on("has the disks of "+disk, func(n *corev1.Node) { n.Labels["disk"] = disk })
	case 13:
		return on("is seen", func(n *corev1.Node) {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, "example.com/seen", n.ResourceVersion)
		})
	}
	return change{"node " + name + " goes, and its pods", func(l *run) {
		if _, ok := get(l, &corev1.Node{}, name); !ok {
			return
		}
		drop(l, &corev1.Node{}, name)
		for _, o := range l.led.Objects() {
			if p, ok := o.(*corev1.Pod); ok && p.Spec.NodeName == name {
				l.delete(p)
			}
		}
	}}
}

func (m *maker) changeQueue() change {
	name := m.oneOf(append(m.queues, "q5")...)
	on := func(what string, how func(*schedulingv1beta1.Queue)) change {
		return change{fmt.Sprintf("queue %s: %s", name, what), func(l *run) { edit(l, &schedulingv1beta1.Queue{}, name, how) }}
	}
	if m.configuration.hasGuarantees() && m.once(2) {
		key, value := m.property()
		return on("says "+key+": "+value, func(q *schedulingv1beta1.Queue) { metav1.SetMetaDataAnnotation(&q.ObjectMeta, key, value) })
	}
	switch m.IntN(11) {
	case 10:
		return on("is seen", func(q *schedulingv1beta1.Queue) {
			metav1.SetMetaDataAnnotation(&q.ObjectMeta, "example.com/seen", q.ResourceVersion)
		})
	case 0:
		weight := int32(1 + m.IntN(4))
		return on(fmt.Sprint("weighs ", weight), func(q *schedulingv1beta1.Queue) { q.Spec.Weight = weight })
	case 1:
		text := m.oneOf("", "cpu=1", "cpu=2", "cpu=4")
		return on("deserves "+text, func(q *schedulingv1beta1.Queue) { q.Spec.Deserved = fixture.List(text) })
	case 2, 3:
		text := m.oneOf("", "cpu=2", "cpu=4")
		return on("is capable of "+text, func(q *schedulingv1beta1.Queue) { q.Spec.Capability = fixture.List(text) })
	case 4:
		text := m.oneOf("", "cpu=1")
		return on("is guaranteed "+text, func(q *schedulingv1beta1.Queue) { q.Spec.Guarantee.Resource = fixture.List(text) })
	case 5:
		state := m.oneOf("Open", "Open", "Closed", "Closing")
		return on("is "+state, func(q *schedulingv1beta1.Queue) { q.Status.State = schedulingv1beta1.QueueState(state) })
	case 6:
		priority := int32(m.IntN(3))
		return on(fmt.Sprint("has priority ", priority), func(q *schedulingv1beta1.Queue) { q.Spec.Priority = priority })
	case 7:
		reclaimable := m.once(2)
		return on(fmt.Sprint("is reclaimable ", reclaimable), func(q *schedulingv1beta1.Queue) { q.Spec.Reclaimable = &reclaimable })
	case 8:
		if m.has[tree] {
			parent := m.oneOf("", m.queues[0])
			return on("is below "+parent, func(q *schedulingv1beta1.Queue) {
				if q.Name != parent {
					q.Spec.Parent = parent
				}
			})
		}
		group := m.oneOf("g0", "g1")
		return on("goes to "+group, func(q *schedulingv1beta1.Queue) {
			q.Spec.Affinity = &schedulingv1beta1.Affinity{NodeGroupAffinity: &schedulingv1beta1.NodeGroupAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []string{group}}}
		})
	}
	return change{"queue " + name + " goes", func(l *run) { drop(l, &schedulingv1beta1.Queue{}, name) }}
}

// property is one of what guaranteed shares read of a queue.
func (m *maker) property() (key, value string) {
	all := []struct {
		key    string
		values []string
	}{
		{schedulingv1beta1.PreemptionPolicyKey, []string{"default", "fence", "disabled"}},
		{schedulingv1beta1.PreemptionDelayKey, []string{"1s", "40s"}},
		{schedulingv1beta1.PriorityPolicyKey, []string{"default", "fence"}},
		{schedulingv1beta1.PriorityOffsetKey, []string{"-5", "5"}},
		{schedulingv1beta1.ApplicationSortPolicyKey, []string{"fifo", "fair"}},
		{schedulingv1beta1.ApplicationSortPriorityKey, []string{"enabled", "disabled"}},
		{schedulingv1beta1.MaxApplicationsKey, []string{"1", "3"}},
		{schedulingv1beta1.QuotaPreemptionDelayKey, []string{"0", "2s"}},
	}
	chosen := all[m.IntN(len(all))]
	return chosen.key, m.oneOf(chosen.values...)
}

func (m *maker) newQueue() change {
	q := m.queue(m.oneOf("q5", "missing"))
	return change{"queue " + q.Name + " joins", func(l *run) {
		if _, ok := get(l, q, q.Name); !ok {
			l.set(q)
		}
	}}
}

func (m *maker) newGang() change {
	name := fmt.Sprintf("k%d", m.IntN(3))
	objects := m.gang(name, false)
	return change{"gang " + name + " comes", func(l *run) {
		if _, ok := get(l, &schedulingv1beta1.PodGroup{}, name); ok {
			return
		}
		for _, o := range objects {
			switch o := o.(type) {
			case *corev1.Pod:
				o = o.DeepCopy()
				o.CreationTimestamp = metav1.NewTime(l.led.Now())
				if o.Spec.Priority == nil {
					o.Spec.Priority = new(int32)
				}
				l.set(o)
			case *schedulingv1beta1.PodGroup:
				o = o.DeepCopy()
				o.CreationTimestamp = metav1.NewTime(l.led.Now())
				l.set(o)
			default:
				l.set(o)
			}
		}
	}}
}

func (m *maker) changePod() change {
	name := m.oneOf(m.pods...)
	on := func(what string, how func(*corev1.Pod)) change {
		return change{fmt.Sprintf("pod %s: %s", name, what), func(l *run) { edit(l, &corev1.Pod{}, name, how) }}
	}
	switch m.IntN(12) {
	case 0:
		return on("loses its gates", func(p *corev1.Pod) { p.Spec.SchedulingGates = nil })
	case 1:
		return on("finishes", func(p *corev1.Pod) {
			if p.Spec.NodeName != "" {
				p.Status.Phase = corev1.PodSucceeded
			}
		})
	case 2, 3:
		grace := int64(m.oneOfInts(0, 30, 600))
		return change{fmt.Sprintf("pod %s: is deleted, with grace %d", name, grace), func(l *run) {
			edit(l, &corev1.Pod{}, name, func(p *corev1.Pod) {
				grace := grace // a scenario is led more than once
				if p.Spec.NodeName == "" {
					grace = 0
				}
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: l.led.Now().Add(time.Duration(grace) * time.Second)}, &grace
			})
		}}
	case 4, 5:
		app := m.oneOf("x", "y", "z")
		return on("is labelled "+app, func(p *corev1.Pod) { p.Labels["app"] = app })
	case 6, 7:
		mark := m.oneOf("true", "true", "false")
		return on("marked "+mark, func(p *corev1.Pod) { p.Annotations[schedulingv1beta1.PreemptableKey] = mark })
	case 8:
		return on("its cool-down is taken off", func(p *corev1.Pod) { delete(p.Annotations, schedulingv1beta1.CooldownTimeKey) })
	case 9:
		cpus := m.oneOf("500m", "2", "1")
		return on("is resized to "+cpus, func(p *corev1.Pod) {
			if p.Spec.NodeName != "" {
				fixture.Asks("cpu=" + cpus)(p)
			}
		})
	case 10:
		node := m.oneOf(m.nodes...)
		return change{fmt.Sprintf("pod %s: somebody else binds it to %s", name, node), func(l *run) {
			if _, ok := get(l, &corev1.Node{}, node); !ok {
				return
			}
			edit(l, &corev1.Pod{}, name, func(p *corev1.Pod) {
				if p.Spec.NodeName == "" && len(p.Spec.SchedulingGates) == 0 {
					fixture.On(node)(p)
				}
			})
		}}
	}
	return change{"pod " + name + " goes at once", func(l *run) { drop(l, &corev1.Pod{}, name) }}
}

func (m *maker) changeGang() change {
	name := m.oneOf(m.groups...)
	on := func(what string, how func(*schedulingv1beta1.PodGroup)) change {
		return change{fmt.Sprintf("gang %s: %s", name, what), func(l *run) { edit(l, &schedulingv1beta1.PodGroup{}, name, how) }}
	}
	switch m.IntN(10) {
	case 8:
		return change{"gang " + name + " goes and comes back, its pods stay", func(l *run) {
			if g, ok := get(l, &schedulingv1beta1.PodGroup{}, name); ok {
				l.delete(g)
				g = g.DeepCopy()
				g.UID += "-again"
				g.CreationTimestamp, g.Status = metav1.NewTime(l.led.Now()), schedulingv1beta1.PodGroupStatus{}
				l.set(g)
			}
		}}
	case 0, 1:
		least := int32(m.IntN(4))
		return on(fmt.Sprint("needs ", least), func(g *schedulingv1beta1.PodGroup) { g.Spec.MinMember = least })
	case 2:
		class := m.oneOf("low", "middle", "high", "")
		return on("has class "+class, func(g *schedulingv1beta1.PodGroup) { g.Spec.PriorityClassName = class })
	case 3:
		queue := m.oneOf(m.queues...)
		return on("is in queue "+queue, func(g *schedulingv1beta1.PodGroup) { g.Spec.Queue = queue })
	case 4:
		mark := m.oneOf("true", "false")
		return on("marked "+mark, func(g *schedulingv1beta1.PodGroup) { g.Annotations[schedulingv1beta1.PreemptableKey] = mark })
	case 5:
		return on("wants nothing of the network and has no parts", func(g *schedulingv1beta1.PodGroup) {
			g.Spec.NetworkTopology, g.Spec.SubGroupPolicy = nil, nil
		})
	case 6:
		return on("needs no roles", func(g *schedulingv1beta1.PodGroup) { g.Spec.MinTaskMember = nil })
	case 7:
		text := m.oneOf("cpu=1", "cpu=2")
		return on("asks for "+text, func(g *schedulingv1beta1.PodGroup) { fixture.Wanting(text)(g) })
	}
	return change{"gang " + name + " goes, with its pods", func(l *run) {
		drop(l, &schedulingv1beta1.PodGroup{}, name)
		for _, o := range l.led.Objects() {
			if p, ok := o.(*corev1.Pod); ok && p.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] == name {
				p = p.DeepCopy()
				p.OwnerReferences = nil // no controller creates it again
				l.delete(p)
			}
		}
	}}
}

func (m *maker) changeClass() change {
	name, value := m.oneOf("low", "middle", "high", "polite"), int32(5*m.IntN(5))
	switch m.IntN(4) {
	case 0:
		return change{"class " + name + " goes", func(l *run) { drop(l, &schedulingv1.PriorityClass{}, name) }}
	case 1:
		return change{"class polite preempts", func(l *run) {
			edit(l, &schedulingv1.PriorityClass{}, "polite", func(c *schedulingv1.PriorityClass) { c.PreemptionPolicy = nil })
		}}
	}
	return change{fmt.Sprintf("class %s is worth %d", name, value), func(l *run) {
		edit(l, &schedulingv1.PriorityClass{}, name, func(c *schedulingv1.PriorityClass) { c.Value = value })
	}}
}

func (m *maker) passTime() change {
	d := time.Duration(m.oneOfInts(10, 31, 61, 250)) * time.Second
	return change{"time passes: " + d.String(), func(l *run) { l.pass(d) }}
}

func (m *maker) changeConfiguration() change {
	whole, sharer := m.once(2), m.oneOf("capacity", "proportion", "")
	if m.configuration.asInstalled {
		return m.changeQueue()
	}
	return change{fmt.Sprintf("configuration: whole gangs %t, shares by %q", whole, sharer), func(l *run) {
		l.configuration.whole, l.configuration.sharer = whole, sharer
		if err := l.led.Scheduler().Use(l.configuration.policy()); err != nil {
			panic(err)
		}
	}}
}

func (m *maker) changeNamespace() change {
	return change{"namespace: other labels", func(l *run) {
		edit(l, &corev1.Namespace{}, fixture.Namespace, func(n *corev1.Namespace) { n.Labels = map[string]string{"team": "b"} })
	}}
}

func (m *maker) changeVolumes() change {
	node, pod := m.oneOf(m.nodes...), m.oneOf(m.pods...)
	claim := "c-" + pod
	switch m.IntN(9) {
	case 0:
		made := fixture.Volume(fmt.Sprintf("v%d", m.IntN(3)), "late", "1Gi", "disk", node)
		return change{"volume on " + node + " comes", func(l *run) { l.set(made) }}
	case 1:
		made := fixture.Claim(claim, m.oneOf("late", "early"))
		return change{"claim " + claim + " comes", func(l *run) {
			if _, ok := get(l, made, claim); !ok {
				l.set(made)
			}
		}}
	case 2:
		return change{"claim " + claim + " is bound by hand", func(l *run) {
			edit(l, &corev1.PersistentVolumeClaim{}, claim, func(c *corev1.PersistentVolumeClaim) {
				if c.Spec.VolumeName != "" {
					return
				}
				l.set(fixture.Volume("by-hand-"+claim, *c.Spec.StorageClassName, "1Gi", "disk", node, fixture.OfClaim(claim)))
				fixture.BoundTo("by-hand-" + claim)(c)
			})
		}}
	case 3:
		made := fixture.LateClass(m.oneOf("missing", "late"), m.oneOf("", "disks.example.com"))
		return change{"class of volumes " + made.Name + " comes", func(l *run) { l.set(made) }}
	case 4:
		made := fixture.Driver(node, int32(1+m.IntN(3)))
		return change{"driver of " + node + " attaches more or fewer", func(l *run) { l.set(made) }}
	case 5:
		return change{"driver counts capacity no more", func(l *run) { drop(l, &storagev1.CSIDriver{}, "disks.example.com") }}
	case 6:
		class := "late"
		made := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "capacity-" + node, UID: "capacity"},
			StorageClassName: class, NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{"disk": node}},
			Capacity: new(fixture.List("storage=" + m.oneOf("100Mi", "5Gi"))["storage"])}
		return change{"capacity on " + node, func(l *run) { l.set(made) }}
	case 7:
		return change{"volume v-" + node + " goes", func(l *run) { drop(l, &corev1.PersistentVolume{}, "v-"+node) }}
	}
	return change{"claim " + claim + " goes", func(l *run) { drop(l, &corev1.PersistentVolumeClaim{}, claim) }}
}

func (m *maker) changeDevices() change {
	node, pod := m.oneOf(m.nodes...), m.oneOf(m.pods...)
	switch m.IntN(6) {
	case 0, 1:
		made := fixture.Slice(node, m.IntN(4))
		return change{fmt.Sprintf("node %s has %d devices", node, len(made.Spec.Devices)), func(l *run) { l.set(made) }}
	case 2:
		made := fixture.Devices(m.oneOf("gpu", "other"))
		return change{"class of devices " + made.Name + " comes", func(l *run) { l.set(made) }}
	case 3:
		return change{"class of devices gpu goes", func(l *run) { drop(l, &resourcev1.DeviceClass{}, "gpu") }}
	case 4:
		made := fixture.DeviceClaim("d-"+pod, "gpu", 1)
		return change{"claim of devices " + made.Name + " comes", func(l *run) {
			if _, ok := get(l, made, made.Name); !ok {
				l.set(made)
			}
		}}
	}
	return change{"devices of " + node + " go", func(l *run) { drop(l, &resourcev1.ResourceSlice{}, node+"-devices") }}
}

func (m *maker) changeHyperNode() change {
	node := m.oneOf(m.nodes...)
	switch m.IntN(4) {
	case 0:
		made := fixture.HyperNode("h-"+node, 1, node)
		return change{"HyperNode of " + node + " comes", func(l *run) { l.set(made) }}
	case 1:
		return change{"HyperNode of " + node + " goes", func(l *run) { drop(l, &topologyv1alpha1.HyperNode{}, "h-"+node) }}
	case 2:
		made := fixture.HyperNode("pair", 1, node, m.oneOf(m.nodes...))
		return change{"HyperNode of two comes", func(l *run) { l.set(made) }}
	}
	made := fixture.HyperNode("zone-a", m.oneOfInts(1, 2), "zone=a")
	return change{"HyperNode of zone a", func(l *run) { l.set(made) }}
}

func (m *maker) changeBudget() change {
	least := m.IntN(3)
	made := fixture.BudgetKeeping("b0", m.oneOf("x", "y"), least)
	if m.once(4) {
		return change{"budget goes", func(l *run) { drop(l, &policyv1.PodDisruptionBudget{}, "b0") }}
	}
	return change{fmt.Sprintf("budget: at least %s of %s", made.Spec.MinAvailable, made.Spec.Selector.MatchLabels["app"]), func(l *run) { l.set(made) }}
}

func (m *maker) changeQuota() change {
	made := quota("quota", m.oneOf("pods=3", "pods=6", "requests.cpu=3", "requests.cpu=6"))
	if m.once(4) {
		return change{"quota goes", func(l *run) { drop(l, &corev1.ResourceQuota{}, "quota") }}
	}
	return change{"quota: " + fmt.Sprint(made.Spec.Hard), func(l *run) { l.set(made) }}
}
