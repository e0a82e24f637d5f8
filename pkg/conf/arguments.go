package conf

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
)

// Arguments are the arguments of one action or plugin. Each one that is declared with a default has a value; each value
// has its declared type and has passed its check. All accessors panic on a name that is not declared, or is declared
// with another kind: that is a bug of the caller, and the first test that runs into it shows it.
//
// The zero value declares nothing. Tests get theirs from [Spec.Defaults] or [ParseArguments].
type Arguments struct {
	schema []Argument
	values map[string]any
}

// newArguments returns arguments of which none is given. Arguments without effect are checked and then forgotten, so
// they have no value here.
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

// value returns the value of a declared argument: the one that is given, else the default, which may be nil.
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

// Declares reports whether the action or plugin has an argument. Of one from outside the tree that took the place of another it is
// not sure.
func (a Arguments) Declares(name string) bool {
	argument, declared := declaration(a.schema, name)
	return declared && argument.inForce()
}

// Has reports whether an argument is given or has a default. For one that has not, the accessors return a zero value.
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

// StringMap returns an argument of kind [StringMap], for the caller to keep.
func (a Arguments) StringMap(name string) map[string]string {
	value, _ := a.value(name, StringMap).(map[string]string)
	return maps.Clone(value)
}

// Any returns an argument of kind [Any]. It is shared and must not be changed.
func (a Arguments) Any(name string) any { return a.value(name, Any) }

// Each gives, in the order of their names, the members of a family that the file mentions: what follows prefix in the
// name, and the value. The prefix is what stands before the placeholder of the family: "binpack.resources." gives
// "nvidia.com/gpu" for binpack.resources.nvidia.com/gpu.
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

// isMember tells a member of the family from an argument that has its own declaration and happens to begin alike.
func (a Arguments) isMember(name, prefix string) bool {
	argument, _ := declaration(a.schema, name)
	before, _, isFamily := argument.family()
	return isFamily && before == prefix
}
