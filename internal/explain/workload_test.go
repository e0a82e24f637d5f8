package explain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

// quotaOf is a ClusterQueue of some CPUs, and a LocalQueue of the same name.
func (a *asker) quotaOf(name, flavor string, cpus int, spec string) {
	a.tb.Helper()
	q := &v1beta2.ClusterQueue{}
	text := fmt.Sprintf(`{metadata: {name: %s, uid: %[1]s}, spec: {namespaceSelector: {}, %s
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: %s, resources: [{name: cpu, nominalQuota: %d}]}]}]}}`, name, spec, flavor, cpus)
	if err := yaml.UnmarshalStrict([]byte(text), q); err != nil {
		a.tb.Fatal(err)
	}
	a.Set(q)
	a.localQueue(name, name, "")
}

func (a *asker) localQueue(name, of string, stop v1beta2.StopPolicy) {
	l := &v1beta2.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name, UID: types.UID("l-" + name)}}
	l.Spec.ClusterQueue = of
	if stop != "" {
		l.Spec.StopPolicy = &stop
	}
	a.Set(l)
}

// workload is one of some pods of a CPU or more each. Those that are made first come first.
func (a *asker) workload(name, queue string, pods int32, cpu string) *v1beta2.Workload {
	a.Now = a.Now.Add(time.Second)
	w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(a.Now)}}
	w.Spec.QueueName = queue
	w.Spec.PodSets = []v1beta2.PodSet{{Name: "main", Count: pods, Template: corev1.PodTemplateSpec{Spec: fixture.Pod(name, fixture.Asks("cpu="+cpu)).Spec}}}
	a.Set(w)
	return w
}

func TestTheCauseOfAWorkloadIsWhatMustBeMendedFirst(t *testing.T) {
	a := newAsker(t, "", fixture.Node("n", "cpu=8"), &v1beta2.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "f", UID: "f"}})
	a.quotaOf("strict", "f", 4, "queueingStrategy: StrictFIFO,")
	a.quotaOf("other", "f", 400, "")
	a.quotaOf("stopped", "f", 4, "stopPolicy: Hold,")
	a.quotaOf("noflavor", "gone", 4, "")
	a.localQueue("held", "other", v1beta2.Hold)
	a.localQueue("noqueue", "nowhere", "")
	a.workload("first", "strict", 3, "1")
	a.Cycle()
	a.workload("head", "strict", 3, "1")
	a.workload("never", "strict", 9, "1")
	a.workload("behind", "strict", 1, "1")
	a.workload("large", "other", 1, "100")
	for _, queue := range []string{"stopped", "noflavor", "held", "noqueue", "nolocal"} {
		a.workload("in-"+queue, queue, 1, "1")
	}
	checked := a.workload("checked", "other", 1, "1")
	a.Cycle()
	checked.Status.AdmissionChecks = []v1beta2.AdmissionCheckState{{Name: "slow", State: v1beta2.CheckPending, Message: "in an hour"}, {Name: "quick", State: v1beta2.CheckReady}}
	for _, test := range []struct {
		workload, code, where, message string
		isNever                        bool
	}{
		{"first", "Reserved", "ClusterQueue strict", "", false},
		{"head", v1beta2.ReasonWaitingForQuota, "ClusterQueue strict", "2 more needed", false},
		{"never", v1beta2.ReasonExceedsMaxQuota, "ClusterQueue strict", "needs 9 cpu of flavor f: 1 of at most 4", true},
		{"behind", "HeldUp", "ClusterQueue strict", "head comes first, which waits: WaitingForQuota", false},
		{"large", string(verdict.TooLargeForAnyNode), "ClusterQueue other", "cpu: needs 100, the largest node has 8", true},
		{"in-stopped", v1beta2.ReasonSuspended, "ClusterQueue stopped", "ClusterQueue stopped is stopped", false},
		{"in-noflavor", v1beta2.ReasonSuspended, "ClusterQueue noflavor", "missing ResourceFlavor(s): gone", false},
		{"in-held", v1beta2.ReasonSuspended, "LocalQueue held", "LocalQueue held is stopped", false},
		{"in-noqueue", v1beta2.ReasonMisconfigured, "ClusterQueue nowhere", "not found", true},
		{"in-nolocal", v1beta2.ReasonMisconfigured, "LocalQueue nolocal", "doesn't exist", true},
		{"checked", "Reserved", "ClusterQueue other", "slow is Pending (in an hour)", false},
	} {
		why, err := a.model().WhyWorkload(fixture.Key(test.workload))
		if err != nil {
			t.Fatal(err)
		}
		c := why.Cause
		if c.Code != test.code || c.Where != test.where || !strings.Contains(c.Message, test.message) || c.Never != test.isNever || !c.Waits {
			t.Errorf("%s waits for %+v, want %+v", test.workload, c, test)
		}
		if strings.Contains(c.Message, "quick") {
			t.Errorf("a check that is ready is named: %s", c.Message)
		}
	}
}

func TestOnlyFlavorsThatThePodsCanUseAreShort(t *testing.T) {
	flavor := func(name string) *v1beta2.ResourceFlavor {
		return &v1beta2.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1beta2.ResourceFlavorSpec{NodeLabels: map[string]string{"pool": name}}}
	}
	a := newAsker(t, "", fixture.Node("n", "cpu=8"), flavor("one"), flavor("two"))
	q := &v1beta2.ClusterQueue{}
	if err := yaml.UnmarshalStrict([]byte(`{metadata: {name: both, uid: both}, spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [
  {name: one, resources: [{name: cpu, nominalQuota: 8}]}, {name: two, resources: [{name: cpu, nominalQuota: 2}]}]}]}}`), q); err != nil {
		t.Fatal(err)
	}
	a.Set(q)
	a.localQueue("both", "both", "")
	w := a.workload("picky", "both", 4, "1")
	w.Spec.PodSets[0].Template.Spec.NodeSelector = map[string]string{"pool": "two"}
	a.workload("any", "both", 9, "1")
	a.Cycle()
	for name, want := range map[string][]string{"picky": {"two"}, "any": {"one", "two"}} {
		why, err := a.model().WhyWorkload(fixture.Key(name))
		if err != nil {
			t.Fatal(err)
		}
		var short []string
		for _, s := range why.Queued.Short {
			short = append(short, s.Flavor)
		}
		if !slices.Equal(short, want) {
			t.Errorf("%s is short of flavors %v, want %v", name, short, want)
		}
		if why.Cause.Code != v1beta2.ReasonExceedsMaxQuota || !why.Cause.Never {
			t.Errorf("%s waits for %+v", name, why.Cause)
		}
	}
}
