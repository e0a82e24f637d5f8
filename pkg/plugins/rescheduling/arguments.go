package rescheduling

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// Name is the name of the plugin in the configuration.
const Name = "rescheduling"

const (
	intervalKey   = "interval"
	periodKey     = "metricsPeriod"
	strategiesKey = "strategies"

	lowNodeUtilization = "lowNodeUtilization"
)

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{
		Name: Name,
		Spec: conf.Spec{ReadsMetrics: true, Arguments: []conf.Argument{
			{Name: intervalKey, Kind: conf.Duration, Default: 5 * time.Minute, Check: aboveZero, Doc: "How often it is looked for pods to move."},
			{Name: periodKey, Kind: conf.Duration, Default: 5 * time.Minute, Check: aboveZero, Doc: "Over which time the loads are averaged."},
			{Name: strategiesKey, Kind: conf.Any, Check: func(value any) error {
				_, err := readStrategies(value)
				return err
			}, Doc: "By which strategies, each with a name and params."},
		}},
		New: newPlugin,
	}
}

func aboveZero(value any) error {
	if period, ok := value.(time.Duration); ok && period <= 0 {
		return errors.New("above zero")
	}
	return nil
}

// levels are the used parts of a node's CPU, memory and pods, in millionths.
type levels [3]int64

// levelNames are their names in the configuration.
var levelNames = [len(levels{})]string{"cpu", "memory", "pods"}

// strategy is lowNodeUtilization with its parameters.
type strategy struct {
	low, target   levels
	numberOfNodes int    // the strategy acts only if more nodes than this are low
	className     string // pods of this priority and above stay
	priority      int64  // the same as a number, if hasPriority
	hasPriority   bool
}

// readStrategies reads a list of strategies. Without any, the only strategy has its defaults.
func readStrategies(value any) ([]strategy, error) {
	if value == nil {
		value = []any{map[string]any{"name": lowNodeUtilization}}
	}
	list, isList := value.([]any)
	if !isList || len(list) == 0 {
		return nil, errors.New("a list of strategies, each with its name")
	}
	var strategies []strategy
	for i, entry := range list {
		fields, isMapping := entry.(map[string]any)
		if !isMapping {
			return nil, fmt.Errorf("a list of mappings, and number %d is none", i+1)
		}
		if err := onlyKnown(fmt.Sprintf("strategy number %d", i+1), fields, "name", "params"); err != nil {
			return nil, err
		}
		if fields["name"] != lowNodeUtilization {
			return nil, fmt.Errorf("a list in which the name of number %d is %s, not %v", i+1, lowNodeUtilization, fields["name"])
		}
		s, err := readParams(fields["params"])
		if err != nil {
			return nil, err
		}
		strategies = append(strategies, s)
	}
	return strategies, nil
}

func readParams(value any) (strategy, error) {
	s := strategy{className: "system-cluster-critical"}
	for i := range levelNames {
		s.low[i], s.target[i] = resources.Million, resources.Million
	}
	params, isMapping := value.(map[string]any)
	if !isMapping && value != nil {
		return s, fmt.Errorf("a list in which params is a mapping, not %v", value)
	}
	if err := onlyKnown("params", params, "thresholds", "targetThresholds", "thresholdPriority", "thresholdPriorityClassName",
		"nodeFit", "numberOfNodes"); err != nil {
		return s, err
	}
	if err := errors.Join(readLevels("thresholds", params["thresholds"], &s.low), readLevels("targetThresholds", params["targetThresholds"], &s.target)); err != nil {
		return s, err
	}
	for i, name := range levelNames {
		if s.low[i] > s.target[i] {
			return s, fmt.Errorf("a list in which the %s of thresholds is at most that of targetThresholds", name)
		}
	}
	if given, isGiven := params["nodeFit"]; isGiven && given != true {
		return s, fmt.Errorf("a list in which nodeFit is true, not %v: a pod that fits on no better node is never moved", given)
	}
	if given, isGiven := params["numberOfNodes"]; isGiven {
		number, isNumber := given.(int)
		if !isNumber || number < 0 {
			return s, fmt.Errorf("a list in which numberOfNodes is a whole number of at least 0, not %v", given)
		}
		s.numberOfNodes = number
	}
	return s, s.readPriority(params)
}

func (s *strategy) readPriority(params map[string]any) error {
	priority, hasPriority := params["thresholdPriority"]
	class, hasClass := params["thresholdPriorityClassName"]
	switch name, isText := class.(string); {
	case hasPriority && hasClass:
		return errors.New("a list in which thresholdPriority and thresholdPriorityClassName are not both given")
	case hasClass && (!isText || name == ""):
		return fmt.Errorf("a list in which thresholdPriorityClassName is the name of a PriorityClass, not %v", class)
	case hasClass:
		s.className = name
	case hasPriority:
		number, isNumber := priority.(int)
		if !isNumber {
			return fmt.Errorf("a list in which thresholdPriority is a whole number, not %v", priority)
		}
		s.priority, s.hasPriority = int64(number), true
	}
	return nil
}

// readLevels reads levels in percent. Levels that are not given keep their defaults.
func readLevels(name string, value any, to *levels) error {
	given, isMapping := value.(map[string]any)
	if !isMapping && value != nil {
		return fmt.Errorf("a list in which %s is a mapping, not %v", name, value)
	}
	if err := onlyKnown(name, given, levelNames[:]...); err != nil {
		return err
	}
	for i, resource := range levelNames {
		value, isGiven := given[resource]
		if !isGiven {
			continue
		}
		number, isNumber := value.(float64)
		if whole, isWhole := value.(int); isWhole {
			number, isNumber = float64(whole), true
		}
		if !isNumber || number < 0 || number > 100 {
			return fmt.Errorf("a list in which %s of %s is a number from 0 to 100, not %v", resource, name, value)
		}
		to[i] = int64(math.Round(number * (resources.Million / 100)))
	}
	return nil
}

// onlyKnown returns an error for an unknown key.
func onlyKnown(where string, fields map[string]any, known ...string) error {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, key) {
			return fmt.Errorf("a list in which %s has no key %s; known are %s", where, key, strings.Join(known, ", "))
		}
	}
	return nil
}
