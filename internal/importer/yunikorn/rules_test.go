package yunikorn_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/importer/source"
	"hekla.sh/hekla/internal/importer/yunikorn"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	keys "hekla.sh/hekla/pkg/apis/yunikorn"
)

// queueOf is the Queue that a Namespace of a result names.
func (i *imported) queueOf(namespace string) string {
	return i.namespaces[namespace].Annotations[scheduling.QueueNameAnnotationKey]
}

func TestEachNamespaceGetsAQueue(t *testing.T) {
	text := partition(`
placementrules:
- name: provided
- name: tag
  value: namespace
  create: true
`, `
- name: known
- name: sales
  parent: true
  resources: {max: {vcore: 50}}
  childtemplate:
    maxapplications: 3
    properties: {priority.offset: "2", quota.preemption.delay: 1m}
    resources: {guaranteed: {vcore: 1}, max: {vcore: 10, memory: 5G}}
`)
	got := imports(t, text, yunikorn.Options{Namespaces: []*corev1.Namespace{
		namespace("known"),
		namespace("dev", keys.NamespaceQuotaKey, `{"cpu": "64", "memory": "100G", "nvidia.com/gpu": 1}`, keys.NamespaceGuaranteedKey, `{"cpu": "8"}`,
			keys.NamespaceMaxAppsKey, "9"),
		namespace("old", keys.NamespaceMaxCPUKey, "5", keys.NamespaceMaxMemoryKey, "10G", "note", "stays", corev1.LastAppliedConfigAnnotation, "{}"),
		namespace("shop", keys.ParentQueueKey, "root.sales"),
		namespace("big", keys.ParentQueueKey, "sales", keys.NamespaceQuotaKey, `{"cpu": "80"}`),
		namespace("deep", keys.ParentQueueKey, "root.new.team"),
		namespace("own", scheduling.QueueNameAnnotationKey, "mine"),
	}})
	if diff := cmp.Diff([]string{"known", "sales", "sales.big", "sales.shop", "new", "new.team", "new.team.deep"}, remove(got.order, "dev", "old", "own")); diff != "" {
		t.Errorf("%v %s", got.order, diff)
	}
	for name, want := range map[string]string{
		"known": "known", "dev": "dev", "old": "old", "shop": "sales.shop", "big": "sales.big", "deep": "new.team.deep", "own": "mine",
	} {
		if queue := got.queueOf(name); queue != want {
			t.Errorf("Namespace %s has Queue %q, want %q", name, queue, want)
		}
	}
	for name, want := range map[string]string{
		"dev":        `{parent: root, capability: {cpu: "64", memory: 100G, nvidia.com/gpu: "1"}, guarantee: {resource: {cpu: "8"}}}`,
		"old":        `{parent: root, capability: {cpu: "5", memory: 10G}}`,
		"sales.shop": `{parent: sales, capability: {cpu: "10", memory: 5G}, guarantee: {resource: {cpu: "1"}}}`,
		"sales.big":  `{parent: sales, capability: {cpu: "50"}, guarantee: {resource: {cpu: "1"}}}`,
	} {
		if diff := cmp.Diff(spec(t, want), got.queues[name].Spec); diff != "" {
			t.Errorf("Queue %s (-want +got):\n%s", name, diff)
		}
	}
	want := map[string]string{scheduling.QueuePathKey: "root.sales.shop", scheduling.MaxApplicationsKey: "3", scheduling.PriorityOffsetKey: "2"}
	if diff := cmp.Diff(want, got.queues["sales.shop"].Annotations); diff != "" {
		t.Error(diff)
	}
	if got.queues["dev"].Annotations[scheduling.MaxApplicationsKey] != "9" {
		t.Errorf("dev has %v", got.queues["dev"].Annotations)
	}
	if old := got.namespaces["old"].Annotations; old["note"] != "stays" || old[corev1.LastAppliedConfigAnnotation] != "" {
		t.Errorf("Namespace old has %v", old)
	}
	rule := "partitions[default].placementrules[1]"
	got.says(t, source.Kept, "partitions[default].placementrules[0].name", "labels")
	got.says(t, source.Changed, rule+".name", "made later")
	got.says(t, source.Changed, rule+".value", "made later")
	got.says(t, source.Changed, rule+".create", "made later")
	got.says(t, source.Kept, "Namespace dev, annotation "+keys.NamespaceQuotaKey, "capability")
	got.says(t, source.Kept, "Namespace dev, annotation "+keys.NamespaceGuaranteedKey, "guarantee")
	got.says(t, source.Kept, "Namespace dev, annotation "+keys.NamespaceMaxAppsKey, "sh/maxapplications")
	got.says(t, source.Kept, "Namespace old, annotation "+keys.NamespaceMaxCPUKey, "capability[cpu]")
	got.says(t, source.Kept, "Namespace shop, annotation "+keys.ParentQueueKey, "below it")
	got.says(t, source.Changed, "Namespace big, annotation "+keys.NamespaceQuotaKey, "lowered")
	got.says(t, source.Changed, "Namespace own, annotation "+scheduling.QueueNameAnnotationKey, "stays")
	got.says(t, source.Kept, "queues[root.sales].childtemplate.maxapplications", "rule makes")
	if got.IsLossy() {
		t.Error("something is lost")
	}
}

func remove(all []string, names ...string) (rest []string) {
	for _, name := range all {
		isNamed := false
		for _, other := range names {
			isNamed = isNamed || name == other
		}
		if !isNamed {
			rest = append(rest, name)
		}
	}
	return rest
}

func TestPlacementRulesAreKeptChangedOrLost(t *testing.T) {
	two := []*corev1.Namespace{namespace("a"), namespace("b", keys.NamespaceMaxAppsKey, "3")}
	for _, test := range []struct {
		name, rules string
		outcomes    map[string]source.Outcome // by the path below placementrules
		a, b        string                    // the queues of the Namespaces
		isLossy     bool
	}{
		{"none", "", nil, "", "", true}, // the number of applications of b
		{"labels, made on demand", "- {name: provided, create: true}", map[string]source.Outcome{"[0].name": source.Changed, "[0].create": source.Changed}, "", "", true},
		{"labels below a parent", "- {name: provided, parent: {name: fixed, value: x}}",
			map[string]source.Outcome{"[0].name": source.Lost, "[0].parent.name": source.Lost, "[0].parent.value": source.Lost}, "", "", true},
		{"the last queue", "- {name: provided}\n- {name: fixed, value: root.x.y}", map[string]source.Outcome{"[1].name": source.Changed, "[1].value": source.Changed}, "x.y", "x.y", true},
		{"the last queue, below a parent", "- {name: fixed, value: y, parent: {name: fixed, value: x}}", map[string]source.Outcome{"[0].parent.value": source.Changed}, "x.y", "x.y", true},
		{"the last queue, made", "- {name: fixed, value: z, create: true}", map[string]source.Outcome{"[0].create": source.Changed}, "z", "z", true},
		{"a fixed queue that is not the last rule", "- {name: fixed, value: root.x.y}\n- {name: provided}", map[string]source.Outcome{"[0].name": source.Lost}, "", "", true},
		{"a queue of each user", "- {name: user, create: true}", map[string]source.Outcome{"[0].name": source.Lost, "[0].create": source.Lost}, "", "", true},
		{"another tag", "- {name: tag, value: team}", map[string]source.Outcome{"[0].value": source.Lost}, "", "", true},
		{"below a user", "- {name: tag, value: namespace, create: true, parent: {name: user}}", map[string]source.Outcome{"[0].parent.name": source.Lost}, "", "", true},
		{"a filter", "- {name: tag, value: namespace, create: true, filter: {type: allow, users: [bob]}}", map[string]source.Outcome{"[0].filter": source.Lost, "[0].name": source.Changed}, "a", "b", true},
		{"only queues that exist", "- {name: tag, value: namespace, create: false, parent: {name: fixed, value: x}}\n- {name: fixed, value: q}", nil, "q", "q", true},
		{"a queue below the parent of the rule", "- {name: tag, value: namespace, create: true, parent: {name: fixed, value: x}}", nil, "x.a", "x.b", false},
		{"below the queue that the Namespace names", "- {name: tag, value: namespace, create: true, parent: {name: tag, value: namespace.parentqueue}}\n- {name: fixed, value: q}", nil, "q", "q", true},
		{"a queue in which no pods run", "- {name: tag, value: namespace, create: true, parent: {name: fixed, value: q}}", nil, "", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			rules := ""
			if test.rules != "" {
				rules = "placementrules:\n" + indent(test.rules, "  ")
			}
			got := imports(t, partition(rules, "- name: q\n- name: x\n  parent: true\n  queues: [{name: y}]\n"), yunikorn.Options{Namespaces: two})
			for path, outcome := range test.outcomes {
				got.says(t, outcome, "partitions[default].placementrules"+path, "")
			}
			if a, b := got.queueOf("a"), got.queueOf("b"); a != test.a || b != test.b {
				t.Errorf("a has Queue %q and b has %q, want %q and %q", a, b, test.a, test.b)
			}
			if got.IsLossy() != test.isLossy {
				t.Errorf("lossy is %t", got.IsLossy())
			}
		})
	}
}

func TestATemplateWithoutARuleIsLost(t *testing.T) {
	got := imports(t, partition("", "- name: a\n  parent: true\n  childtemplate: {resources: {max: {vcore: 1}}}\n"), yunikorn.Options{})
	got.says(t, source.Lost, "queues[root.a].childtemplate.resources.max[vcore]", "each Queue")
	if !got.IsLossy() {
		t.Error("it is not lost")
	}
}

func TestLabelsCountBeforeTheNamespace(t *testing.T) {
	got := imports(t, partition("placementrules: [{name: tag, value: namespace, create: true}]\n", "- name: a"), yunikorn.Options{})
	got.says(t, source.Changed, "partitions[default].placementrules[0].name", "count first")
}
