package conf

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Kind is the type of an argument.
type Kind uint8

// The kinds, with the Go type of their values and what a file may write for them.
const (
	Bool      Kind = iota + 1 // bool; true or false, also quoted, also as yes, no, on, off
	Int                       // int; also quoted
	Float                     // float64, finite; also a whole number, also quoted
	String                    // string; any scalar, as it is written
	Duration                  // time.Duration; Go's notation, "90s", "1h30m"
	StringMap                 // map[string]string; values as they are written
	Any                       // as YAML parses it: nil, bool, int (or float64 if too large), float64, string, []any, map[string]any
)

// String says what a value of this kind must be.
func (k Kind) String() string {
	switch k {
	case Bool:
		return "true or false"
	case Int:
		return "a whole number"
	case Float:
		return "a number"
	case String:
		return "a text"
	case Duration:
		return "a duration with a unit, such as 30s or 1h"
	case StringMap:
		return "a mapping of names to texts"
	}
	return "a value"
}

var goTypes = [...]reflect.Type{Bool: reflect.TypeFor[bool](), Int: reflect.TypeFor[int](), Float: reflect.TypeFor[float64](),
	String: reflect.TypeFor[string](), Duration: reflect.TypeFor[time.Duration](), StringMap: reflect.TypeFor[map[string]string](),
	Any: reflect.TypeFor[any]()}

// check returns an error if a default in Go is not of the kind. Nil is of any kind.
func (k Kind) check(value any) error {
	switch {
	case k == 0 || int(k) >= len(goTypes):
		return errors.New("it has no kind")
	case value == nil:
		return nil
	case k == Any:
		return checkAny(value)
	case reflect.TypeOf(value) != goTypes[k]:
		return fmt.Errorf("its default is %#v, of type %T: expected a %v", value, value, goTypes[k])
	}
	if f, isFloat := value.(float64); isFloat && (math.IsInf(f, 0) || math.IsNaN(f)) {
		return fmt.Errorf("its default is %v: expected a finite number", f)
	}
	return nil
}

func checkAny(value any) error {
	var elements []any
	switch v := value.(type) {
	case nil, bool, int, string:
		return nil
	case float64:
		return Float.check(v)
	case []any:
		elements = v
	case map[string]any:
		elements = slices.Collect(maps.Values(v))
	default:
		return fmt.Errorf("its default holds %#v, of type %T: expected what YAML makes of a value, see Any", value, value)
	}
	for _, element := range elements {
		if err := checkAny(element); err != nil {
			return err
		}
	}
	return nil
}

// read parses a value of the kind. Its error completes the words "is VALUE: ".
func (k Kind) read(node *yaml.Node) (any, error) {
	expected := fmt.Errorf("expected %v", k)
	if node.ShortTag() == "!!null" {
		return nil, expected
	}
	if k == Any {
		return readAny(node)
	}
	if k == StringMap {
		return readStringMap(node)
	}
	if node.Kind != yaml.ScalarNode {
		return nil, expected
	}
	var value any
	var err error
	switch k {
	case Bool:
		value, err = readBool(node)
	case Int:
		value, err = readInt(node)
	case Float:
		value, err = readFloat(node)
	case Duration:
		value, err = time.ParseDuration(node.Value)
	default:
		value = node.Value
	}
	if err != nil {
		return nil, expected
	}
	return value, nil
}

var errNotThis = errors.New("of another type")

// readBool accepts the booleans of YAML 1.1, as Volcano's parser does, quoted or not.
func readBool(node *yaml.Node) (bool, error) {
	switch strings.ToLower(node.Value) {
	case "true", "yes", "on", "y":
		return true, nil
	case "false", "no", "off", "n":
		return false, nil
	}
	return false, errNotThis
}

func readInt(node *yaml.Node) (int, error) {
	switch node.ShortTag() {
	case "!!int":
		value, err := strconv.ParseInt(strings.ReplaceAll(node.Value, "_", ""), 0, strconv.IntSize)
		return int(value), err
	case "!!str":
		return strconv.Atoi(node.Value)
	}
	return 0, errNotThis
}

func readFloat(node *yaml.Node) (float64, error) {
	var value float64
	var err error
	switch node.ShortTag() {
	case "!!int":
		var whole int
		if whole, err = readInt(node); err == nil {
			return float64(whole), nil
		}
		value, err = strconv.ParseFloat(strings.ReplaceAll(node.Value, "_", ""), 64) // too large for an int
	case "!!float":
		value, err = strconv.ParseFloat(strings.ReplaceAll(node.Value, "_", ""), 64)
	case "!!str":
		value, err = strconv.ParseFloat(node.Value, 64)
	default:
		err = errNotThis
	}
	if err == nil && (math.IsInf(value, 0) || math.IsNaN(value)) {
		err = errNotThis
	}
	return value, err
}

func readStringMap(node *yaml.Node) (any, error) {
	if node.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("expected %v", StringMap)
	}
	texts := map[string]string{}
	for _, entry := range entriesOf(node) {
		if entry.value.Kind != yaml.ScalarNode || entry.value.ShortTag() == "!!null" {
			return nil, fmt.Errorf("expected %v, but %q on line %d is %s", StringMap, entry.key, entry.line, show(entry.value))
		}
		texts[entry.key] = entry.value.Value
	}
	return texts, nil
}

func readAny(node *yaml.Node) (any, error) {
	switch node.Kind {
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for _, element := range node.Content {
			value, err := readAny(element)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	case yaml.MappingNode:
		mapping := map[string]any{}
		for _, entry := range entriesOf(node) {
			value, err := readAny(entry.value)
			if err != nil {
				return nil, err
			}
			mapping[entry.key] = value
		}
		return mapping, nil
	}
	kind := String
	switch node.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		kind = Bool
	case "!!int":
		kind = Int
	case "!!float":
		kind = Float
	}
	value, err := kind.read(node)
	if err != nil && kind == Int {
		value, err = Float.read(node)
	}
	if err != nil {
		return nil, fmt.Errorf("%s on line %d: %w", show(node), node.Line, err)
	}
	return value, nil
}
