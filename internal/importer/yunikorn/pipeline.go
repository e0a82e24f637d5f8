package yunikorn

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/importer/source"
	"hekla.sh/hekla/pkg/apis/bounds"
)

// Where the scheduler reads its configuration.
const (
	configurationNamespace = "volcano-system"
	configurationName      = "volcano-scheduler-configmap"
	configurationKey       = "volcano-scheduler.conf"
)

// configMap makes the configuration of the scheduler that stands for the settings of a partition.
func (i *importer) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: configurationNamespace, Name: configurationName},
		Data:       map[string]string{configurationKey: i.configurationText()},
	}
}

// configurationText puts the plugin guaranteed-shares first, because of several plugins that order jobs the first
// decides.
func (i *importer) configurationText() string {
	text := "actions: \"" + strings.Join(i.actions(), ", ") + "\"\n" +
		"tiers:\n- plugins:\n  - name: guaranteed-shares\n    arguments:\n      subtrees: [" + strconv.Quote(i.options.Parent) + "]\n"
	for _, name := range []string{"priority", "gang", "conformance", "predicates"} {
		text += "  - name: " + name + "\n"
	}
	return text + i.nodeOrder()
}

// actions returns the actions, and says what becomes of the settings of preemption.
func (i *importer) actions() []string {
	actions := []string{"enqueue", "allocate"}
	enabled, cut := i.config.preemption.enabled, i.config.preemption.quota
	if enabled.Text == "false" {
		i.Keep(enabled, "the actions are printed without reclaim, so no queue takes from another")
	} else {
		actions = append(actions, "reclaim")
		if enabled.IsWritten() {
			i.Keep(enabled, "the action reclaim")
		}
	}
	if cut.IsTrue() {
		actions = append(actions, "shuffle")
		i.Keep(cut, "the action shuffle")
	} else if cut.IsWritten() {
		i.Keep(cut, "the actions are printed without shuffle, so no queue gives back what it holds above its capability")
	}
	return append(actions, "backfill")
}

// nodeOrder returns the plugins that choose nodes.
func (i *importer) nodeOrder() string {
	o := i.config.nodeOrder
	if o.policy.Text != "binpacking" {
		if o.policy.IsWritten() {
			i.Keep(o.policy, "plugin nodeorder, leastrequested.weight 1")
		}
		for _, e := range o.weights {
			i.Change(e.Field, "left out: nodeorder weighs cpu and memory alike; the plugin resource-strategy-fit takes weights")
		}
		return "  - name: nodeorder\n    arguments:\n      leastrequested.weight: 1\n"
	}
	i.Keep(o.policy, "plugin binpack")
	weights := i.weights(o.weights)
	text := "  - name: nodeorder\n    arguments:\n      leastrequested.weight: 0\n      balancedresource.weight: 0\n" +
		"  - name: binpack\n    arguments:\n      binpack.weight: 10\n"
	text += fmt.Sprintf("      binpack.cpu: %d\n      binpack.memory: %d\n", weights["cpu"], weights["memory"])
	var others []string
	for name := range weights {
		if name != "cpu" && name != "memory" {
			others = append(others, name)
		}
	}
	if slices.Sort(others); len(others) > 0 {
		text += "      binpack.resources: " + strconv.Quote(strings.Join(others, ",")) + "\n"
		for _, name := range others {
			text += fmt.Sprintf("      %q: %d\n", "binpack.resources."+name, weights[name])
		}
	}
	return text
}

// weights returns how much each resource counts, in whole numbers of the same proportions. Without any, CPU and memory
// count alike.
func (i *importer) weights(entries []source.Entry) map[string]int64 {
	weights := map[string]int64{}
	if len(entries) == 0 {
		weights["cpu"], weights["memory"] = 1, 1
		return weights
	}
	const finest = 1000
	factor := 1.0
	for ; factor < finest; factor *= 10 {
		if !slices.ContainsFunc(entries, func(e source.Entry) bool { return weightOf(e)*factor != math.Round(weightOf(e)*factor) }) {
			break
		}
	}
	for _, e := range entries {
		name := string(resourceName(e.Key))
		weights[name] = int64(math.Round(weightOf(e) * factor))
		if factor == 1 {
			i.Keep(e.Field, "plugin binpack")
		} else {
			i.Change(e.Field, "plugin binpack, %d: its weights are whole numbers, so all are multiplied by %d", weights[name], int(factor))
		}
	}
	return weights
}

func weightOf(e source.Entry) float64 {
	weight, err := bounds.ParseNumber(e.Text)
	if err != nil {
		return 0 // it is a problem by now
	}
	return weight
}
