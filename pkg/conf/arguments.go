package conf

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
)

// Arguments are the arguments of one action or plugin. Each argument that is declared with a default has a value. Each
// value has its declared type and has passed its check. All accessors panic on a name that is not declared, or is
// declared with another kind: that is a bug of the caller, which the first test shows.
//
// The zero value declares nothing. Tests use [Spec.Defaults] or [ParseArguments].
type Arguments struct {
	schema []Argument
	values map[string]any
}

// newArguments returns arguments with their defaults only. Arguments without effect are checked and dropped, so they
// have no value.
func newArguments(schema []Argument) Arguments {
	a := Arguments{schema: schema, values: map[string]any{}}
	for _, argument := range schema {
		if _, _, isFamily := argument.family(); !isFamily && argument.Default != nil && argument.inForce() {
			a.values[argument.Name] = argument.Default
		}
	}
	return a
}

func (a Argument) inForce() bool { return a.AliasOf == "" && a.Unsupported == "" && a.NoEffect == "" }

// value returns the value of a declared argument: the given one, otherwise the default, which may be nil.
func (a Arguments) value(name string, kind Kind) any {
	argument, declared := declaration(a.schema, name)
	if !declared || argument.Kind != kind || !argument.inForce() {
		panic(fmt.Sprintf("conf: argument %q is read as %v, and is not declared so", name, kind))
	}
	if value, given := a.values[name]; given {
		return value
	}
	return argument.Default
}

// Declares reports whether the action or plugin has an argument. One from another module that replaces another may lack
// some.
func (a Arguments) Declares(name string) bool {
	argument, declared := declaration(a.schema, name)
	return declared && argument.inForce()
}

// Has reports whether an argument is given or has a default. Otherwise the accessors return a zero value.
func (a Arguments) Has(name string) bool {
	argument, declared := declaration(a.schema, name)
	if !declared || !argument.inForce() {
		panic(fmt.Sprintf("conf: argument %q is not declared", name))
	}
	return a.value(name, argument.Kind) != nil
}

// Bool returns an argument of kind [Bool].
func (a Arguments) Bool(name string) bool {
	value, _ := a.value(name, Bool).(bool)
	return value
}

// Int returns an argument of kind [Int].
func (a Arguments) Int(name string) int {
	value, _ := a.value(name, Int).(int)
	return value
}

// Float returns an argument of kind [Float]. It is finite.
func (a Arguments) Float(name string) float64 {
	value, _ := a.value(name, Float).(float64)
	return value
}

// String returns an argument of kind [String].
func (a Arguments) String(name string) string {
	value, _ := a.value(name, String).(string)
	return value
}

// Duration returns an argument of kind [Duration].
func (a Arguments) Duration(name string) time.Duration {
	value, _ := a.value(name, Duration).(time.Duration)
	return value
}

// StringMap returns a copy of an argument of kind [StringMap].
func (a Arguments) StringMap(name string) map[string]string {
	value, _ := a.value(name, StringMap).(map[string]string)
	return maps.Clone(value)
}

// Any returns an argument of kind [Any]. It is shared and must not be changed.
func (a Arguments) Any(name string) any { return a.value(name, Any) }

// Each yields the members of a family that the file has, by name: the part of the name after prefix, and the value. The
// prefix is the part of the family's name before its placeholder. For binpack.resources.nvidia.com/gpu, the prefix
// "binpack.resources." yields "nvidia.com/gpu".
func (a Arguments) Each(prefix string) iter.Seq2[string, any] {
	declared := slices.ContainsFunc(a.schema, func(argument Argument) bool {
		before, _, isFamily := argument.family()
		return isFamily && before == prefix && argument.inForce()
	})
	if !declared {
		panic(fmt.Sprintf("conf: no family of arguments begins with %q", prefix))
	}
	return func(yield func(string, any) bool) {
		for _, name := range slices.Sorted(maps.Keys(a.values)) {
			if member, found := strings.CutPrefix(name, prefix); found && a.isMember(name, prefix) && !yield(member, a.values[name]) {
				return
			}
		}
	}
}

// isMember reports whether a name belongs to the family, and not to an argument of its own with the same beginning.
func (a Arguments) isMember(name, prefix string) bool {
	argument, _ := declaration(a.schema, name)
	before, _, isFamily := argument.family()
	return isFamily && before == prefix
}
