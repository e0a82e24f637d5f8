package scheduler_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// placing is a load for a cluster: gangs of equal size, of which each pod gets what a function gives it.
type placing struct {
	nodes, gangs, size int
	node               func(i int) []func(*corev1.Node)
	pod                func(gang, index int) []func(*corev1.Pod)
	queue              func(gang int) string
	prepare            func(*loop.Loop)
	configuration      string
}

// run places all pods of the load in one cycle, once for each iteration.
func (p placing) run(b *testing.B) {
	var spent time.Duration
	for range b.N {
		b.StopTimer()
		w := p.world(b)
		began := cpuTime(b)
		b.StartTimer()
		result := w.Scheduler.Cycle(w.Now, nil)
		b.StopTimer()
		spent += cpuTime(b) - began
		if got := len(result.Decisions.Binds); got != p.gangs*p.size {
			b.Fatalf("%d pods were bound, want %d: %s", got, p.gangs*p.size, result.Panic)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(p.gangs*p.size*b.N)/b.Elapsed().Seconds(), "pods/s")
	b.ReportMetric(float64(spent.Milliseconds())/float64(b.N), "cpu-ms/op") // which says more than the clock while others use the machine
}

// cpuTime is the CPU time that the process has used.
func cpuTime(b testing.TB) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func (p placing) world(b testing.TB) *loop.Loop {
	w := loop.New(b, p.configuration)
	if p.prepare != nil {
		p.prepare(w)
	}
	for i := range p.nodes {
		var options []func(*corev1.Node)
		if p.node != nil {
			options = p.node(i)
		}
		w.Set(fixture.Node(fmt.Sprintf("node-%04d", i), "cpu=32 memory=256Gi nvidia.com/gpu=8", options...))
	}
	for i := range p.gangs {
		group, queue := fmt.Sprintf("gang-%04d", i), "default"
		if p.queue != nil {
			queue = p.queue(i)
		}
		w.Set(fixture.Group(group, queue, int32(p.size), fixture.PendingAdmission))
		for j := range p.size {
			options := []func(*corev1.Pod){fixture.In(group), fixture.As("worker", j)}
			w.Set(fixture.Pod(fmt.Sprintf("%s-worker-%d", group, j), append(options, p.pod(i, j)...)...))
		}
	}
	return w
}

// kindOf spreads kinds over gangs of 20: whole gangs are alike as long as there are not more kinds than gangs.
func kindOf(kinds, gangs, gang, index int) int {
	if kinds <= gangs {
		return gang % kinds
	}
	return (gang*20 + index) % kinds
}

// ofKind gives a pod an image and requests that no pod of another kind has.
func ofKind(k int) []func(*corev1.Pod) {
	request := fmt.Sprintf("cpu=%dm memory=%dMi", 500+100*(k%20)+k/20, 1024+256*(k%20)+k/20)
	if k%4 == 0 {
		request += " nvidia.com/gpu=1"
	}
	return []func(*corev1.Pod){fixture.Asks(request), func(p *corev1.Pod) {
		p.Spec.Containers[0].Image = fmt.Sprintf("registry.example.com/team/app-%d:v1", k)
	}}
}

// BenchmarkPlaceKinds places 10,000 pods in gangs of 20 onto 5,000 empty nodes in one cycle. The kinds differ in what
// the case says.
func BenchmarkPlaceKinds(b *testing.B) {
	const nodes, gangs, size = 5000, 500, 20
	load := func(pod func(gang, index int) []func(*corev1.Pod)) placing {
		return placing{nodes: nodes, gangs: gangs, size: size, pod: pod}
	}
	for _, kinds := range []int{20, 500, 10000} {
		b.Run(fmt.Sprintf("images and requests/kinds=%d", kinds), func(b *testing.B) {
			load(func(i, j int) []func(*corev1.Pod) { return ofKind(kindOf(kinds, gangs, i, j)) }).run(b)
		})
	}
	b.Run("images and requests/kinds=500 mixed", func(b *testing.B) {
		load(func(i, j int) []func(*corev1.Pod) { return ofKind((i*size + j) % 500) }).run(b)
	})
	b.Run("images that nodes hold/kinds=500", func(b *testing.B) {
		l := load(func(i, j int) []func(*corev1.Pod) { return ofKind(kindOf(500, gangs, i, j)) })
		l.node = func(i int) []func(*corev1.Node) {
			return []func(*corev1.Node){func(n *corev1.Node) {
				for k := range 10 {
					n.Status.Images = append(n.Status.Images, corev1.ContainerImage{SizeBytes: 300 << 20,
						Names: []string{fmt.Sprintf("registry.example.com/team/app-%d:v1", (i*10+k)%500)}})
				}
			}}
		}
		l.run(b)
	})
	differing := map[string]func(k int, p *corev1.Pod){
		"node selectors": func(k int, p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": fmt.Sprint(k % 50)} },
		"tolerations": func(k int, p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "team", Value: fmt.Sprint(k), Effect: corev1.TaintEffectNoSchedule}}
		},
		"host ports": func(k int, p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: int32(10000 + k), ContainerPort: 80}}
		},
		"labels": func(k int, p *corev1.Pod) { p.Labels["job"] = fmt.Sprint(k) },
		"named nodes": func(k int, p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: fmt.Sprintf("node-%04d", k%5000)}
		},
	}
	for _, kinds := range []int{500, 10000} {
		for _, name := range []string{"node selectors", "tolerations", "host ports", "labels", "named nodes"} {
			if name == "named nodes" && kinds < 10000 { // a node has room for some pods only
				continue
			}
			b.Run(fmt.Sprintf("%s/kinds=%d", name, kinds), func(b *testing.B) {
				l := load(func(i, j int) []func(*corev1.Pod) {
					k := kindOf(kinds, gangs, i, j)
					options := []func(*corev1.Pod){fixture.Asks("cpu=1 memory=2Gi"), func(p *corev1.Pod) { differing[name](k, p) }}
					if name == "node selectors" {
						options = append(options, ofKind(k)...)
					}
					return options
				})
				l.node = func(i int) []func(*corev1.Node) {
					return []func(*corev1.Node){func(n *corev1.Node) { n.Labels["pool"] = fmt.Sprint(i % 50) }}
				}
				l.run(b)
			})
		}
	}
}

// BenchmarkPlaceMany places pods in gangs of 20 onto empty nodes in one cycle: five pods for each node, and one kind
// for 100 pods.
func BenchmarkPlaceMany(b *testing.B) {
	for _, nodes := range []int{5000, 50_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			gangs, kinds := nodes*5/20, nodes/20
			placing{nodes: nodes, gangs: gangs, size: 20, pod: func(i, j int) []func(*corev1.Pod) { return ofKind(kindOf(kinds, gangs, i, j)) }}.run(b)
		})
	}
}

// BenchmarkPlaceApartAndSpread places 2,000 pods in 20 gangs of 100 onto 5,000 empty nodes of three zones, in one
// cycle. The pods of a gang have the affinity, or the spread constraint, that the case says, to each other.
func BenchmarkPlaceApartAndSpread(b *testing.B) {
	term := func(app, key string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
	}
	spread := func(app, key string, action corev1.UnsatisfiableConstraintAction) []corev1.TopologySpreadConstraint {
		return []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: action, LabelSelector: term(app, key).LabelSelector}}
	}
	cases := []struct {
		name string
		give func(app string, spec *corev1.PodSpec)
	}{
		{"apart by hostname", func(app string, spec *corev1.PodSpec) {
			spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(app, corev1.LabelHostname)}}}
		}},
		{"spread over zones", func(app string, spec *corev1.PodSpec) {
			spec.TopologySpreadConstraints = spread(app, "zone", corev1.DoNotSchedule)
		}},
		{"near in a zone", func(app string, spec *corev1.PodSpec) {
			spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(app, "zone")}}}
		}},
		{"rather apart by hostname", func(app string, spec *corev1.PodSpec) {
			spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{Weight: 10, PodAffinityTerm: term(app, corev1.LabelHostname)}}}}
		}},
		{"rather spread over zones", func(app string, spec *corev1.PodSpec) {
			spec.TopologySpreadConstraints = spread(app, "zone", corev1.ScheduleAnyway)
		}},
		{"rather spread over racks", func(app string, spec *corev1.PodSpec) { // 500 of them
			spec.TopologySpreadConstraints = spread(app, "rack", corev1.ScheduleAnyway)
		}},
		{"five preferred terms", func(app string, spec *corev1.PodSpec) {
			spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}, PodAffinity: &corev1.PodAffinity{}}
			for i, key := range []string{corev1.LabelHostname, "rack", "zone"} {
				term := corev1.WeightedPodAffinityTerm{Weight: int32(10 + i), PodAffinityTerm: term(app, key)}
				prefer := &spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
				*prefer = append(*prefer, term)
			}
			for i, key := range []string{"rack", "zone"} {
				term := corev1.WeightedPodAffinityTerm{Weight: int32(10 + i), PodAffinityTerm: term("app-0", key)}
				prefer := &spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
				*prefer = append(*prefer, term)
			}
		}},
		{"mixed terms", func(app string, spec *corev1.PodSpec) { // with selectors of namespaces, label keys, taints and a minimum of domains
			near, domains, honor := term(app, "zone"), int32(2), corev1.NodeInclusionPolicyHonor
			near.NamespaceSelector = &metav1.LabelSelector{}
			near.MatchLabelKeys = []string{"app"}
			spec.Affinity = &corev1.Affinity{
				PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(app, corev1.LabelHostname)}},
				PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
					{Weight: 10, PodAffinityTerm: near}}}}
			spec.TopologySpreadConstraints = append(spread(app, "rack", corev1.DoNotSchedule), spread(app, "zone", corev1.ScheduleAnyway)...)
			spec.TopologySpreadConstraints[0].MinDomains = &domains
			spec.TopologySpreadConstraints[0].NodeTaintsPolicy = &honor
			spec.TopologySpreadConstraints[1].MatchLabelKeys = []string{"app"}
		}},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			placing{nodes: 5000, gangs: 20, size: 100,
				node: func(i int) []func(*corev1.Node) {
					return []func(*corev1.Node){fixture.InZone(fmt.Sprint("z", i%3)), func(n *corev1.Node) { n.Labels["rack"] = fmt.Sprint("r", i%500) }}
				},
				pod: func(gang, _ int) []func(*corev1.Pod) {
					app := fmt.Sprint("app-", gang)
					return []func(*corev1.Pod){fixture.Asks("cpu=1 memory=2Gi"), fixture.Labelled("app", app), func(p *corev1.Pod) { c.give(app, &p.Spec) }}
				}}.run(b)
		})
	}
}

// BenchmarkPlaceManyTerms places 2,000 pods of which each has an affinity term of its own, in gangs of 100 onto 5,000
// nodes. On these run the pods that the case says.
func BenchmarkPlaceManyTerms(b *testing.B) {
	apart := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Labels[key] = value
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}}}}
		}
	}
	for _, running := range []int{0, 100000} {
		for _, label := range []string{"of one label", "of labels of their own"} {
			b.Run(fmt.Sprintf("%s/running=%d", label, running), func(b *testing.B) {
				placing{nodes: 5000, gangs: 20, size: 100,
					prepare: func(w *loop.Loop) {
						for i := range running {
							w.Set(fixture.Pod(fmt.Sprint("running-", i), fixture.On(fmt.Sprintf("node-%04d", i%5000)), fixture.Asks("cpu=100m memory=1Gi"),
								apart("app", fmt.Sprint("running-", i%1000)), func(p *corev1.Pod) { p.Spec.SchedulerName = "another" }))
						}
					},
					pod: func(gang, index int) []func(*corev1.Pod) {
						key, value := "app", fmt.Sprint("app-", gang*100+index)
						if label != "of one label" {
							key = "key-" + value
						}
						return []func(*corev1.Pod){fixture.Asks("cpu=1 memory=2Gi"), apart(key, value)}
					}}.run(b)
			})
		}
	}
}

// BenchmarkPlaceInQueues places 10,000 pods in 500 gangs of 20 kinds onto 5,000 empty nodes in one cycle: in one queue,
// and in the lowest of a tree of 1,000 queues on three levels.
func BenchmarkPlaceInQueues(b *testing.B) {
	const gangs, size = 500, 20
	capacity := strings.ReplaceAll(conf.DefaultYAML, "name: proportion", "name: capacity\n    enableHierarchy: true")
	for _, plugin := range []string{"proportion", "capacity"} {
		for _, queues := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%s/queues=%d", plugin, queues), func(b *testing.B) {
				p := placing{nodes: 5000, gangs: gangs, size: size,
					pod: func(i, j int) []func(*corev1.Pod) { return ofKind(kindOf(20, gangs, i, j)) }}
				if plugin == "capacity" {
					p.configuration = capacity
				}
				if queues > 1 {
					const departments, teams = 10, 90
					lowest := queues - departments - teams
					p.prepare = func(w *loop.Loop) {
						for i := range departments {
							w.Set(fixture.Queue(fmt.Sprintf("department-%d", i)))
						}
						for i := range teams {
							w.Set(fixture.Queue(fmt.Sprintf("team-%d", i), fixture.Below(fmt.Sprintf("department-%d", i%departments))))
						}
						for i := range lowest {
							w.Set(fixture.Queue(fmt.Sprintf("queue-%d", i), fixture.Below(fmt.Sprintf("team-%d", i%teams))))
						}
					}
					p.queue = func(gang int) string { return fmt.Sprintf("queue-%d", gang*7%lowest) }
				}
				p.run(b)
			})
		}
	}
}

// BenchmarkManyLabels measures what a pod costs whose node selector names 5,000 labels that no other does, in front of
// 1,000 nodes: the events that show it, and the cycle that finds no node for it.
func BenchmarkManyLabels(b *testing.B) {
	c := busyCluster{nodes: 1000, perNode: 4, minimum: 10, preemptable: true}
	w := c.fill(b)
	runCycle(b, w, nil)
	spent := time.Duration(0)
	for i := range b.N {
		b.StopTimer()
		name := fmt.Sprintf("labels-%06d", added)
		added++
		pod := fixture.Pod(name, fixture.In(name), fixture.Asks("cpu=1"))
		pod.Spec.NodeSelector = map[string]string{}
		for k := range 5000 {
			pod.Spec.NodeSelector[fmt.Sprintf("example.com/label-%d-%d", i, k)] = "some-value"
		}
		events := []cache.Event{cache.Set{Object: fixture.Group(name, "q0", 1)}, cache.Set{Object: pod}}
		from := cpuTime(b)
		b.StartTimer()
		runCycle(b, w, events)
		b.StopTimer()
		spent += cpuTime(b) - from
	}
	b.ReportMetric(float64(spent.Microseconds())/float64(b.N)/1000, "cpu-ms/op")
}
