package workloads_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/resources"
)

// container is a Workload of one pod with one container that has these resources, and more of the pod's spec.
func container(name, resources, more string) string {
	return fmt.Sprintf(`
kind: Workload
metadata: {name: %s}
spec:
  queueName: lq
  podSets: [{name: main, count: 1, template: {spec: {containers: [{name: c, image: i, resources: {%s}}]%s}}}]`, name, resources, more)
}

const (
	quota   = "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, previously considered podsets requests (0) + current podset request (%s) > maximum capacity (4)"
	outside = "Misconfigured: resources didn't satisfy LimitRange constraints: spec.podSets[0].template.spec"
)

func limits(text string) string {
	return "{kind: LimitRange, metadata: {name: limits}, spec: {limits: [" + text + "]}}"
}

func TestWhatPodsAreGivenCountsInTheRequests(t *testing.T) {
	sandboxed := "{kind: RuntimeClass, metadata: {name: sandboxed}, handler: h, overhead: {podFixed: {cpu: 250m}}}"
	for name, c := range map[string]struct{ around, resources, more, want string }{
		"nothing":                         {limits("{type: Container}"), "", "", "admitted in all"},
		"a default request":               {limits("{type: Container, defaultRequest: {cpu: 6}}"), "", "", "ExceedsMaxQuota: " + fmt.Sprintf(quota, "6")},
		"a default limit":                 {limits("{type: Container, default: {cpu: 7}}"), "", "", "ExceedsMaxQuota: " + fmt.Sprintf(quota, "7")},
		"a request of its own":            {limits("{type: Container, defaultRequest: {cpu: 6}}"), "requests: {cpu: 1}", "", "admitted in all"},
		"a limit of its own":              {limits("{type: Container, defaultRequest: {cpu: 6}}"), "limits: {cpu: 1}", "", "admitted in all"},
		"of another namespace":            {"{kind: LimitRange, metadata: {name: limits, namespace: other}, spec: {limits: [{type: Container, defaultRequest: {cpu: 6}}]}}", "", "", "admitted in all"},
		"overhead":                        {sandboxed, "requests: {cpu: 4}", ", runtimeClassName: sandboxed", "ExceedsMaxQuota: " + fmt.Sprintf(quota, "4250m")},
		"overhead that it has already":    {sandboxed, "requests: {cpu: 4}", ", runtimeClassName: sandboxed, overhead: {cpu: 500m}", "ExceedsMaxQuota: " + fmt.Sprintf(quota, "4500m")},
		"overhead of another class":       {sandboxed, "requests: {cpu: 4}", ", runtimeClassName: other", "admitted in all"},
		"more than its limit":             {"", "requests: {cpu: 2}, limits: {cpu: 1}", "", `Misconfigured: resources validation failed: spec.podSets[0].template.spec.containers[0]: Invalid value: ["cpu"]: requests must not exceed its limits`},
		"more than the limit it is given": {limits("{type: Container, default: {cpu: 1}}"), "requests: {cpu: 2}", "", `Misconfigured: resources validation failed: spec.podSets[0].template.spec.containers[0]: Invalid value: ["cpu"]: requests must not exceed its limits`},
		"more than a container may have":  {limits("{type: Container, max: {cpu: 2}}"), "requests: {cpu: 3}, limits: {cpu: 3}", "", outside + `.containers[0]: Invalid value: ["cpu"]: requests must not be above the limitRange max`},
		"less than a container must have": {limits("{type: Container, min: {cpu: 2}}"), "requests: {cpu: 1}", "", outside + `.containers[0]: Invalid value: ["cpu"]: requests must not be below the limitRange min`},
		"more than a pod may have":        {limits("{type: Pod, max: {cpu: 2}}"), "requests: {cpu: 3}", "", outside + `: Invalid value: ["cpu"]: requests must not be above the limitRange max`},
		"less than a pod must have":       {limits("{type: Pod, min: {cpu: 2}}"), "requests: {cpu: 1}", "", outside + `: Invalid value: ["cpu"]: requests must not be below the limitRange min`},
		"a limit that is too large for its request": {limits("{type: Container, maxLimitRequestRatio: {cpu: 1.5}}"), "requests: {cpu: 1}, limits: {cpu: 2}", "",
			outside + `.containers[0]: Invalid value: ["cpu"]: limits must not be above the limitRange maxLimitRequestRatio of the requests, and both must be set`},
		"a limit that is as large as it may be": {limits("{type: Container, maxLimitRequestRatio: {cpu: 1.5}}"), "requests: {cpu: 2}, limits: {cpu: 3}", "", "admitted in all"},
		"no limit where a ratio needs one": {limits("{type: Pod, maxLimitRequestRatio: {cpu: 2}}"), "requests: {cpu: 1}", "",
			outside + `: Invalid value: ["cpu"]: limits must not be above the limitRange maxLimitRequestRatio of the requests, and both must be set`},
		"a kind of item that is not known": {limits("{type: Other, max: {cpu: 1}}"), "requests: {cpu: 3}", "", "admitted in all"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newKueue(t, setup, container("a", c.resources, c.more))
			if c.around != "" {
				w.apply(c.around)
			}
			w.run()
			w.expect("a", c.want)
		})
	}
}

func TestAChangeOfLimitsHasWorkloadsTriedAgain(t *testing.T) {
	w := newKueue(t, setup, limits("{type: Container, defaultRequest: {cpu: 6}}"), container("a", "", ""))
	w.run()
	w.expect("a", "ExceedsMaxQuota: "+fmt.Sprintf(quota, "6"))
	w.apply(limits("{type: Container, defaultRequest: {cpu: 5}}"))
	w.run()
	w.now = w.now.Add(10 * time.Second) // only a number differs
	w.run()
	w.expect("a", "ExceedsMaxQuota: "+fmt.Sprintf(quota, "5"))
	w.apply(limits("{type: Container, max: {cpu: 3}, default: {cpu: 2}, defaultRequest: {cpu: 2}}"))
	w.run()
	w.expect("a", "admitted in all")
	if used := w.reader.Find(types.NamespacedName{Namespace: "team", Name: "a"}).Charge; len(used) != 1 || used[0].Value != 2000 {
		t.Errorf("it is charged %v", used)
	}
	w.delete(w.objects["v1.LimitRange team/limits"]) // what is admitted stays
	w.run()
	w.expect("a", "admitted in all")
}

// TestAResourceOfAClusterQueueIsCountedAlone creates so many Workloads with resources of their own that further ones
// share one.
func TestAResourceOfAClusterQueueIsCountedAlone(t *testing.T) {
	w := newKueue(t, setup)
	for i := range resources.MaxInvented {
		w.apply(container(fmt.Sprint("hostile-", i), fmt.Sprintf("requests: {example.com/r%d: 1}", i), ""))
	}
	w.apply(container("late", "requests: {cpu: 1, example.com/device: 2}", ""))
	w.run()
	w.expect("late", "NoMatchingFlavor: couldn't assign flavors to pod set main: resource hekla.sh/further-resources unavailable in ClusterQueue")
	covered := strings.NewReplacer("[cpu]", "[cpu, example.com/device]", "nominalQuota: 4}", "nominalQuota: 4}, {name: example.com/device, nominalQuota: 2}")
	w.apply(covered.Replace(setup))
	w.run()
	w.expect("late", "admitted in all")
}
