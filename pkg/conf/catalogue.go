package conf

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Catalogue lists what a configuration may name. The program with the actions and plugins provides it, and does not
// change it later.
type Catalogue struct {
	Actions map[string]Spec
	Plugins map[string]Spec
}

// Spec is what a configuration may set for one action or plugin.
type Spec struct {
	// Arguments are its arguments, in the order of its documentation.
	Arguments []Argument
	// AliasOf makes this another name of an action or plugin of the same catalogue. Its other fields are then ignored.
	AliasOf string
	// Unsupported, if not empty, refuses a name of Volcano. It says why, and what to use instead, as a clause without a
	// full stop.
	Unsupported string
	// NoEffect, if not empty, accepts a name of Volcano with any settings, and leaves it out of the configuration. A
	// notice gives this text as the reason.
	NoEffect string
	// Conflicts are the plugins with which it cannot be configured. One of the two plugins must list the other.
	Conflicts []Conflict
	// ReadsMetrics says that the plugin uses the `metrics` block. Without any such plugin the block has no effect.
	ReadsMetrics bool
	// Needs are actions of which a notice says that a configuration with this plugin lacks them.
	Needs []Need
	// Decides are the questions about victims, by their switches, that no later tier is asked: the plugin votes on all
	// pods (rule T1).
	Decides []Switch
	// Protects says which pods a plugin does nothing but protect from eviction, as an object without a full stop. A
	// notice says so where it is not asked.
	Protects string
}

// Need is an action without which a part of a plugin has no effect.
type Need struct {
	// Action is its name. A catalogue may lack it.
	Action string
	// Lack says what does not happen without it, as a clause without a full stop.
	Lack string
}

// Conflict is a plugin that cannot be used together with another.
type Conflict struct {
	// With is the other plugin, in any tier.
	With string
	// Switch, unless 0, limits the conflict to configurations in which the declaring plugin has this switch on.
	Switch Switch
	// Reason says why, as a clause without a full stop.
	Reason string
}

// Argument is one argument, or an open family of them.
type Argument struct {
	// Name is the key in the file. The name of a family holds one placeholder, which stands for one character or more,
	// such as "binpack.resources.<resource>" or "binpack.resources.*". Names without a placeholder are matched first,
	// then the family with the longest part before its placeholder.
	Name string
	// Kind is the type of the value.
	Kind Kind
	// Default is the value if the file gives none: a value of the Go type for Kind, or nil for none. The default of a
	// family is the value of each member that is not in the file.
	Default any
	// Check, if not nil, checks a value of the right type. Its error completes the sentence "it must be …".
	Check func(value any) error
	// AliasOf makes this another name of an argument of the same action or plugin. Its other fields are then ignored.
	AliasOf string
	// Unsupported, if not empty, refuses an argument of Volcano. It says why, and what to use instead.
	Unsupported string
	// NoEffect, if not empty, accepts the argument, and a notice gives this text as the reason why it changes nothing.
	NoEffect string
	// Doc says what the argument is for, in one sentence.
	Doc string
}

// Defaults returns the arguments if a configuration sets none.
func (s Spec) Defaults() Arguments { return newArguments(s.Arguments) }

// Validate returns an error for a catalogue that cannot be used: defaults of the wrong type, duplicate names, aliases
// of missing names, conflicts with missing plugins. [Parse] refuses such a catalogue.
func (c Catalogue) Validate() error {
	var errs []error
	for _, side := range []struct {
		noun  string
		specs map[string]Spec
	}{{"action", c.Actions}, {"plugin", c.Plugins}} {
		for _, name := range slices.Sorted(maps.Keys(side.specs)) {
			subject := side.noun + " " + name
			spec := side.specs[name]
			if strings.TrimSpace(name) != name || name == "" || strings.Contains(name, ",") {
				errs = append(errs, fmt.Errorf("%s %q: a name has no spaces around it and no commas", side.noun, name))
			}
			if spec.AliasOf != "" {
				if target, found := side.specs[spec.AliasOf]; !found || target.AliasOf != "" {
					errs = append(errs, fmt.Errorf("%s: alias of %q, which is none itself", subject, spec.AliasOf))
				}
			}
			for _, conflict := range spec.Conflicts {
				if _, found := c.Plugins[conflict.With]; !found {
					errs = append(errs, fmt.Errorf("%s: conflicts with %q, which does not exist", subject, conflict.With))
				}
			}
			for _, err := range validateArguments(spec.Arguments) {
				errs = append(errs, fmt.Errorf("%s: %w", subject, err))
			}
		}
	}
	return errors.Join(errs...)
}

func validateArguments(schema []Argument) []error {
	var errs []error
	seen := map[string]bool{}
	for _, argument := range schema {
		if err := argument.validate(schema); err != nil {
			errs = append(errs, fmt.Errorf("argument %q: %w", argument.Name, err))
		}
		if seen[argument.Name] {
			errs = append(errs, fmt.Errorf("argument %q: declared twice", argument.Name))
		}
		seen[argument.Name] = true
	}
	return errs
}

func (a Argument) validate(schema []Argument) error {
	if a.Name == "" {
		return errors.New("it has no name")
	}
	prefix, suffix, isFamily := a.family()
	if strings.ContainsAny(prefix+suffix, "<>*") {
		return errors.New("a name has at most one placeholder, <word> anywhere or .* at its end")
	}
	if a.AliasOf != "" {
		target := slices.IndexFunc(schema, func(b Argument) bool { return b.Name == a.AliasOf && b.AliasOf == "" })
		if target < 0 || isFamily {
			return fmt.Errorf("alias of %q: only a single argument may be an alias, and of a declared one", a.AliasOf)
		}
		return nil
	}
	if a.Unsupported != "" {
		return nil
	}
	if err := a.Kind.check(a.Default); err != nil {
		return err
	}
	if a.Check != nil && a.Default != nil {
		if err := a.Check(a.Default); err != nil {
			return fmt.Errorf("its check refuses the default %v: it must be %w", a.Default, err)
		}
	}
	return nil
}

// family splits the name of a family at its placeholder. A name without one is returned whole.
func (a Argument) family() (prefix, suffix string, isFamily bool) {
	if prefix, found := strings.CutSuffix(a.Name, ".*"); found {
		return prefix + ".", "", true
	}
	if open := strings.IndexByte(a.Name, '<'); open >= 0 {
		if length := strings.IndexByte(a.Name[open:], '>'); length > 1 {
			return a.Name[:open], a.Name[open+length+1:], true
		}
	}
	return a.Name, "", false
}

// declaration finds the argument for a name, and reports whether there is one.
func declaration(schema []Argument, name string) (Argument, bool) {
	var best Argument
	longest := -1
	for _, argument := range schema {
		prefix, suffix, isFamily := argument.family()
		if !isFamily {
			if argument.Name == name {
				return argument, true
			}
			continue
		}
		fits := len(name) > len(prefix)+len(suffix) && strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix)
		if fits && len(prefix) > longest {
			best, longest = argument, len(prefix)
		}
	}
	return best, longest >= 0
}
