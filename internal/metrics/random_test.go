package metrics

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
)

// names are those of queues, flavors and jobs. No API server accepts the last ones as names of objects; a PodGroup may
// name them as its queue.
var names = []string{"a", "a.b", "a-b", "0", strings.Repeat("x", 63), "cpu", "default", "a/b", `"`, "{a=\"b\"}", "a\nb", "\\", "größe", ""}

// asked are resources that pods, nodes and quotas name.
var asked = []string{"cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu", "example.com/a_b.c", "requests.cpu"}

// crowd sets and deletes objects by chance.
type crowd struct {
	*running
	random *rand.Rand
	there  map[string]runtime.Object
}

func (c *crowd) pick(from []string) string { return from[c.random.IntN(len(from))] }

// proper is a name that an object may have.
func (c *crowd) proper() string { return c.pick(names[:7]) }

func (c *crowd) amounts() corev1.ResourceList {
	list := corev1.ResourceList{}
	for range 1 + c.random.IntN(4) {
		list[corev1.ResourceName(c.pick(asked))] = resource.MustParse(c.pick([]string{"0", "1", "2", "300m", "1e30", "8Ei"}))
	}
	return list
}

func (c *crowd) clusterQueue(name string) *v1beta2.ClusterQueue {
	q := &v1beta2.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	q.Spec.NamespaceSelector = &metav1.LabelSelector{}
	q.Spec.CohortName = c.pick([]string{"", "a", "cpu"})
	group := v1beta2.ResourceGroup{}
	for i := range 1 + c.random.IntN(3) {
		group.Flavors = append(group.Flavors, v1beta2.FlavorQuotas{Name: names[i]})
	}
	for _, name := range []string{"cpu", "memory", c.pick(asked[3:])} {
		group.CoveredResources = append(group.CoveredResources, corev1.ResourceName(name))
		for i := range group.Flavors {
			group.Flavors[i].Resources = append(group.Flavors[i].Resources, v1beta2.ResourceQuota{Name: corev1.ResourceName(name), NominalQuota: resource.MustParse("4")})
		}
	}
	q.Spec.ResourceGroups = []v1beta2.ResourceGroup{group}
	return q
}

// made is an object by chance.
func (c *crowd) made() runtime.Object {
	name := c.proper()
	switch c.random.IntN(9) {
	case 0:
		n := fixture.Node(name, "cpu=8 memory=8Gi")
		n.Status.Allocatable = c.amounts()
		return n
	case 1, 2:
		q := fixture.Queue(name)
		q.Spec.Parent, q.Spec.Capability, q.Spec.Deserved = c.pick([]string{"", "root", "a", name}), c.amounts(), c.amounts()
		q.Spec.Guarantee.Resource = c.amounts()
		return q
	case 3, 4:
		return fixture.Group(name, c.pick(names), int32(c.random.IntN(3)))
	case 5:
		p := fixture.Pod(fmt.Sprint(name, "-", c.random.IntN(3)), fixture.In(name))
		p.Spec.Containers[0].Resources.Requests = c.amounts()
		return p
	case 6:
		return &v1beta2.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	case 7:
		w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(c.now)}}
		w.Spec.QueueName = c.proper()
		pod := fixture.Pod(name)
		pod.Spec.Containers[0].Resources.Requests = c.amounts()
		w.Spec.PodSets = []v1beta2.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: pod.Spec}}}
		return w
	}
	return c.clusterQueue(name)
}

// event shows or deletes an object.
func (c *crowd) event() cache.Event {
	for key, o := range c.there {
		if c.random.IntN(12) == 0 {
			delete(c.there, key)
			return cache.Delete{Object: o}
		}
		break
	}
	o := c.made()
	c.there[fmt.Sprintf("%T %s", o, o.(metav1.Object).GetName())] = o
	return cache.Set{Object: o}
}

// Whatever comes and goes, a scrape shows all series: none is there twice, and each label is one that may be shown.
func TestEachScrapeShowsEverythingWhateverObjectsThereAre(t *testing.T) {
	const worlds, steps = 12, 40
	for seed := range uint64(worlds) {
		plugins := [][]string{{"capacity", "drf"}, {"proportion"}, {"guaranteed-shares"}}[seed%3]
		c := &crowd{running: run(t, plugins...), random: rand.New(rand.NewPCG(seed, 33)), there: map[string]runtime.Object{}}
		text := "actions: enqueue, admit, allocate, preempt, reclaim, backfill\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: cohorts}"
		for _, plugin := range plugins {
			text += ", {name: " + plugin + "}"
		}
		if err := c.scheduler.Use(policyOf(t, text+"]")); err != nil {
			t.Fatal(err)
		}
		for range steps {
			events := make([]cache.Event, 1+c.random.IntN(4))
			for i := range events {
				events[i] = c.event()
			}
			c.cycle(events...)
			shown(t, c.Metrics, "")
		}
	}
}

// broken shows one series twice.
type broken struct{ of *prometheus.Desc }

func (b broken) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- b.of }

func (b broken) Collect(metrics chan<- prometheus.Metric) {
	for range 2 {
		metrics <- prometheus.MustNewConstMetric(b.of, prometheus.GaugeValue, 1)
	}
}

func TestASeriesThatCannotBeShownTakesNoOtherWithIt(t *testing.T) {
	m := New()
	m.registry.MustRegister(broken{prometheus.NewDesc("twice", "", nil, nil)})
	get := func() string {
		recorder := httptest.NewRecorder()
		m.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if recorder.Code != http.StatusOK || !strings.Contains(recorder.Body.String(), "\nhekla_cycles_total 0\n") {
			t.Fatalf("a scrape is %d: %s", recorder.Code, recorder.Body)
		}
		return recorder.Body.String()
	}
	get()
	if text := get(); !strings.Contains(text, `promhttp_metric_handler_errors_total{cause="gathering"} 1`) {
		t.Errorf("after a scrape with an error there is\n%s", text)
	}
	if err := m.Check(); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("found is %v", err)
	}
}
