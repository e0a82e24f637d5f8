package conf

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

func (p *parser) tiers(e entry) []Tier {
	var tiers []Tier
	lines := map[string]int{}
	for _, node := range p.list(e, "") {
		var tier Tier
		isWritten := false
		if isEmpty(node) {
			p.report(node.Line, "tiers", "a tier is empty; leave it out")
		}
		for _, e := range p.mapping(entry{key: "a tier", line: node.Line, value: node}, "tiers") {
			if e.key != "plugins" {
				p.unknown(e, "tiers", "plugins")
				continue
			}
			if isEmpty(e.value) {
				p.report(e.line, "tiers", "a tier has no plugins; leave it out")
				continue
			}
			for _, node := range p.list(e, "tiers") {
				isWritten = true
				if plugin, ok := p.plugin(node, lines); ok {
					tier.Plugins = append(tier.Plugins, plugin)
				}
			}
		}
		if isWritten && len(tier.Plugins) == 0 {
			continue // all plugins have problems, or are in an earlier tier
		}
		tiers = append(tiers, tier)
	}
	p.conflicts(tiers)
	return tiers
}

// plugin reads an element of `plugins`, or returns false after reporting why it cannot.
func (p *parser) plugin(node *yaml.Node, lines map[string]int) (Plugin, bool) {
	written, line, found := p.name(entry{key: "an element of plugins", line: node.Line, value: node}, "tiers")
	if !found {
		return Plugin{}, false
	}
	subject := "plugin " + written
	name, spec, known := p.resolve(written, line, "tiers", "plugin", p.catalogue.Plugins)
	if before, twice := lines[name]; known && twice {
		// Volcano makes one instance, from the later entry, and asks it in both tiers.
		p.notice(line, "%s is passed over: it stands on line %d already, and a plugin stands in one place", subject, before)
		return Plugin{}, false
	}
	lines[name] = line
	plugin := Plugin{Name: name, Line: line, Arguments: spec.Defaults()}
	setOn := map[Switch]int{}
	for _, e := range entriesOf(node) {
		which, isSwitch := switchByName(e.key)
		switch {
		case e.key == "name":
		case e.key == "arguments" && known:
			plugin.Arguments = p.arguments(e, subject, spec.Arguments)
		case e.key == "arguments": // of a plugin with a problem that is reported already
		case isSwitch:
			if before, twice := setOn[which]; twice {
				p.report(e.line, subject, "%s is set here and, by its other spelling, on line %d", e.key, before)
			}
			setOn[which] = e.line
			on, ok := p.read(e, subject, Bool).(bool)
			plugin.Switches = plugin.Switches.With(which, ok && on)
		default:
			p.strayKey(e, subject, spec)
		}
	}
	return plugin, known
}

// strayKey reports a key of a plugin's entry that is no switch.
func (p *parser) strayKey(e entry, subject string, spec Spec) {
	if _, isArgument := declaration(spec.Arguments, e.key); isArgument {
		p.report(e.line, subject, "%s is an argument; write it under arguments", e.key)
		return
	}
	p.unknown(e, subject, append([]string{"name", "arguments"}, switchNames[1:]...)...)
}

// arguments reads the `arguments` of an action or plugin, and adds the defaults of the others.
func (p *parser) arguments(e entry, subject string, schema []Argument) Arguments {
	arguments := newArguments(schema)
	writtenAs := map[string]string{}
	for _, e := range p.mapping(e, subject) {
		argument, declared := declaration(schema, e.key)
		name := e.key
		if argument.AliasOf != "" {
			name = argument.AliasOf
			argument, _ = declaration(schema, name)
		}
		if before, twice := writtenAs[name]; twice {
			p.report(e.line, subject, "the arguments %s and %s are the same; keep one of them", before, e.key)
		}
		writtenAs[name] = e.key
		switch {
		case !declared:
			p.unknownArgument(e, subject, schema)
			continue
		case argument.Unsupported != "":
			p.report(e.line, subject, "Volcano's argument %s (%s) is not in Hekla: %s", e.key, show(e.value), argument.Unsupported)
			continue
		}
		value := p.read(entry{key: "argument " + e.key, line: e.line, value: e.value}, subject, argument.Kind)
		if value == nil {
			continue
		}
		if argument.Check != nil {
			if err := argument.Check(value); err != nil {
				p.report(e.line, subject, "argument %s is %s: it must be %v", e.key, show(e.value), err)
				continue
			}
		}
		if argument.NoEffect != "" {
			p.notice(e.line, "%s: argument %s has no effect: %s", subject, e.key, argument.NoEffect)
			continue
		}
		arguments.values[name] = value
	}
	return arguments
}

func (p *parser) unknownArgument(e entry, subject string, schema []Argument) {
	var known []string
	for _, argument := range schema {
		if argument.AliasOf == "" && argument.Unsupported == "" {
			known = append(known, argument.Name)
		}
	}
	if _, isSwitch := switchByName(e.key); isSwitch && strings.HasPrefix(subject, "plugin ") {
		p.report(e.line, subject, "%s is a switch; write it at the level of name, not under arguments", e.key)
		return
	}
	rest := hint(e.key, known)
	if len(known) == 0 {
		rest = "it takes none"
	}
	p.report(e.line, subject, "there is no argument %s (%s); %s", quote(e.key), show(e.value), rest)
}

// conflicts reports plugins that cannot be used together.
func (p *parser) conflicts(tiers []Tier) {
	type place struct {
		plugin Plugin
		tier   int
	}
	places := map[string]place{}
	for i, tier := range tiers {
		for _, plugin := range tier.Plugins {
			places[plugin.Name] = place{plugin, i + 1}
		}
	}
	for _, tier := range tiers {
		for _, plugin := range tier.Plugins {
			for _, conflict := range p.catalogue.Plugins[plugin.Name].Conflicts {
				other, both := places[conflict.With]
				if !both || conflict.Switch != 0 && !plugin.Switches.On(conflict.Switch) {
					continue
				}
				condition := ""
				if conflict.Switch != 0 {
					condition = fmt.Sprintf(" with %v: true", conflict.Switch)
				}
				p.report(plugin.Line, "plugin "+plugin.Name, "it cannot be used%s together with the plugin %s, on line %d in tier %d: %s",
					condition, other.plugin.Name, other.plugin.Line, other.tier, conflict.Reason)
			}
		}
	}
}
