package mistakes_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/internal/explain/mistakes"
)

func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	into := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return into
}

func messages(found []mistakes.Mistake) (all []string) {
	for _, m := range found {
		all = append(all, m.Message)
	}
	return all
}

func TestNamesThatNoNodeHasAreFound(t *testing.T) {
	inventory := mistakes.NewInventory(slices.Values([]*corev1.Node{
		parse[corev1.Node](t, `{metadata: {name: n1, labels: {accelerator: a100, zone: east, kubernetes.io/hostname: n1}}, spec: {taints: [{key: gpu, value: "yes", effect: NoSchedule}]}, status: {allocatable: {cpu: 8, nvidia.com/gpu: 8}}}`),
		parse[corev1.Node](t, `{metadata: {name: n2, labels: {accelerator: h100, zone: west, kubernetes.io/hostname: n2}}, spec: {taints: [{key: batch, value: night, effect: NoExecute}]}, status: {allocatable: {cpu: 8, example.com/disk: 0}}}`),
	}))
	required := func(terms string) string {
		return `{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [` + terms + `]}}}}`
	}
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"nothing": {`{nodeSelector: {accelerator: h100}, tolerations: [{key: gpu, operator: Exists}, {key: spot, operator: Exists}], containers: [{resources: {requests: {cpu: 1, nvidia.com/gpu: 1}}}]}`, nil},
		"a resource": {`{containers: [{resources: {limits: {nvidia.com/gpus: 1}, requests: {nvidia.com/gpus: 1}}}]}`,
			[]string{"no node offers nvidia.com/gpus; did you mean nvidia.com/gpu?"}},
		"a resource of which no node has any":  {`{containers: [{resources: {requests: {example.com/disk: 1}}}]}`, []string{"no node offers example.com/disk"}},
		"names of quotas are no mistake":       {`{containers: [{resources: {requests: {requests.cpu: 1, count/pods: 1, limits.memory: 1}}}]}`, nil},
		"none of a resource is no mistake":     {`{containers: [{resources: {requests: {nvidia.com/gpus: 0}}}]}`, nil},
		"the key of a label":                   {`{nodeSelector: {acelerator: a100}}`, []string{"no node has the label acelerator; did you mean accelerator?"}},
		"the value of a label":                 {`{nodeSelector: {accelerator: a10}}`, []string{"no node has the label accelerator=a10; did you mean a100?"}},
		"a value that is like none":            {`{nodeSelector: {accelerator: mi300}}`, []string{"no node has the label accelerator=mi300, only a100, h100"}},
		"one of several values is enough":      {required(`{matchExpressions: [{key: zone, operator: In, values: [nort, east]}]}`), nil},
		"none of several values":               {required(`{matchExpressions: [{key: zone, operator: In, values: [eest, nort]}]}`), []string{"no node has the label zone=eest|nort; did you mean east?"}},
		"one of several terms is enough":       {required(`{matchExpressions: [{key: zon, operator: Exists}]}, {matchExpressions: [{key: zone, operator: Exists}]}`), nil},
		"all terms":                            {required(`{matchExpressions: [{key: zon, operator: Exists}]}, {matchExpressions: [{key: zones, operator: Exists}]}`), []string{"no node has the label zon; did you mean zone?"}},
		"what must not be there is no mistake": {required(`{matchExpressions: [{key: zon, operator: DoesNotExist}, {key: zone, operator: NotIn, values: [nort]}]}`), nil},
		"the name of a node":                   {required(`{matchFields: [{key: metadata.name, operator: In, values: [n3]}]}`), []string{"there is no node n3; did you mean n1?"}},
		"the key of a topology": {`{affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zonee}]}}, topologySpreadConstraints: [{topologyKey: zonee, whenUnsatisfiable: DoNotSchedule}, {topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}]}`,
			[]string{"no node has the label zonee; did you mean zone?"}},
		"the key of a taint": {`{tolerations: [{key: gpus, operator: Exists}]}`, []string{"no node has a taint gpus, which is tolerated; did you mean gpu, as in the taint gpu=yes:NoSchedule?"}},
		"the value of a taint": {`{tolerations: [{key: gpu, value: "true", effect: NoSchedule}]}`,
			[]string{"the toleration gpu=true:NoSchedule does not tolerate the taint gpu=yes:NoSchedule"}},
		"the effect of a taint": {`{tolerations: [{key: batch, operator: Exists, effect: NoSchedule}]}`,
			[]string{"the toleration batch:NoSchedule does not tolerate the taint batch=night:NoExecute"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, messages(inventory.Spec(parse[corev1.PodSpec](t, test.spec)))); diff != "" {
				t.Errorf("the mistakes differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTolerationsOfOtherPoolsAreNoMistake(t *testing.T) {
	inventory := mistakes.NewInventory(slices.Values([]*corev1.Node{
		parse[corev1.Node](t, `{metadata: {name: n1}, spec: {taints: [{key: pool, value: a, effect: NoSchedule}]}}`),
		parse[corev1.Node](t, `{metadata: {name: n2}, spec: {taints: [{key: pool, value: b, effect: NoSchedule}]}}`),
	}))
	if found := inventory.Spec(parse[corev1.PodSpec](t, `{tolerations: [{key: pool, value: a}]}`)); found != nil {
		t.Errorf("found are %v", messages(found))
	}
}

func TestAClusterWithoutNodesShowsNoMistakes(t *testing.T) {
	inventory := mistakes.NewInventory(slices.Values[[]*corev1.Node](nil))
	if found := inventory.Spec(parse[corev1.PodSpec](t, `{nodeSelector: {a: b}, containers: [{resources: {requests: {x.com/y: 1}}}]}`)); found != nil {
		t.Errorf("found are %v", messages(found))
	}
}

func TestKeysAreComparedWithThoseThatAreRead(t *testing.T) {
	for name, test := range map[string]struct {
		labels, annotations map[string]string
		want                []string
	}{
		"known ones":     {map[string]string{"kueue.x-k8s.io/queue-name": "q", "volcano.sh/job-name": "j"}, map[string]string{"volcano.sh/task-priority": "1"}, nil},
		"foreign ones":   {map[string]string{"app": "a", "example.com/queue-name": "q"}, nil, nil},
		"unlike any":     {map[string]string{"volcano.sh/vgpu-number": "1"}, nil, nil},
		"a slip":         {nil, map[string]string{"volcano.sh/task-prioriti": "1"}, []string{"the annotation volcano.sh/task-prioriti is not known; did you mean volcano.sh/task-priority?"}},
		"half a name":    {map[string]string{"kueue.x-k8s.io/queue": "q"}, nil, []string{"the label kueue.x-k8s.io/queue is not known; did you mean kueue.x-k8s.io/queue-name?"}},
		"another prefix": {nil, map[string]string{"volcano.sh/group-min-member": "3"}, []string{"the annotation volcano.sh/group-min-member is not known; did you mean scheduling.volcano.sh/group-min-member?"}},
		"the wrong place": {nil, map[string]string{"kueue.x-k8s.io/queue-name": "q"},
			[]string{"kueue.x-k8s.io/queue-name is a label, and is read among labels only"}},
		"beside the right one": {map[string]string{"kueue.x-k8s.io/queue": "q", "kueue.x-k8s.io/queue-name": "q"}, map[string]string{"kueue.x-k8s.io/queue-name": "q"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, messages(mistakes.Keys(test.labels, test.annotations))); diff != "" {
				t.Errorf("the mistakes differ (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoKeyOfOursIsAMistake reads the keys from the packages of API types.
func TestNoKeyOfOursIsAMistake(t *testing.T) {
	keys := 0
	err := filepath.WalkDir("../../../pkg/apis", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, is := n.(*ast.BasicLit)
			if !is || literal.Kind != token.STRING {
				return true
			}
			key, err := strconv.Unquote(literal.Value)
			prefix, name, isKey := strings.Cut(key, "/")
			if err != nil || !isKey || strings.ContainsAny(key, " %") || name == "" || !strings.HasSuffix(prefix, ".sh") && !strings.HasSuffix(prefix, ".x-k8s.io") {
				return true
			}
			keys++
			for _, found := range append(mistakes.Keys(map[string]string{key: "x"}, nil), mistakes.Keys(nil, map[string]string{key: "x"})...) {
				if found.Meant != key {
					t.Errorf("%s: %s", path, found.Message)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || keys < 50 {
		t.Errorf("%d keys are found: %v", keys, err)
	}
}

// The API server lets every pod tolerate nodes that are not ready for a while. That is no mistake where a node is
// cordoned.
func TestTolerationsThatEveryPodHasAreNoMistake(t *testing.T) {
	inventory := mistakes.NewInventory(slices.Values([]*corev1.Node{
		parse[corev1.Node](t, `{metadata: {name: n1}, spec: {taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}}`)}))
	spec := `{tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute}, {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute}]}`
	if found := inventory.Spec(parse[corev1.PodSpec](t, spec)); found != nil {
		t.Errorf("it is said %v", messages(found))
	}
}
