package yunikorn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/internal/importer/source"
	"hekla.sh/hekla/internal/importer/yunikorn"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
)

// partition is a queues.yaml with what a test adds: keys of the partition, and the queues below root.
func partition(keys, queues string) string {
	text := "partitions:\n- name: default\n" + indent(keys, "  ") + "  queues:\n  - name: root\n"
	if queues != "" {
		text += "    queues:\n" + indent(queues, "    ")
	}
	return text
}

func indent(text, by string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(by + strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}

// imported is a result, taken apart.
type imported struct {
	*yunikorn.Result
	queues     map[string]*scheduling.Queue
	order      []string // names of the Queues
	namespaces map[string]*corev1.Namespace
	config     string
}

func imports(t *testing.T, text string, options yunikorn.Options) *imported {
	t.Helper()
	result, err := yunikorn.Import(text, options)
	if err != nil {
		t.Fatalf("%s\nis refused: %v", text, err)
	}
	all := &imported{Result: result, queues: map[string]*scheduling.Queue{}, namespaces: map[string]*corev1.Namespace{}}
	for _, object := range result.Objects {
		switch o := object.(type) {
		case *scheduling.Queue:
			all.queues[o.Name] = o
			all.order = append(all.order, o.Name)
		case *corev1.Namespace:
			all.namespaces[o.Name] = o
		case *corev1.ConfigMap:
			all.config = o.Data["volcano-scheduler.conf"]
		default:
			t.Errorf("an object of type %T", object)
		}
	}
	registry := scheduler.NewRegistry()
	parsed, err := conf.Parse([]byte(all.config), registry.Catalogue())
	if err == nil {
		_, err = registry.Build(parsed)
	}
	if err != nil {
		t.Errorf("the scheduler refuses its configuration: %v\n%s", err, all.config)
	} else if len(parsed.Notices) > 0 && slices.Contains(parsed.Actions, "reclaim") { // where nothing is preempted, it says that
		t.Errorf("the scheduler says %v about its configuration\n%s", parsed.Notices, all.config)
	}
	return all
}

// says checks that a path has the outcome, and that its note has the words.
func (i *imported) says(t *testing.T, outcome source.Outcome, path, words string) {
	t.Helper()
	var found []string
	for _, line := range i.Lines {
		if line.Path == path {
			if line.Outcome == outcome && strings.Contains(line.Note, words) {
				return
			}
			found = append(found, line.String())
		}
	}
	if len(found) == 0 {
		for _, line := range i.Lines {
			found = append(found, line.String())
		}
	}
	t.Errorf("%s is not %s with %q:\n%s", path, outcome, words, strings.Join(found, "\n"))
}

func namespace(name string, annotations ...string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := 0; i < len(annotations); i += 2 {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, annotations[i], annotations[i+1])
	}
	return n
}

func spec(t *testing.T, text string) (s scheduling.QueueSpec) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestQueuesKeepTheirPlaceAndResources(t *testing.T) {
	got := imports(t, partition("", `
- name: Tenant_A
  parent: true
  resources:
    guaranteed: {vcore: "10", memory: 64Gi, nvidia.com/gpu: 2}
    max: {vcore: 20500m, memory: 1T, pods: 100}
  queues:
  - name: batch
    resources: {guaranteed: {vcore: 500m}}
- name: free
  resources: {max: {vcore: 0, memory: 0}}
`), yunikorn.Options{})
	if diff := cmp.Diff([]string{"tenant-a", "tenant-a.batch", "free"}, got.order); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]string{
		"tenant-a":       `{parent: root, guarantee: {resource: {cpu: "10", memory: 64Gi, nvidia.com/gpu: "2"}}, capability: {cpu: 20500m, memory: 1T, pods: "100"}}`,
		"tenant-a.batch": `{parent: tenant-a, guarantee: {resource: {cpu: 500m}}}`,
		"free":           `{parent: root}`,
	} {
		if diff := cmp.Diff(spec(t, want), got.queues[name].Spec); diff != "" {
			t.Errorf("Queue %s (-want +got):\n%s", name, diff)
		}
	}
	if path := got.queues["tenant-a.batch"].Annotations[scheduling.QueuePathKey]; path != "root.tenant_a.batch" {
		t.Errorf("its path is %q", path)
	}
	got.says(t, source.Kept, "partitions[default].name", "configuration")
	got.says(t, source.Kept, "queues[root].name", "Queue root")
	got.says(t, source.Changed, "queues[root.Tenant_A].name", "Queue tenant-a")
	got.says(t, source.Kept, "queues[root.Tenant_A].parent", "")
	got.says(t, source.Kept, "queues[root.Tenant_A].resources.guaranteed[vcore]", "guarantee.resource[cpu]")
	got.says(t, source.Kept, "queues[root.Tenant_A].resources.max[pods]", "capability[pods]")
	got.says(t, source.Changed, "queues[root.Tenant_A.batch].name", "Queue tenant-a.batch")
	got.says(t, source.Changed, "queues[root.free].resources.max[vcore]", "no spec.capability")
	if got.IsLossy() {
		t.Error("something is lost")
	}
}

func TestPropertiesBecomeAnnotations(t *testing.T) {
	properties := `
- name: a
  maxapplications: 7
  properties:
    preemption.policy: fence
    preemption.delay: 12s
    priority.policy: fence
    priority.offset: "-5"
    application.sort.policy: stateaware
    application.sort.priority: disabled
    quota.preemption.delay: 1h
    application.unschedasks.backoff: "3"
    application.unschedasks.backoff.delay: 10s
`
	want := map[string]string{
		scheduling.QueuePathKey: "root.a", scheduling.MaxApplicationsKey: "7", scheduling.PreemptionPolicyKey: "fence", scheduling.PreemptionDelayKey: "12s",
		scheduling.PriorityPolicyKey: "fence", scheduling.PriorityOffsetKey: "-5", scheduling.ApplicationSortPolicyKey: "stateaware",
		scheduling.ApplicationSortPriorityKey: "disabled", scheduling.QuotaPreemptionDelayKey: "1h",
	}
	got := imports(t, partition("preemption: {quotapreemptionenabled: true}\n", properties), yunikorn.Options{})
	if diff := cmp.Diff(want, got.queues["a"].Annotations); diff != "" {
		t.Error(diff)
	}
	got.says(t, source.Kept, "queues[root.a].maxapplications", scheduling.MaxApplicationsKey)
	got.says(t, source.Kept, "queues[root.a].properties[preemption.delay]", scheduling.PreemptionDelayKey)
	got.says(t, source.Lost, "queues[root.a].properties[application.unschedasks.backoff]", "not needed")
	got.says(t, source.Lost, "queues[root.a].properties[application.unschedasks.backoff.delay]", "not needed")
	if got.IsLossy() {
		t.Error("the loss of the back-off is not accepted by default")
	}
	t.Run("a delay of quotas needs its switch", func(t *testing.T) {
		got := imports(t, partition("", properties), yunikorn.Options{})
		delete(want, scheduling.QuotaPreemptionDelayKey)
		if diff := cmp.Diff(want, got.queues["a"].Annotations); diff != "" {
			t.Error(diff)
		}
		got.says(t, source.Changed, "queues[root.a].properties[quota.preemption.delay]", "quotapreemptionenabled")
	})
}

func TestRootIsTheParent(t *testing.T) {
	text := `partitions:
- name: default
  queues:
  - name: root
    parent: true
    submitacl: "*"
    adminacl: admin
    maxapplications: 100
    properties: {preemption.policy: disabled, preemption.delay: 5s}
    queues:
    - name: a
    - name: b
      properties: {preemption.policy: fence}
`
	got := imports(t, text, yunikorn.Options{})
	if diff := cmp.Diff([]string{"root", "a", "b"}, got.order); diff != "" {
		t.Fatal(diff)
	}
	want := map[string]string{scheduling.QueuePathKey: "root", scheduling.PreemptionDelayKey: "5s", scheduling.MaxApplicationsKey: "100"}
	if diff := cmp.Diff(want, got.queues["root"].Annotations); diff != "" {
		t.Error(diff)
	}
	if a, b := got.queues["a"].Annotations[scheduling.PreemptionPolicyKey], got.queues["b"].Annotations[scheduling.PreemptionPolicyKey]; a != "disabled" || b != "fence" {
		t.Errorf("a is %q and b is %q", a, b)
	}
	got.says(t, source.Changed, "queues[root].properties[preemption.policy]", "below root")
	got.says(t, source.Kept, "queues[root].submitacl", "RBAC")
	got.says(t, source.Kept, "queues[root].adminacl", "RBAC")
	t.Run("another Queue can take its place", func(t *testing.T) {
		existing := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: "tenants", Annotations: map[string]string{"note": "kept"}},
			Spec: spec(t, `{parent: company, capability: {cpu: "100"}}`)}
		got := imports(t, text, yunikorn.Options{Parent: "tenants", ParentQueue: existing})
		if diff := cmp.Diff([]string{"tenants", "a", "b"}, got.order); diff != "" {
			t.Error(diff)
		}
		top := got.queues["tenants"]
		if diff := cmp.Diff(existing.Spec, top.Spec); diff != "" || top.Annotations["note"] != "kept" || top.Annotations[scheduling.PreemptionDelayKey] != "5s" {
			t.Errorf("%v %s", top.Annotations, diff)
		}
		if got.queues["a"].Spec.Parent != "tenants" || !strings.Contains(got.config, `subtrees: ["tenants"]`) {
			t.Errorf("a is below %s, and the configuration is\n%s", got.queues["a"].Spec.Parent, got.config)
		}
	})
	t.Run("queues of one level have it above them", func(t *testing.T) {
		got := imports(t, "partitions:\n- name: default\n  queues:\n  - name: a\n  - name: b\n    queues:\n    - name: c\n", yunikorn.Options{})
		if diff := cmp.Diff([]string{"a", "b", "b.c"}, got.order); diff != "" {
			t.Error(diff)
		}
		got.says(t, source.Kept, "queues[root.b.c].name", "Queue b.c")
	})
}

func TestWhatConcernsUsersIsLost(t *testing.T) {
	text := partition(`
limits:
- limit: for all
  users: ["*"]
  maxapplications: 5
usergroupresolver: {type: os}
`, `
- name: open
  submitacl: "*"
  adminacl: " "
- name: closed
  submitacl: "bob,eve research"
  adminacl: root
  limits:
  - users: [bob]
    groups: [research]
    maxresources: {vcore: 4, memory: 1G}
`)
	got := imports(t, text, yunikorn.Options{})
	for path, words := range map[string]string{
		"partitions[default].limits[0]": "queue of their own", "partitions[default].usergroupresolver": "users",
		"queues[root.closed].submitacl": "RoleBinding", "queues[root.closed].adminacl": "RoleBinding", "queues[root.closed].limits[0]": "queue of their own",
	} {
		got.says(t, source.Lost, path, words)
	}
	got.says(t, source.Kept, "queues[root.open].submitacl", "all users")
	got.says(t, source.Kept, "queues[root.open].adminacl", "")
	accepted := []string{"limits", "usergroupresolver", "submitacl"}
	if got := imports(t, text, yunikorn.Options{Accepted: accepted}); !got.IsLossy() {
		t.Error("the loss of adminacl is accepted by nobody")
	}
	accepted = append(accepted, "queues[root.closed].adminacl", "typo")
	got = imports(t, text, yunikorn.Options{Accepted: accepted})
	if diff := cmp.Diff([]string{"typo"}, got.Unused(accepted)); diff != "" || got.IsLossy() {
		t.Errorf("lossy %t, unused (-want +got): %s", got.IsLossy(), diff)
	}
}

func TestThePartitionSetsThePipeline(t *testing.T) {
	for _, test := range []struct {
		name, keys string
		has, lacks []string
		lines      map[string]source.Outcome
	}{
		{"nothing is said", "", []string{`"enqueue, allocate, reclaim, backfill"`, "leastrequested.weight: 1"}, []string{"binpack"}, nil},
		{"no preemption", "preemption: {enabled: false}", []string{`"enqueue, allocate, backfill"`}, nil,
			map[string]source.Outcome{"preemption.enabled": source.Kept}},
		{"preemption, and of quotas", "preemption: {enabled: yes, quotapreemptionenabled: true}", []string{`"enqueue, allocate, reclaim, shuffle, backfill"`}, nil,
			map[string]source.Outcome{"preemption.enabled": source.Kept, "preemption.quotapreemptionenabled": source.Kept}},
		{"not of quotas", "preemption: {quotapreemptionenabled: false}", nil, []string{"shuffle"},
			map[string]source.Outcome{"preemption.quotapreemptionenabled": source.Kept}},
		{"fair", "nodesortpolicy: {type: fair, resourceweights: {vcore: 2}}", []string{"leastrequested.weight: 1"}, []string{"binpack"},
			map[string]source.Outcome{"nodesortpolicy.type": source.Kept, "nodesortpolicy.resourceweights[vcore]": source.Changed}},
		{"binpacking", "nodesortpolicy: {type: binpacking}", []string{"binpack.cpu: 1", "binpack.memory: 1", "leastrequested.weight: 0"}, nil,
			map[string]source.Outcome{"nodesortpolicy.type": source.Kept}},
		{"binpacking with weights", "nodesortpolicy: {type: binpacking, resourceweights: {vcore: 3, nvidia.com/gpu: 5}}",
			[]string{"binpack.cpu: 3", "binpack.memory: 0", `binpack.resources: "nvidia.com/gpu"`, `"binpack.resources.nvidia.com/gpu": 5`}, nil,
			map[string]source.Outcome{"nodesortpolicy.resourceweights[nvidia.com/gpu]": source.Kept}},
		{"weights that are not whole", "nodesortpolicy: {type: binpacking, resourceweights: {vcore: 0.5, memory: 1.25}}",
			[]string{"binpack.cpu: 50", "binpack.memory: 125"}, nil, map[string]source.Outcome{"nodesortpolicy.resourceweights[memory]": source.Changed}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := imports(t, partition(test.keys, "- name: a"), yunikorn.Options{})
			for _, text := range test.has {
				if !strings.Contains(got.config, text) {
					t.Errorf("%q is not in\n%s", text, got.config)
				}
			}
			for _, text := range test.lacks {
				if strings.Contains(got.config, text) {
					t.Errorf("%q is in\n%s", text, got.config)
				}
			}
			for path, outcome := range test.lines {
				got.says(t, outcome, "partitions[default]."+path, "")
			}
		})
	}
}

func TestOnePartitionIsImported(t *testing.T) {
	text := "partitions:\n- name: default\n  queues: [{name: root, queues: [{name: a}]}]\n- name: gpu\n  queues: [{name: root, queues: [{name: b}]}]\n"
	got := imports(t, text, yunikorn.Options{Partition: "gpu"})
	if diff := cmp.Diff([]string{"b"}, got.order); diff != "" || !got.IsLossy() {
		t.Errorf("lossy %t %s", got.IsLossy(), diff)
	}
	got.says(t, source.Lost, "partitions[default].name", "--partition default")
	got.says(t, source.Kept, "partitions[gpu].name", "")
}

func TestAConfigMapIsReadWithItsOtherKeys(t *testing.T) {
	text := `apiVersion: v1
kind: ConfigMap
metadata: {name: yunikorn-configs, namespace: yunikorn}
data:
  service.schedulingInterval: 1s
  log.level: DEBUG
  admissionController.filtering.bypassNamespaces: ^kube-system$
  queues.yaml: |
    partitions:
    - name: default
      queues:
      - name: root
        queues:
        - name: a
          submitacl: bob
`
	got := imports(t, text, yunikorn.Options{Accepted: []string{"service", "log", "admissionController", "submitacl"}})
	if diff := cmp.Diff([]string{"a"}, got.order); diff != "" || got.IsLossy() {
		t.Errorf("lossy %t %s", got.IsLossy(), diff)
	}
	for _, key := range []string{"service.schedulingInterval", "log.level", "admissionController.filtering.bypassNamespaces"} {
		got.says(t, source.Lost, "data["+key+"]", "")
	}
	for _, line := range got.Lines {
		if line.Path == "queues[root.a].submitacl" && line.Number != 15 {
			t.Errorf("it stands on line 15: %s", line)
		}
	}
	other := strings.Replace(strings.Replace(text, "  queues.yaml:", "  mine.yaml:", 1), "service.schedulingInterval: 1s", "service.policyGroup: mine", 1)
	imports(t, other, yunikorn.Options{}).says(t, source.Kept, "data[service.policyGroup]", "mine.yaml")
}

func TestEachValueHasALine(t *testing.T) {
	text := partition("preemption: {enabled: true}\nnodesortpolicy: {type: fair}\n", `
- name: a
  parent: true
  resources: {guaranteed: {vcore: 1}, max: {memory: 5}}
  submitacl: x
  childtemplate: {maxapplications: 2, properties: {priority.offset: 1}, resources: {max: {vcore: 1}, guaranteed: {vcore: 1}}}
`)
	got := imports(t, text, yunikorn.Options{})
	lines := map[int]int{}
	for _, line := range got.Lines {
		if line.Note == "" || line.Path == "" {
			t.Errorf("an empty line: %+v", line)
		}
		lines[line.Number]++
	}
	for number, line := range strings.Split(strings.TrimSpace(text), "\n") {
		_, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if want := strings.Count(value, ":") - strings.Count(value, ": {"); value != "" && lines[number+1] < max(want, 1) {
			t.Errorf("line %d has %d lines: %s", number+1, lines[number+1], line)
		}
	}
	if t.Failed() {
		for _, line := range got.Lines {
			fmt.Println(line)
		}
	}
}
