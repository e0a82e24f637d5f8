package usage

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"hekla.sh/hekla/pkg/apis/bounds"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// Name is the name of the plugin in the configuration.
const Name = "usage"

const (
	weightKey       = "usage.weight"
	cpuWeightKey    = "cpu.weight"
	memoryWeightKey = "memory.weight"
	thresholdsKey   = "thresholds"
	estimatorKey    = "estimator"
)

// maxWeight limits weights, so that no score overflows.
const maxWeight = 1_000_000

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{
		Name: Name,
		Spec: conf.Spec{ReadsMetrics: true, Arguments: []conf.Argument{
			{Name: weightKey, Kind: conf.Int, Default: 5, Check: checkWeight, Doc: "How much the score counts compared with other plugins'."},
			{Name: cpuWeightKey, Kind: conf.Int, Default: 1, Check: checkWeight, Doc: "How much the load of CPU counts in it."},
			{Name: memoryWeightKey, Kind: conf.Int, Default: 1, Check: checkWeight, Doc: "How much the load of memory counts in it."},
			{Name: thresholdsKey, Kind: conf.StringMap, Check: checking(readThresholds),
				Doc: "Above which load, in percent, a node takes no pods: cpu and mem, 80 each."},
			{Name: estimatorKey, Kind: conf.StringMap, Check: checking(readEstimator),
				Doc: "What pods will take that cannot show yet."},
		}},
		New: newPlugin,
	}
}

func checkWeight(value any) error {
	if weight, ok := value.(int); ok && weight >= 0 && weight <= maxWeight {
		return nil
	}
	return fmt.Errorf("a whole number from 0 to %d", maxWeight)
}

// checking makes a check from a function that reads an argument.
func checking[T any](read func(map[string]string) (T, error)) func(any) error {
	return func(value any) error {
		given, ok := value.(map[string]string)
		if !ok {
			return errors.New("a mapping")
		}
		_, err := read(given)
		return err
	}
}

// thresholds are the loads above which a node refuses pods, in millionths.
type thresholds struct{ cpu, memory int64 }

func readThresholds(given map[string]string) (thresholds, error) {
	t := thresholds{cpu: 800_000, memory: 800_000}
	f := fields{given: given}
	f.number("cpu", 0, 100, resources.Million/100, &t.cpu)
	f.number("mem", 0, 100, resources.Million/100, &t.memory)
	return t, f.end()
}

// estimator estimates what pods will use.
type estimator struct {
	request, burst   int64 // of the request, and of the limit beyond it, in thousandths
	risk             int64 // the load from which factor applies, in millionths
	factor           int64 // in thousandths
	bestCPU, bestMem int64 // of pods that request nothing: thousandths of a core, and bytes
}

func readEstimator(given map[string]string) (estimator, error) {
	e := estimator{request: 700, risk: 600_000, factor: 1200, bestCPU: 250, bestMem: 200 << 20}
	f := fields{given: given}
	f.number("request_ratio", 0, 1, 1000, &e.request)
	f.number("burst_ratio", 0, 1, 1000, &e.burst)
	f.number("risk_threshold", 0, 1, resources.Million, &e.risk)
	f.number("risk_factor", 1, 1000, 1000, &e.factor)
	f.quantity("be_cpu", (*resource.Quantity).MilliValue, &e.bestCPU)
	f.quantity("be_mem", (*resource.Quantity).Value, &e.bestMem)
	return e, f.end()
}

// fields reads a mapping field by field. A field that is not given keeps its default.
type fields struct {
	given map[string]string
	known []string
	err   error
}

func (f *fields) number(name string, least, most float64, unit int64, to *int64) {
	f.known = append(f.known, name)
	text, isGiven := f.given[name]
	if !isGiven || f.err != nil {
		return
	}
	number, err := bounds.ParseNumber(text)
	if err != nil || math.IsNaN(number) || number < least || number > most {
		f.err = fmt.Errorf("a mapping in which %s is a number from %v to %v, not %q", name, least, most, text)
		return
	}
	*to = int64(math.Round(number * float64(unit)))
}

func (f *fields) quantity(name string, in func(*resource.Quantity) int64, to *int64) {
	f.known = append(f.known, name)
	text, isGiven := f.given[name]
	if !isGiven || f.err != nil {
		return
	}
	quantity, err := bounds.ParseQuantity(text)
	if err != nil || quantity.Sign() < 0 {
		f.err = fmt.Errorf("a mapping in which %s is a quantity of at least 0, not %q", name, text)
		return
	}
	*to = min(in(&quantity), resources.MaxQuantity)
}

// end returns the first error. A field that was not read is an error.
func (f *fields) end() error {
	for _, name := range slices.Sorted(maps.Keys(f.given)) {
		if f.err == nil && !slices.Contains(f.known, name) {
			return fmt.Errorf("a mapping of %s, and %q is none of these", strings.Join(f.known, ", "), name)
		}
	}
	return f.err
}
