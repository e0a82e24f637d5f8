package podspec_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/pkg/apis/podspec"
)

func text(list corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		parts = append(parts, fmt.Sprintf("%s=%s", name, quantity.String()))
	}
	return strings.Join(parts, " ")
}

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	into := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return into
}

func TestWhatAPodOfATemplateRequests(t *testing.T) {
	for name, tt := range map[string]struct {
		spec, ranges, class string
		want                string
	}{
		"limits of containers are requests": {spec: `{containers: [{resources: {limits: {cpu: 2}, requests: {memory: 1Gi}}}]}`, want: "cpu=2 memory=1Gi"},
		"limits of the pod are requests":    {spec: `{resources: {limits: {cpu: 10, memory: 1Gi}}, containers: [{}]}`, want: "cpu=10 memory=1Gi"},
		"requests of containers go before limits of the pod": {
			spec: `{resources: {limits: {cpu: 10}}, containers: [{resources: {requests: {cpu: 1}}}, {resources: {limits: {cpu: 2}}}]}`, want: "cpu=3"},
		"what the pod requests goes before all": {
			spec: `{resources: {requests: {cpu: 5}, limits: {cpu: 10}}, containers: [{resources: {requests: {cpu: 1, memory: 1Gi}}}]}`, want: "cpu=5 memory=1Gi"},
		"sidecars count with containers": {
			spec: `{resources: {limits: {cpu: 10}}, initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 4}}}], containers: [{resources: {requests: {cpu: 1}}}]}`, want: "cpu=5"},
		"huge pages of containers are limits of the pod": {
			spec: `{resources: {limits: {cpu: 1}}, containers: [{resources: {limits: {hugepages-2Mi: 4Mi, cpu: 1}}}]}`, want: "cpu=1 hugepages-2Mi=4Mi"},
		"a range fills in what containers do not say": {spec: `{containers: [{}, {resources: {requests: {cpu: 1}}}]}`,
			ranges: `{limits: [{type: Container, defaultRequest: {cpu: 500m}, default: {memory: 1Gi}}]}`, want: "cpu=1500m memory=2Gi"},
		"it comes after the limits of the pod": {spec: `{resources: {limits: {cpu: 10}}, containers: [{}]}`,
			ranges: `{limits: [{type: Container, defaultRequest: {cpu: 500m, memory: 1Gi}}]}`, want: "cpu=10 memory=1Gi"},
		"the most of a range is a default, and the least": {spec: `{containers: [{}]}`,
			ranges: `{limits: [{type: Container, max: {cpu: 2}, min: {memory: 1Gi}}]}`, want: "cpu=2 memory=1Gi"},
		"a range for pods gives nothing": {spec: `{containers: [{}]}`, ranges: `{limits: [{type: Pod, max: {cpu: 2}}]}`},
		"the sandbox counts":             {spec: `{containers: [{resources: {requests: {cpu: 1}}}]}`, class: `{overhead: {podFixed: {cpu: 250m}}}`, want: "cpu=1250m"},
		"amounts are rounded up":         {spec: `{containers: [{resources: {requests: {cpu: 0.0001}}}, {resources: {requests: {cpu: 0.0001}}}]}`, want: "cpu=2m"},
	} {
		t.Run(name, func(t *testing.T) {
			spec, given := read[corev1.PodSpec](t, tt.spec), podspec.Given{}
			if tt.ranges != "" {
				given.LimitRanges = []*corev1.LimitRange{{Spec: *read[corev1.LimitRangeSpec](t, tt.ranges)}}
			}
			if tt.class != "" {
				given.RuntimeClass = read[nodev1.RuntimeClass](t, tt.class)
			}
			if got := text(podspec.Requests(podspec.Completed(spec, given))); got != tt.want {
				t.Errorf("it requests %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTheFirstRangeByNameCounts(t *testing.T) {
	named := func(name, cpu string) *corev1.LimitRange {
		o := &corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}}
		o.Name = name
		return o
	}
	spec := &corev1.PodSpec{Containers: make([]corev1.Container, 1)}
	completed := podspec.Completed(spec, podspec.Given{LimitRanges: []*corev1.LimitRange{named("b", "2"), named("a", "1")}})
	if got := text(podspec.Limits(completed)); got != "cpu=1" {
		t.Errorf("it is limited to %s", got)
	}
	if len(spec.Containers[0].Resources.Limits) > 0 {
		t.Errorf("the template was changed to %+v", spec)
	}
}

func TestOnlyTaintsThatKeepAPodAwayAreUntolerated(t *testing.T) {
	taint := func(key string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Value: "a", Effect: effect}
	}
	all := []corev1.Taint{taint("team", corev1.TaintEffectNoSchedule), taint("soft", corev1.TaintEffectPreferNoSchedule), taint("tolerated", corev1.TaintEffectNoExecute),
		taint("node.kubernetes.io/not-ready", corev1.TaintEffectNoExecute)}
	got := podspec.Untolerated(all, []corev1.Toleration{{Key: "tolerated", Operator: corev1.TolerationOpExists}})
	if len(got) != 2 || got[0].Key != "team" || got[1].Key != "node.kubernetes.io/not-ready" {
		t.Errorf("untolerated are %v", got)
	}
	if podspec.IsTaintOfKubernetes("team") || !podspec.IsTaintOfKubernetes(got[1].Key) {
		t.Error("whose taints they are is wrong")
	}
}
