package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/admission/queuetree"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func treeQueues(t testing.TB) *shelf {
	return &shelf{queues: queues(t,
		"{metadata: {name: root}, spec: {capability: {cpu: 1}}}",
		"{metadata: {name: default}, status: {state: Open}}",
		"{metadata: {name: company}, spec: {capability: {cpu: 20, memory: 8Gi}, deserved: {cpu: 10}, guarantee: {resource: {cpu: 4}}}}",
		"{metadata: {name: research}, spec: {parent: company, deserved: {cpu: 6}, guarantee: {resource: {cpu: 2}}}}",
		"{metadata: {name: vision}, spec: {parent: research, capability: {memory: 6Gi}}}",
		"{metadata: {name: busy}, status: {state: Open, running: 2, inqueue: 1, completed: 5, allocated: {cpu: 1, pods: 3}}}",
		"{metadata: {name: holding}, status: {state: Closed, allocated: {pods: 3}}}",
		"{metadata: {name: done}, status: {state: Closed, completed: 5}}",
		"{metadata: {name: drf, annotations: {volcano.sh/hierarchy: root/a/b, volcano.sh/hierarchy-weights: 1/1/1}}}",
		"{metadata: {name: l1}}", "{metadata: {name: l2}, spec: {parent: l1}}", "{metadata: {name: l3}, spec: {parent: l2}}",
		"{metadata: {name: l4}, spec: {parent: l3}}", "{metadata: {name: l5}, spec: {parent: l4}}",
		"{metadata: {name: lost}, spec: {parent: nowhere}}",
	)}
}

// q is a queue of a name.
func q(name, spec string) string { return "{metadata: {name: " + name + "}, spec: " + spec + "}" }

func TestANewQueueIsRefusedWithFieldAndValue(t *testing.T) {
	drf := func(path, weights string) string {
		return "{metadata: {name: new, annotations: {volcano.sh/hierarchy: '" + path + "', volcano.sh/hierarchy-weights: '" + weights + "'}}}"
	}
	const path, weights = "metadata.annotations[volcano.sh/hierarchy]", "metadata.annotations[volcano.sh/hierarchy-weights]"
	for _, test := range []struct{ name, queue, want string }{
		{"nothing said", "{metadata: {name: new}}", ""},
		{"below another", q("new", "{parent: company, capability: {cpu: 20}, deserved: {cpu: 4}, guarantee: {resource: {cpu: 2}}}"), ""},
		{"less than nothing", q("new", "{capability: {cpu: -1}}"), `spec.capability[cpu]: Invalid value: "-1": must be greater than or equal to 0`},
		{"half a device", q("new", "{deserved: {pods: 500m}}"), `spec.deserved[pods]: Invalid value: "500m": must be an integer`},
		{"a floor above the share", q("new", "{guarantee: {resource: {cpu: 2}}, deserved: {cpu: 1}}"),
			`spec.guarantee.resource[cpu]: Invalid value: "2": deserved[cpu]=1 must be >= guarantee[cpu]=2: must not exceed spec.deserved, which is 1`},
		{"a floor above the ceiling", q("new", "{guarantee: {resource: {cpu: 2}}, capability: {cpu: 1}}"),
			`spec.guarantee.resource[cpu]: Invalid value: "2": guarantee[cpu]=2 must be <= capability[cpu]=1: must not exceed spec.capability, which is 1`},
		{"a share above the ceiling", q("new", "{deserved: {cpu: 2}, capability: {cpu: 1500m, memory: 1}}"),
			`spec.deserved[cpu]: Invalid value: "2": deserved[cpu]=2 must be <= capability[cpu]=1500m: must not exceed spec.capability, which is 1500m`},
		{"a floor for those that deserve by weight", q("new", "{guarantee: {resource: {cpu: 2}}}"), ""},

		{"paths and weights that differ in length", drf("root/a", "1"), weights + `: Invalid value: "1": volcano.sh/hierarchy must have the same length with volcano.sh/hierarchy-weights: the path "root/a" has 2 parts, the weights have 1`},
		{"weights without a path", drf("", "1/2"), weights + `: Invalid value: "1/2": volcano.sh/hierarchy must have the same length with volcano.sh/hierarchy-weights: the path "" has 1 parts, the weights have 2`},
		{"a weight that is no number", drf("root/c", "1/x"), weights + `: Invalid value: "1/x": x in the 1/x is invalid number: "x" is not a number above 0`},
		{"a weight of nothing", drf("root/c", "1/0"), weights + `: Invalid value: "1/0": 0 in the 1/0 must be larger than 0: it is a weight`},
		{"a weight that is none", drf("root/c", "1/NaN"), weights + `: Invalid value: "1/NaN": NaN in the 1/NaN is invalid number: "NaN" is not a number above 0`},
		{"a part without a name", drf("root//c", "1/1/1"), path + `: Invalid value: "root//c": its parts must not be empty`},
		{"above a queue", drf("root/a", "1/1"), path + `: Invalid value: "root/a": root/a is not allowed to be in the sub path of root/a/b of queue drf: that queue is below it, and jobs go into queues at the ends of the tree`},
		{"next to a queue", drf("root/a/c", "1/1/2.5"), ""},
		{"a name that only begins alike", drf("root/a/bc", "1/1/1"), ""},

		{"a property that cannot be read", "{metadata: {name: new, annotations: {hekla.sh/preemption.policy: never, hekla.sh/priority.offset: '5'}}}",
			`metadata.annotations[hekla.sh/preemption.policy]: Invalid value: "never": queue new: allowed is default, fence or disabled`},

		{"its own parent", q("new", "{parent: new}"), `spec.parent: Invalid value: "new": queue new cannot use itself as parent`},
		{"a parent that is not there", q("new", "{parent: nowhere}"), `spec.parent: Not found: "nowhere": failed to get parent queue of queue new: queue.scheduling.volcano.sh "nowhere" not found`},
		{"a parent that is nowhere itself", q("new", "{parent: lost}"), `spec.parent: Invalid value: "lost": queue new would be below itself, or below a queue that does not exist`},
		{"too deep", q("new", "{parent: l5}"), `spec.parent: Invalid value: "l5": queue new exceeds the maximum allowed depth of 5: there would be queues 6 levels below root`},
		{"just deep enough", q("new", "{parent: l4}"), ""},
		{"below a queue with pods", q("new", "{parent: busy}"), `spec.parent: Invalid value: "busy": queue busy cannot be the parent queue of queue new because it has allocated Pods: 2, such as lab/b; a queue with queues below it takes no jobs itself`},

		{"a ceiling above that of the parent", q("new", "{parent: company, capability: {cpu: 21}}"), `spec.capability[cpu]: Invalid value: "21": queue new capability[cpu]=21 exceeds its ancestor's capability=20: queue company above it has no more`},
		{"a ceiling above that of one further up", q("new", "{parent: research, capability: {cpu: 21}}"), `spec.capability[cpu]: Invalid value: "21": queue new capability[cpu]=21 exceeds its ancestor's capability=20: queue company above it has no more`},
		{"a ceiling of what nobody bounds", q("new", "{parent: company, capability: {example.com/gpu: 99}}"), ""},
		{"below root nothing bounds", q("new", "{parent: root, capability: {cpu: 21}, deserved: {cpu: 21}}"), ""},
		{"shares above that of the parent", q("new", "{parent: company, deserved: {cpu: 5}}"),
			`spec.deserved[cpu]: Invalid value: "5": parent queue company validation failed: sum of children's deserved (cpu 11) exceeds parent's deserved limit (cpu 10): with it the queues below company have 11, and company has only 10`},
		{"shares above the ceiling of a parent without one", q("new", "{parent: company, deserved: {memory: 9Gi}}"),
			`spec.deserved[memory]: Invalid value: "9Gi": parent queue company validation failed: sum of children's deserved (memory 9Gi) exceeds parent's deserved limit (memory 8Gi): with it the queues below company have 9Gi, and company has only 8Gi`},
		{"floors above that of the parent", q("new", "{parent: company, guarantee: {resource: {cpu: 3}}}"),
			`spec.guarantee.resource[cpu]: Invalid value: "3": parent queue company validation failed: sum of children's guarantee (cpu 5) exceeds parent's guarantee limit (cpu 4): with it the queues below company have 5, and company has only 4`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, handler := newServer(t, holding(treeQueues(t), "busy"), nil)
			got := refusal(ask(t, handler, asked{path: "/queues/validate", operation: admissionv1.Create, object: test.queue}))
			if want := `Queue.scheduling.volcano.sh "new" is invalid: ` + test.want; test.want == "" && got != "" || test.want != "" && got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestSharesWithoutEffectAreWarnedOf(t *testing.T) {
	const tenant, imported = "{metadata: {name: tenant, annotations: {hekla.sh/preemption.delay: 5s}}}", "{metadata: {name: imported, annotations: {hekla.sh/queue-path: root.a}}}"
	const below, of = ": without effect below a queue of subtrees of the plugin guaranteed-shares, for which queue ", " has the annotation hekla.sh/"
	for _, test := range []struct{ name, before, after, want string }{
		{"below a queue with an annotation", "", q("new", "{parent: tenant, weight: 3, priority: 1, deserved: {cpu: 1}}"),
			"spec.deserved, spec.weight, spec.priority of queue new" + below + "tenant" + of + "preemption.delay"},
		{"further down", "", q("new", "{parent: middle, weight: 3}"), "spec.weight of queue new" + below + "tenant" + of + "preemption.delay"},
		{"below an imported queue", "", q("new", "{parent: imported, deserved: {cpu: 1}}"), "spec.deserved of queue new" + below + "imported" + of + "queue-path"},
		{"an annotation of its own", "{metadata: {name: new}, spec: {weight: 2}}", "{metadata: {name: new, annotations: {hekla.sh/maxapplications: '2'}}, spec: {weight: 2}}",
			"spec.weight of queue new" + below + "new" + of + "maxapplications"},
		{"what the API server writes", "", q("new", "{parent: tenant, weight: 1, guarantee: {resource: {cpu: 1}}}"), ""},
		{"elsewhere", "", q("new", "{weight: 3, deserved: {cpu: 1}}"), ""},
		{"what was there before", q("new", "{parent: tenant, weight: 3}"), q("new", "{parent: tenant, weight: 3, capability: {cpu: 1}}"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, handler := newServer(t, &shelf{queues: queues(t, "{metadata: {name: root}}", tenant, imported, "{metadata: {name: middle}, spec: {parent: tenant}}")}, nil)
			operation := admissionv1.Create
			if test.before != "" {
				operation = admissionv1.Update
			}
			response := ask(t, handler, asked{path: "/queues/validate", operation: operation, object: test.after, before: test.before})
			if got := strings.Join(response.Warnings, "\n"); got != test.want || !response.Allowed {
				t.Errorf("allowed %t, warned is\n%s, want\n%s", response.Allowed, got, test.want)
			}
		})
	}
}

func TestOfAQueueWhatHasNotChangedIsNotJudged(t *testing.T) {
	for _, test := range []struct{ name, before, after, want string }{
		{"the weight of one that breaks every rule", "{metadata: {name: lost}, spec: {parent: nowhere, deserved: {cpu: 2}, capability: {cpu: 1}}}",
			"{metadata: {name: lost}, spec: {weight: 3, parent: nowhere, deserved: {cpu: 2}, capability: {cpu: 1}}}", ""},
		{"its share", q("research", "{parent: company, deserved: {cpu: 6}}"), q("research", "{parent: company, deserved: {cpu: 11}}"),
			`spec.deserved[cpu]: Invalid value: "11": parent queue company validation failed: sum of children's deserved (cpu 11) exceeds parent's deserved limit (cpu 10): with it the queues below company have 11, and company has only 10`},
		{"a ceiling below that of one further down", q("company", "{capability: {memory: 8Gi}}"), q("company", "{capability: {memory: 5Gi}}"),
			`spec.capability[memory]: Invalid value: "5Gi": queue company capability[memory]=5Gi is smaller than its descendants' max capability=6Gi: queue vision below it has that`},
		{"less than those below deserve", q("company", "{deserved: {cpu: 10}}"), q("company", "{deserved: {cpu: 5}}"),
			`spec.deserved[cpu]: Invalid value: "5": queue company validation failed: sum of children's deserved (cpu 6) exceeds parent's deserved limit (cpu 5): the queues below it have 6 together`},
		{"less than those below are guaranteed", q("company", "{guarantee: {resource: {cpu: 4}}}"), q("company", "{guarantee: {resource: {cpu: 1}}}"),
			`spec.guarantee.resource[cpu]: Invalid value: "1": queue company validation failed: sum of children's guarantee (cpu 2) exceeds parent's guarantee limit (cpu 1): the queues below it have 2 together`},
		{"to below itself", q("l1", "{}"), q("l1", "{parent: l3}"), `spec.parent: Invalid value: "l3": queue l1 would be below itself, or below a queue that does not exist`},
		{"to where those below it are too deep", q("l2", "{parent: l1}"), q("l2", "{parent: vision}"),
			`spec.parent: Invalid value: "vision": queue l2 exceeds the maximum allowed depth of 5: there would be queues 7 levels below root`},
		{"a path", "{metadata: {name: drf}}", "{metadata: {name: drf, annotations: {volcano.sh/hierarchy: a}}}",
			`metadata.annotations[volcano.sh/hierarchy-weights]: Invalid value: "":  in the  is invalid number: "" is not a number above 0`},
		{"the resources of root, left to the policy", q("root", "{}"), q("root", "{capability: {cpu: 1}}"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, handler := newServer(t, treeQueues(t), nil)
			got := refusal(ask(t, handler, asked{path: "/queues/validate", operation: admissionv1.Update, object: test.after, before: test.before}))
			if test.want == "" && got != "" || !strings.HasSuffix(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestAQueueThatIsNeededStays(t *testing.T) {
	for _, test := range []struct {
		name string
		edit func(*settings)
		want string
	}{
		{"default", nil, "metadata.name: Forbidden: `default` queue can not be deleted: it always exists"},
		{"root", nil, "metadata.name: Forbidden: `root` queue can not be deleted: it always exists"},
		{"research", nil, "metadata.name: Forbidden: queue research can not be deleted because it has 1 child queues: queue vision is below it"},
		{"busy", nil, "metadata.name: Forbidden: queue busy cannot be deleted because it has allocated Pods: 2, such as lab/b"},
		{"holding", nil, ""}, // what its status says is of a moment ago
		{"done", nil, ""},
		{"vision", nil, ""},
		{"busy", func(s *settings) { s.keepsUsedQueues = false }, ""},
		{"busy", func(s *settings) { s.keepsUsedQueues, s.keepsOpenQueues = false, true }, "metadata.name: Forbidden: it is open; close it first"},
		{"done", func(s *settings) { s.keepsOpenQueues = true }, ""},
	} {
		_, handler := newServer(t, holding(treeQueues(t), "busy"), test.edit)
		got := refusal(ask(t, handler, asked{path: "/queues/validate", operation: admissionv1.Delete, object: q(test.name, "{}")}))
		if test.want == "" && got != "" || !strings.HasSuffix(got, test.want) {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, got, test.want)
		}
	}
}

// holding adds PodGroups in several queues, and two pods of one that is in the queue.
func holding(shown *shelf, queue string) *shelf {
	group := func(namespace, name, queue string) scheduling.PodGroup {
		return scheduling.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: scheduling.PodGroupSpec{Queue: queue}}
	}
	pod := func(namespace, name, key, group string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{key: group}}}
	}
	shown.groups = []scheduling.PodGroup{group("lab", "other", "done-too"), group("lab", "one", queue), group("home", "two", queue), group("home", "none", "")}
	shown.pods = []metav1.PartialObjectMetadata{
		pod("lab", "a", scheduling.KubeGroupNameAnnotationKey, "other"), pod("lab", "c", scheduling.VolcanoGroupNameAnnotationKey, "one"),
		pod("lab", "b", scheduling.KubeGroupNameAnnotationKey, "one"), pod("home", "d", scheduling.KubeGroupNameAnnotationKey, "one"),
	}
	return shown
}

func TestAQueueIsWrittenDownAsItIsMeant(t *testing.T) {
	yes, no := true, false
	for _, test := range []struct {
		queue       string
		weight      int32
		reclaimable *bool
		hierarchy   []string
	}{
		{"{metadata: {name: new}}", 0, &yes, nil}, // the definition says 1, and refuses a 0 that is written
		{"{metadata: {name: new}, spec: {weight: 7, reclaimable: false}}", 7, &no, nil},
		{"{metadata: {name: new, annotations: {volcano.sh/hierarchy: a/b, volcano.sh/hierarchy-weights: 2/3}}}", 0, &yes, []string{"root/a/b", "1/2/3"}},
		{"{metadata: {name: new, annotations: {volcano.sh/hierarchy: root/a, volcano.sh/hierarchy-weights: 1/3}}}", 0, &yes, []string{"root/a", "1/3"}},
		{"{metadata: {name: new, annotations: {volcano.sh/hierarchy: rooted/a, volcano.sh/hierarchy-weights: 1/3}}}", 0, &yes, []string{"root/rooted/a", "1/1/3"}},
		{"{metadata: {name: new, annotations: {volcano.sh/hierarchy: a}}}", 0, &yes, []string{"a", ""}},
	} {
		_, handler := newServer(t, treeQueues(t), nil)
		request := asked{path: "/queues/mutate", operation: admissionv1.Create, object: test.queue}
		got := patched[scheduling.Queue](t, request, ask(t, handler, request))
		var hierarchy []string
		if len(got.Annotations) > 0 {
			hierarchy = []string{got.Annotations[scheduling.HierarchyAnnotationKey], got.Annotations[scheduling.HierarchyWeightsAnnotationKey]}
		}
		if diff := cmp.Diff(test.hierarchy, hierarchy); diff != "" || got.Spec.Weight != test.weight || *got.Spec.Reclaimable != *test.reclaimable {
			t.Errorf("%s becomes weight %d, reclaimable %t, and (-want +got):\n%s", test.queue, got.Spec.Weight, *got.Spec.Reclaimable, diff)
		}
	}
}

// Whatever the queues of a cluster look like, every question about them is answered, and what is admitted leads to
// root.
func TestNoTreeHoweverTangledStopsTheServer(t *testing.T) {
	names := []string{"root", "a", "b", "c", "d", "e"}
	rapid.Check(t, func(t *rapid.T) {
		var list []*scheduling.Queue
		draw := func(name string) *scheduling.Queue {
			queue := &scheduling.Queue{}
			queue.Name, queue.Spec.Parent = name, rapid.SampledFrom(append(names, "")).Draw(t, "parent")
			return queue
		}
		for _, name := range names {
			if rapid.Bool().Draw(t, "is there") {
				list = append(list, draw(name))
			}
		}
		tree, moved := queuetree.New(list), draw(rapid.SampledFrom(names[1:]).Draw(t, "moved"))
		problem := (&settings{maxQueueDepth: 5}).judgePlace(tree, moved)
		after := tree.With(moved)
		_ = after.Sums(moved)
		steps, queue := 0, moved
		for queue != nil && queuetree.ParentOf(queue) != scheduling.RootQueue && steps < 10 {
			queue, steps = after.ByName[queuetree.ParentOf(queue)], steps+1
		}
		if leadsToRoot := queue != nil && steps < 10; leadsToRoot != (problem == nil) {
			t.Fatalf("%s below %s leads to root: %t; it is said: %v", moved.Name, moved.Spec.Parent, leadsToRoot, problem)
		}
	})
}
