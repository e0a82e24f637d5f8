package resourcestrategyfit

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
)

// Name is the name of the plugin in the configuration.
const Name = "resource-strategy-fit"

const (
	weightKey       = "resourceStrategyFitWeight"
	resourcesKey    = "resources"
	scarceKey       = "sra"
	proportionalKey = "proportional"
)

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{
		Name: Name,
		Spec: conf.Spec{Arguments: []conf.Argument{
			{Name: weightKey, Kind: conf.Int, Default: 10, Check: checkWeight, Doc: "How much the score counts compared with other plugins'."},
			{Name: resourcesKey, Kind: conf.Any, Default: "", Check: checking(readStrategies), Doc: "The strategy of each resource: type and weight."},
			{Name: scarceKey, Kind: conf.Any, Default: "", Check: checking(readScarce), Doc: "Which scarce resources are kept for those who ask for them."},
			{Name: proportionalKey, Kind: conf.Any, Default: "", Check: checking(readReserves), Doc: "How much CPU and memory is kept with scarce resources."},
		}},
		New: newPlugin,
	}
}

// maxWeight limits weights, so that no score overflows.
const maxWeight = 1_000_000

func checkWeight(value any) error {
	_, err := whole("it", value, 0)
	return err
}

// checking makes a check from a function that reads an argument.
func checking[T any](read func(any) (T, error)) func(any) error {
	return func(value any) error {
		_, err := read(value)
		return err
	}
}

// strategy is how a resource is scored.
type strategy struct {
	mostAllocated bool
	weight        int64
}

const (
	leastAllocated = "LeastAllocated"
	mostAllocated  = "MostAllocated"
)

// readStrategies reads strategies by the name or pattern of a resource.
func readStrategies(value any) (map[string]strategy, error) {
	given, err := mapping("", value)
	if err != nil {
		return nil, err
	}
	if len(given) == 0 {
		return map[string]strategy{string(corev1.ResourceCPU): {weight: 1}, string(corev1.ResourceMemory): {weight: 1}}, nil
	}
	strategies := map[string]strategy{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if star := strings.IndexByte(name, '*'); star == 0 || star > 0 && star < len(name)-1 {
			return nil, fmt.Errorf("a mapping of resources, and %q is none: a star may stand at the end of a name only", name)
		}
		fields, err := mapping(name, given[name], "type", "weight")
		if err != nil {
			return nil, err
		}
		s := strategy{weight: 1}
		switch fields["type"] {
		case nil, leastAllocated:
		case mostAllocated:
			s.mostAllocated = true
		default:
			return nil, fmt.Errorf("a mapping in which the type of %s is %s or %s, not %v", name, leastAllocated, mostAllocated, fields["type"])
		}
		if weight, isGiven := fields["weight"]; isGiven {
			if s.weight, err = whole("the weight of "+name, weight, 1); err != nil {
				return nil, err
			}
		}
		strategies[name] = s
	}
	return strategies, nil
}

// scarce are resources whose nodes are kept for pods that request them.
type scarce struct {
	weight  int64 // 0 if none are
	names   []corev1.ResourceName
	weights []int64
}

func readScarce(value any) (scarce, error) {
	fields, err := mapping("", value, "enable", "resources", "weight", "resourceWeight")
	if err != nil {
		return scarce{}, err
	}
	isOn, names, err := listed(fields)
	if err != nil {
		return scarce{}, err
	}
	s := scarce{weight: 1, names: names}
	if weight, isGiven := fields["weight"]; isGiven {
		if s.weight, err = whole("weight", weight, 0); err != nil {
			return scarce{}, err
		}
	}
	weights, err := mapping("resourceWeight", fields["resourceWeight"], texts(names, "")...)
	if err != nil {
		return scarce{}, err
	}
	for _, name := range names {
		weight := int64(1)
		if given, isGiven := weights[string(name)]; isGiven {
			if weight, err = whole("the weight of "+string(name), given, 0); err != nil {
				return scarce{}, err
			}
		}
		s.weights = append(s.weights, weight)
	}
	if !isOn {
		return scarce{}, nil
	}
	return s, nil
}

// reserve is what is kept free for each unit of a scarce resource.
type reserve struct {
	name   corev1.ResourceName
	cores  float64
	memory float64 // in 10⁹ bytes
}

func readReserves(value any) ([]reserve, error) {
	fields, err := mapping("", value, "enable", "resources", "resourceProportion")
	if err != nil {
		return nil, err
	}
	isOn, names, err := listed(fields)
	if err != nil {
		return nil, err
	}
	proportions, err := mapping("resourceProportion", fields["resourceProportion"], texts(names, ".cpu", ".memory")...)
	if err != nil {
		return nil, err
	}
	var reserves []reserve
	for _, name := range names {
		r := reserve{name: name}
		if r.cores, err = proportion(proportions, string(name)+".cpu"); err != nil {
			return nil, err
		}
		if r.memory, err = proportion(proportions, string(name)+".memory"); err != nil {
			return nil, err
		}
		reserves = append(reserves, r)
	}
	if !isOn {
		return nil, nil
	}
	return reserves, nil
}

// proportion reads how much is kept for a unit, 1 by default.
func proportion(proportions map[string]any, key string) (float64, error) {
	given, isGiven := proportions[key]
	if !isGiven {
		return 1, nil
	}
	number, isNumber := toNumber(given)
	if !isNumber || number < 0 || number > maxWeight {
		return 0, fmt.Errorf("a mapping in which %s is a number from 0 to %d, not %v", key, maxWeight, given)
	}
	return number, nil
}

// listed reads whether a part is on, and its resources.
func listed(fields map[string]any) (isOn bool, names []corev1.ResourceName, err error) {
	switch enable := fields["enable"].(type) {
	case nil:
	case bool:
		isOn = enable
	default:
		return false, nil, fmt.Errorf("a mapping in which enable is true or false, not %v", enable)
	}
	switch text := fields["resources"].(type) {
	case nil:
	case string:
		for _, name := range strings.Split(text, ",") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, corev1.ResourceName(name)) {
				names = append(names, corev1.ResourceName(name))
			}
		}
	default:
		return false, nil, fmt.Errorf("a mapping in which resources are names separated by commas, not %v", text)
	}
	if isOn && len(names) == 0 {
		return false, nil, errors.New("a mapping that names resources if it enables them")
	}
	return isOn, names, nil
}

// texts returns every name with every ending.
func texts(names []corev1.ResourceName, endings ...string) []string {
	all := []string{""} // so that an empty list does not match every name
	for _, name := range names {
		for _, ending := range endings {
			all = append(all, string(name)+ending)
		}
	}
	return all
}

// mapping reads a mapping, and refuses keys other than the known ones, unless none are given. Nil is an empty mapping.
func mapping(name string, value any, known ...string) (map[string]any, error) {
	if value == nil || value == "" {
		return nil, nil
	}
	fields, isMapping := value.(map[string]any)
	if !isMapping {
		if name == "" {
			return nil, errors.New("a mapping")
		}
		return nil, fmt.Errorf("a mapping in which %s is a mapping, not %v", name, value)
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if len(known) > 0 && !slices.Contains(known, key) {
			what := "a mapping without the key " + key
			if name != "" {
				what += " in " + name
			}
			return nil, errors.New(what)
		}
	}
	return fields, nil
}

// whole reads a whole number.
func whole(name string, value any, least int64) (int64, error) {
	number, isNumber := toNumber(value)
	if !isNumber || number != math.Trunc(number) || number < float64(least) || number > maxWeight {
		if name == "it" {
			return 0, fmt.Errorf("a whole number from %d to %d", least, maxWeight)
		}
		return 0, fmt.Errorf("a mapping in which %s is a whole number from %d to %d, not %v", name, least, maxWeight, value)
	}
	return int64(number), nil
}

func toNumber(value any) (float64, bool) {
	switch number := value.(type) {
	case int:
		return float64(number), true
	case float64:
		return number, true
	}
	return 0, false
}
