package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/test/fixture"
)

// original is the kube-scheduler's own framework with our plugins and weights, over a snapshot that is made again for
// every question.
type original struct {
	framework.Framework
	ctx        context.Context
	snapshot   *snapshot
	namespaces toolscache.Indexer
}

type snapshot struct{ fwk.SharedLister }

func newOriginal(t *testing.T) *original {
	metrics.Register()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	t.Cleanup(cancel)
	set := func(names ...string) config.PluginSet {
		var s config.PluginSet
		for _, name := range names {
			s.Enabled = append(s.Enabled, config.Plugin{Name: name})
		}
		return s
	}
	var scores config.PluginSet
	for _, s := range allScores {
		scores.Enabled = append(scores.Enabled, config.Plugin{Name: s.Name, Weight: int32(s.Weight)})
	}
	profile := &config.KubeSchedulerProfile{
		SchedulerName: "original",
		Plugins: &config.Plugins{
			QueueSort: set("PrioritySort"),
			Bind:      set("DefaultBinder"),
			PreFilter: set("NodeAffinity", "NodePorts", "PodTopologySpread", "InterPodAffinity"),
			Filter:    set(allFilters...),
			PreScore:  set("TaintToleration", "NodeAffinity", "PodTopologySpread", "InterPodAffinity"),
			Score:     scores,
		},
		PluginConfig: []config.PluginConfig{
			{Name: "NodeAffinity", Args: &config.NodeAffinityArgs{}},
			{Name: "PodTopologySpread", Args: &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting}},
			{Name: "InterPodAffinity", Args: &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}},
		},
	}
	factory := informers.NewSharedInformerFactory(nil, 0)
	o := &original{ctx: ctx, snapshot: &snapshot{internalcache.NewEmptySnapshot()},
		namespaces: factory.Core().V1().Namespaces().Informer().GetIndexer()}
	made, err := runtime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile, runtime.WithInformerFactory(factory),
		runtime.WithSnapshotSharedLister(o.snapshot))
	if err != nil {
		t.Fatal(err)
	}
	o.Framework = made
	return o
}

// answers are what is said of one pod, by node.
type answers struct {
	Refusals   map[string]string
	ByObject   map[string]int64 // TaintToleration, NodeAffinity, ImageLocality
	LookAround map[string]int64 // PodTopologySpread, InterPodAffinity
}

// show makes the framework see the model as it is.
func (o *original) show(t *rapid.T, c *model.Cluster) {
	var pods []*corev1.Pod
	var nodes []*corev1.Node
	for _, n := range c.Nodes() {
		if n.Object == nil {
			continue
		}
		nodes = append(nodes, n.Object)
		for _, task := range n.Tasks() {
			if task.Status.Holds() {
				copied := task.Pod.DeepCopy()
				copied.Spec.NodeName = n.Name
				pods = append(pods, copied)
			}
		}
	}
	o.snapshot.SharedLister = internalcache.NewSnapshot(pods, nodes)
	var namespaces []any
	for _, namespace := range c.Namespaces() {
		namespaces = append(namespaces, namespace)
	}
	if err := o.namespaces.Replace(namespaces, ""); err != nil {
		t.Fatal(err)
	}
}

func (o *original) answer(t *rapid.T, c *model.Cluster, pod *corev1.Pod) answers {
	o.show(t, c)
	a := answers{map[string]string{}, map[string]int64{}, map[string]int64{}}
	state := framework.NewCycleState()
	_, refused, _ := o.RunPreFilterPlugins(o.ctx, state, pod)
	var left []fwk.NodeInfo
	for _, n := range c.Nodes() {
		switch {
		case n.Object == nil:
			a.Refusals[n.Name] = unknown.Text
			continue
		case !refused.IsSuccess():
			a.Refusals[n.Name] = refused.Message()
			continue
		}
		info, err := o.snapshot.NodeInfos().Get(n.Name)
		if err != nil {
			t.Fatal(err)
		}
		a.Refusals[n.Name] = o.RunFilterPlugins(o.ctx, state, pod, info).Message()
		if a.Refusals[n.Name] == "" {
			left = append(left, info)
		}
	}
	if len(left) == 0 {
		return a
	}
	if status := o.RunPreScorePlugins(o.ctx, state, pod, left); !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	scored, status := o.RunScorePlugins(o.ctx, state, pod, left)
	if !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	for _, s := range scored {
		a.ByObject[s.Name], a.LookAround[s.Name] = 0, 0
		for _, score := range s.Scores {
			switch score.Name {
			case "PodTopologySpread", "InterPodAffinity":
				a.LookAround[s.Name] += score.Score
			default:
				a.ByObject[s.Name] += score.Score
			}
		}
	}
	return a
}

// answer asks our plugins the way the placement engine does.
func answer(c *model.Cluster, q *Question) (a answers, preferring bool) {
	a = answers{map[string]string{}, map[string]int64{}, map[string]int64{}}
	var candidates, left []*cluster.Node
	for _, n := range c.Nodes() {
		a.Refusals[n.Name] = q.Refusal(n).Text
		if a.Refusals[n.Name] == "" {
			a.Refusals[n.Name] = q.Ports(n)
		}
		if a.Refusals[n.Name] == "" {
			candidates = append(candidates, n)
		}
	}
	refusals, scores := q.Survey(candidates)
	for i, n := range candidates {
		if a.Refusals[n.Name] = refusals[i]; refusals[i] == "" {
			a.LookAround[n.Name] = scores[i]
			left = append(left, n)
		}
	}
	preferences := q.Preferences(left)
	for i := range preferences {
		a.ByObject[left[i].Name] = preferences[i]
	}
	return a, preferences != nil
}

func TestAnswersAreThoseOfTheKubeSchedulersFramework(t *testing.T) {
	o := newOriginal(t)
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		questions := map[*cluster.Class]*Question{}
		check := func(*rapid.T) {
			for _, task := range h.waiting() {
				if !rapid.Bool().Draw(t, "asks") {
					continue
				}
				if questions[task.Class] == nil {
					questions[task.Class] = h.plugins.Ask(task.Class)
				}
				h.compare(o, task, questions[task.Class])
			}
		}
		check(t)
		t.Repeat(map[string]func(*rapid.T){
			"":            check,
			"node":        h.setNode,
			"drop node":   h.dropNode,
			"pod":         h.setPod,
			"bound pod":   h.setBound,
			"drop pod":    h.dropPod,
			"namespace":   h.setNamespace,
			"transaction": func(t *rapid.T) { h.transact(t, check) },
		})
	})
}

// history makes a random cluster go through random changes.
type history struct {
	t       *rapid.T
	cluster *cache.Cache
	plugins *Plugins
	made    int
	bound   []*corev1.Pod
}

func newHistory(t *rapid.T) *history {
	h := &history{t: t, cluster: cache.New(cache.Options{SchedulerNames: []string{schedulerName}})}
	for range rapid.IntRange(2, 6).Draw(t, "nodes") {
		h.setNode(t)
	}
	for range rapid.IntRange(0, 8).Draw(t, "bound") {
		h.setBound(t)
	}
	for range rapid.IntRange(1, 4).Draw(t, "waiting") {
		h.setPod(t)
	}
	plugins, err := New(h.cluster.Cluster, allFilters, allScores, Arguments{})
	if err != nil {
		t.Fatal(err)
	}
	h.plugins = plugins
	return h
}

func (h *history) apply(e cache.Event) {
	h.cluster.Apply(e)
	h.cluster.Settle()
}

func (h *history) nodeName(t *rapid.T) string {
	return rapid.SampledFrom([]string{"n1", "n2", "n3", "n4", "n5", "n6"}).Draw(t, "node")
}

func (h *history) setNode(t *rapid.T) {
	n := fixture.Node(h.nodeName(t), "")
	n.UID = types.UID(rapid.SampledFrom([]string{"first", "second"}).Draw(t, "uid"))
	if rapid.IntRange(0, 4).Draw(t, "zone?") > 0 {
		n.Labels[zone] = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone")
	}
	switch rapid.IntRange(0, 9).Draw(t, "hostname?") {
	case 0:
		delete(n.Labels, corev1.LabelHostname)
	case 1:
		n.Labels[corev1.LabelHostname] = "n1" // which another node may have, too
	}
	if rapid.Bool().Draw(t, "rack?") {
		n.Labels["rack"] = rapid.SampledFrom([]string{"1", "2", "3", "4"}).Draw(t, "rack")
	}
	n.Labels["disk"] = rapid.SampledFrom([]string{"ssd", "hdd"}).Draw(t, "disk")
	n.Spec.Unschedulable = rapid.IntRange(0, 9).Draw(t, "cordoned") == 0
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule} {
		if rapid.IntRange(0, 4).Draw(t, "tainted") == 0 {
			tainted(effect)(n)
		}
	}
	for i, name := range []string{"main:1", "main:latest", "other:1"} {
		if rapid.IntRange(0, 3).Draw(t, "image") == 0 {
			having(name, int64(i+1)*(300<<20))(n)
		}
	}
	h.apply(cache.Set{Object: n})
}

func (h *history) dropNode(t *rapid.T) {
	if n := h.cluster.Node(h.nodeName(t)); n != nil && n.Object != nil {
		h.apply(cache.Delete{Object: n.Object})
	}
}

func (h *history) setNamespace(t *rapid.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space(t),
		Labels: map[string]string{"team": rapid.SampledFrom([]string{"red", "blue"}).Draw(t, "team")}}}
	if rapid.IntRange(0, 3).Draw(t, "gone") == 0 {
		h.apply(cache.Delete{Object: namespace})
		return
	}
	h.apply(cache.Set{Object: namespace})
}

func space(t *rapid.T) string {
	return rapid.SampledFrom([]string{fixture.Namespace, "other"}).Draw(t, "namespace")
}

func (h *history) setPod(t *rapid.T) { h.apply(cache.Set{Object: h.pod(t)}) }

// setBound makes a pod that has a node, or changes one.
func (h *history) setBound(t *rapid.T) {
	if len(h.bound) > 0 && rapid.Bool().Draw(t, "again") {
		i := rapid.IntRange(0, len(h.bound)-1).Draw(t, "which")
		changed := h.bound[i].DeepCopy()
		fixture.Labelled("app", value(t))(changed)
		if rapid.IntRange(0, 2).Draw(t, "leaving") == 0 {
			changed.DeletionTimestamp = &metav1.Time{}
		}
		if rapid.IntRange(0, 5).Draw(t, "finished") == 0 {
			changed.Status.Phase = corev1.PodSucceeded
		}
		h.bound[i] = changed
		h.apply(cache.Set{Object: changed})
		return
	}
	p := h.pod(t)
	p.Spec.NodeName = h.nodeName(t)
	p.Spec.SchedulerName = rapid.SampledFrom([]string{schedulerName, "default-scheduler"}).Draw(t, "scheduler")
	p.Status.Phase = corev1.PodRunning
	h.bound = append(h.bound, p)
	h.apply(cache.Set{Object: p})
}

func (h *history) dropPod(t *rapid.T) {
	if len(h.bound) == 0 {
		return
	}
	i := rapid.IntRange(0, len(h.bound)-1).Draw(t, "which")
	h.apply(cache.Delete{Object: h.bound[i]})
	h.bound = slices.Delete(h.bound, i, i+1)
}

// transact places waiting pods anywhere, looks, takes some of it back, looks again, and keeps the rest.
func (h *history) transact(t *rapid.T, check func(*rapid.T)) {
	marks := []int{h.cluster.Mark()}
	for range rapid.IntRange(1, 3).Draw(t, "placements") {
		waiting := h.waiting()
		n := h.cluster.Node(h.nodeName(t))
		if len(waiting) == 0 || n == nil || n.Object == nil {
			continue
		}
		h.cluster.Place(rapid.SampledFrom(waiting).Draw(t, "task"), n)
		marks = append(marks, h.cluster.Mark())
		check(t)
	}
	h.cluster.Undo(rapid.SampledFrom(marks).Draw(t, "mark"))
	check(t)
	h.cluster.Keep()
}

// waiting returns the tasks that wait, by name.
func (h *history) waiting() []*cluster.Task {
	var waiting []*cluster.Task
	for i := range h.made {
		for _, namespace := range []string{fixture.Namespace, "other"} {
			task := h.cluster.Task(types.NamespacedName{Namespace: namespace, Name: fmt.Sprint("p", i+1)})
			if task != nil && task.Status == cluster.Pending {
				waiting = append(waiting, task)
			}
		}
	}
	return waiting
}

func value(t *rapid.T) string { return rapid.SampledFrom([]string{"x", "y"}).Draw(t, "app") }

// often is true one time in a number.
func often(t *rapid.T, label string, in int) bool { return rapid.IntRange(1, in).Draw(t, label) == 1 }

func (h *history) pod(t *rapid.T) *corev1.Pod {
	h.made++
	p := fixture.Pod(fmt.Sprint("p", h.made), fixture.Labelled("app", value(t)), inNamespace(space(t)),
		ofImage(rapid.SampledFrom([]string{"main:1", "main", "rare:1"}).Draw(t, "image")))
	if often(t, "port", 4) {
		fixture.OnPort(80)(p)
	}
	if often(t, "tolerates", 3) {
		tolerating("only")(p)
	}
	if often(t, "selects", 5) {
		fixture.Selecting("disk", "ssd")(p)
	}
	if often(t, "names a node", 8) {
		requiringFields(named(h.nodeName(t)), named(h.nodeName(t)))(p)
	}
	if often(t, "prefers nodes", 4) {
		preferringNodes("disk", "ssd", rapid.Int32Range(1, 10).Draw(t, "weight"))(p)
	}
	if often(t, "near", 4) {
		requireNear(p, podTerm(t))
	}
	if often(t, "apart", 4) {
		requireApart(p, podTerm(t))
	}
	if often(t, "prefers near", 4) {
		preferNear(p, podTerm(t), rapid.Int32Range(1, 10).Draw(t, "weight"))
	}
	if often(t, "prefers apart", 4) {
		preferApart(p, podTerm(t), rapid.Int32Range(1, 10).Draw(t, "weight"))
	}
	for often(t, "spread", 3) && len(p.Spec.TopologySpreadConstraints) < 2 {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, constraint(t))
	}
	return p
}

func key(t *rapid.T) string {
	return rapid.SampledFrom([]string{zone, corev1.LabelHostname, "rack"}).Draw(t, "key")
}

func podTerm(t *rapid.T) corev1.PodAffinityTerm {
	made := corev1.PodAffinityTerm{LabelSelector: selector(t), TopologyKey: key(t)}
	switch rapid.IntRange(0, 4).Draw(t, "namespaces") {
	case 0:
		made.Namespaces = []string{"other"}
	case 1:
		made.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}
	case 2:
		made.NamespaceSelector = &metav1.LabelSelector{}
	}
	return made
}

func selector(t *rapid.T) *metav1.LabelSelector {
	switch rapid.IntRange(0, 5).Draw(t, "selector") {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{}
	case 2:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{value(t)}}}}
	}
	return apps(value(t))
}

func constraint(t *rapid.T) corev1.TopologySpreadConstraint {
	made := corev1.TopologySpreadConstraint{MaxSkew: rapid.Int32Range(1, 2).Draw(t, "skew"), TopologyKey: key(t),
		LabelSelector: selector(t), WhenUnsatisfiable: rapid.SampledFrom([]corev1.UnsatisfiableConstraintAction{
			corev1.DoNotSchedule, corev1.ScheduleAnyway}).Draw(t, "otherwise")}
	if made.WhenUnsatisfiable == corev1.DoNotSchedule && often(t, "domains", 3) {
		domains := rapid.Int32Range(1, 4).Draw(t, "domains")
		made.MinDomains = &domains
	}
	ignore, honor := corev1.NodeInclusionPolicyIgnore, corev1.NodeInclusionPolicyHonor
	if often(t, "ignores affinity", 3) {
		made.NodeAffinityPolicy = &ignore
	}
	if often(t, "honors taints", 3) {
		made.NodeTaintsPolicy = &honor
	}
	if made.LabelSelector != nil && often(t, "label keys", 3) {
		made.MatchLabelKeys = []string{"app"}
	}
	return made
}

// compare puts one question to both and asks it again.
func (h *history) compare(o *original, task *cluster.Task, q *Question) {
	got, preferring := answer(h.cluster.Cluster, q)
	want := o.answer(h.t, h.cluster.Cluster, task.Pod.Object())
	if !preferring {
		for _, scores := range want.ByObject {
			for name, other := range want.ByObject {
				if other != scores {
					h.t.Fatalf("pod %s: no preference for node %s, want %v", task.Key(), name, want.ByObject)
				}
			}
		}
		got.ByObject, want.ByObject = nil, nil
	}
	for name, refusal := range want.Refusals {
		// The framework adds to the words which plugin they are of, where a plugin could not read the pod.
		if got.Refusals[name] != "" && strings.Contains(refusal, got.Refusals[name]) {
			want.Refusals[name] = got.Refusals[name]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Fatalf("pod %s: -want +got:\n%s", task.Key(), diff)
	}
	if again, _ := answer(h.cluster.Cluster, q); !cmp.Equal(again.Refusals, got.Refusals) || !cmp.Equal(again.LookAround, got.LookAround) {
		h.t.Fatalf("pod %s: asked again, got %v, before %v", task.Key(), again, got)
	}
	h.compareGroups(task, q, got)
	if h.cluster.DependsOnPods(task.Class) {
		return
	}
	// The engine asks for no survey of such a class.
	for _, refusal := range got.Refusals {
		switch refusal {
		case notNear, notApart, unwelcome, uneven, noDomain:
			h.t.Fatalf("pod %s is said not to depend on other pods, and a node says %s", task.Key(), refusal)
		}
	}
	for _, score := range got.LookAround {
		for _, other := range got.LookAround {
			if score != other {
				h.t.Fatalf("pod %s is said not to depend on other pods, and scores are %v", task.Key(), got.LookAround)
			}
		}
	}
}

// compareGroups asks about one node of each group, and holds the answer against those about all of its nodes.
func (h *history) compareGroups(task *cluster.Task, q *Question, want answers) {
	q.Groups()
	groups := map[string][]*cluster.Node{}
	for _, n := range h.cluster.Nodes() {
		if n.Object != nil && q.Refusal(n).Text == "" && q.Ports(n) == "" {
			key := string(q.Group(n, nil))
			groups[key] = append(groups[key], n)
		}
	}
	var fronts []Front
	keys := slices.Sorted(maps.Keys(groups))
	for _, key := range keys {
		fronts = append(fronts, Front{Slot: int32(groups[key][len(groups[key])-1].Slot), Nodes: len(groups[key])})
	}
	q.Rate(fronts)
	for i, key := range keys {
		for _, n := range groups[key] {
			if isRefused := want.Refusals[n.Name] != ""; isRefused != fronts[i].IsRefused || want.LookAround[n.Name] != fronts[i].Score {
				h.t.Fatalf("pod %s: node %s is refused with %q and has %d points, its group is refused is %t with %d points", task.Key(), n.Name,
					want.Refusals[n.Name], want.LookAround[n.Name], fronts[i].IsRefused, fronts[i].Score)
			}
		}
	}
}
