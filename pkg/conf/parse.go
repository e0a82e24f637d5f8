package conf

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"hekla.sh/hekla/internal/similar"
)

// Parse reads a configuration. The error is [Problems] if the file is wrong, and another error if the catalogue is.
func Parse(data []byte, catalogue Catalogue) (*Configuration, error) {
	if err := catalogue.Validate(); err != nil {
		return nil, fmt.Errorf("catalogue of actions and plugins: %w", err)
	}
	root, err := document(data)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return nil, Problems{{Message: "the configuration is empty; expected at least actions and tiers"}}
	}
	p := parser{catalogue: catalogue, problems: duplicates(root)}
	c := p.configuration(root)
	if len(p.problems) > 0 {
		slices.SortStableFunc(p.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
		return nil, p.problems
	}
	slices.SortStableFunc(p.notices, func(a, b Notice) int { return cmp.Compare(a.Line, b.Line) })
	c.Notices = p.notices
	return c, nil
}

// ParseArguments reads the arguments of one action or plugin: a mapping of names to values. Empty data gives
// [Spec.Defaults]. The error is [Problems].
func ParseArguments(data []byte, spec Spec) (Arguments, error) {
	if errs := validateArguments(spec.Arguments); len(errs) > 0 {
		return Arguments{}, errs[0]
	}
	root, err := document(data)
	if err != nil {
		return Arguments{}, err
	}
	if root == nil {
		return spec.Defaults(), nil
	}
	p := parser{problems: duplicates(root)}
	arguments := p.arguments(entry{key: "arguments", line: root.Line, value: root}, "", spec.Arguments)
	if len(p.problems) > 0 {
		return Arguments{}, p.problems
	}
	return arguments, nil
}

// parser collects problems while it continues to read.
type parser struct {
	catalogue Catalogue
	problems  Problems
	notices   []Notice
}

func (p *parser) report(line int, subject, format string, values ...any) {
	p.problems = append(p.problems, Problem{Line: line, Subject: subject, Message: fmt.Sprintf(format, values...)})
}

func (p *parser) notice(line int, format string, values ...any) {
	p.notices = append(p.notices, Notice{Line: line, Text: fmt.Sprintf(format, values...)})
}

// mapping returns the entries of a value that must be a mapping. An empty block, with only comments, is one.
func (p *parser) mapping(e entry, subject string) []entry {
	if isNull(e.value) {
		return nil
	}
	if e.value.Kind != yaml.MappingNode {
		p.report(e.line, subject, "%s is %s: expected a mapping", e.key, show(e.value))
		return nil
	}
	return entriesOf(e.value)
}

// list returns the elements of a value that must be a list.
func (p *parser) list(e entry, subject string) []*yaml.Node {
	if e.value.Kind != yaml.SequenceNode {
		p.report(e.line, subject, "%s is %s: expected a list", e.key, show(e.value))
		return nil
	}
	return e.value.Content
}

// read returns the value of a key, or nil after reporting why it has none.
func (p *parser) read(e entry, subject string, kind Kind) any {
	value, err := kind.read(e.value)
	if err != nil {
		p.report(e.line, subject, "%s is %s: %v", e.key, show(e.value), err)
		return nil
	}
	return value
}

// unknown reports a key that is not known in its place.
func (p *parser) unknown(e entry, subject string, known ...string) {
	p.report(e.line, subject, "the key %s (%s) is not known; %s", quote(e.key), show(e.value), hint(e.key, known))
}

func (p *parser) configuration(root *yaml.Node) *Configuration {
	c := &Configuration{}
	blocks := map[string]entry{}
	known := []string{"actions", "tiers", "configurations", "metrics", "compatibility"}
	for _, e := range p.mapping(entry{key: "the configuration", line: root.Line, value: root}, "") {
		if slices.Contains(known, e.key) {
			blocks[e.key] = e
		} else {
			p.unknown(e, "", known...)
		}
	}
	if root.Kind != yaml.MappingNode {
		return c
	}
	if e, found := blocks["actions"]; found {
		c.Actions = p.actions(e)
	} else {
		p.report(0, "actions", "missing; expected a text such as \"enqueue, allocate, backfill\"")
	}
	if e, found := blocks["tiers"]; found {
		c.Tiers = p.tiers(e)
	} else {
		p.report(0, "tiers", "missing; expected a list of tiers, each with its plugins")
	}
	c.ActionArguments = p.actionArguments(blocks["configurations"], c.Actions)
	c.Metrics = p.metrics(blocks["metrics"], c.Tiers)
	p.needs(c)
	p.decided(c.Tiers)
	c.Compatibility = p.compatibility(blocks["compatibility"])
	return c
}

// needs says which plugins lack an action.
func (p *parser) needs(c *Configuration) {
	for _, tier := range c.Tiers {
		for _, plugin := range tier.Plugins {
			for _, need := range p.catalogue.Plugins[plugin.Name].Needs {
				if !slices.Contains(c.Actions, need.Action) {
					p.notice(plugin.Line, "plugin %s: actions does not name %s, so %s", plugin.Name, need.Action, need.Lack)
				}
			}
		}
	}
}

const notAsked = "it is not asked; put it into the first tier"

// decided says which plugins are not asked which pods may be evicted, since a plugin of an earlier tier decides that.
func (p *parser) decided(tiers []Tier) {
	by := map[Switch]string{} // the first plugin that decides
	for _, tier := range tiers {
		for _, plugin := range tier.Plugins {
			var lost []string
			for _, which := range []Switch{EnablePreemptable, EnableReclaimable} {
				if first := by[which]; first != "" && plugin.Switches.On(which) {
					lost = append(lost, fmt.Sprintf("%s (%s)", which, first))
				}
			}
			if protects := p.catalogue.Plugins[plugin.Name].Protects; protects != "" && len(lost) > 0 {
				p.notice(plugin.Line, "plugin %s does not protect %s: plugins of an earlier tier decide %s, so %s",
					plugin.Name, protects, strings.Join(lost, " and "), notAsked)
			}
		}
		for _, plugin := range tier.Plugins {
			for _, which := range p.catalogue.Plugins[plugin.Name].Decides {
				if by[which] == "" && plugin.Switches.On(which) {
					by[which] = plugin.Name
				}
			}
		}
	}
}

// resolve returns the name and spec for a name in the file, or false after reporting why it is left out.
func (p *parser) resolve(name string, line int, subject, noun string, specs map[string]Spec) (string, Spec, bool) {
	spec, found := specs[name]
	canonical := name
	if spec.AliasOf != "" {
		canonical, spec = spec.AliasOf, specs[spec.AliasOf]
	}
	switch {
	case !found:
		known := slices.DeleteFunc(slices.Collect(maps.Keys(specs)), func(name string) bool { return specs[name].Unsupported != "" })
		p.report(line, subject, "there is no %s %s; %s", noun, quote(name), hint(name, known))
	case spec.Unsupported != "":
		p.report(line, subject, "Volcano's %s %q is not in Hekla: %s", noun, name, spec.Unsupported)
	case spec.NoEffect != "":
		p.notice(line, "%s: %s %q has no effect: %s", subject, noun, name, spec.NoEffect)
	default:
		return canonical, spec, true
	}
	return "", Spec{}, false
}

func (p *parser) actions(e entry) []string {
	if e.value.Kind != yaml.ScalarNode || e.value.ShortTag() != "!!str" {
		p.report(e.line, "", "actions is %s: expected one text, such as \"enqueue, allocate, backfill\"", show(e.value))
		return nil
	}
	var actions []string
	writtenAs := map[string]string{}
	named := false
	for written := range strings.SplitSeq(e.value.Value, ",") {
		if written = strings.TrimSpace(written); written == "" {
			continue // an extra comma, as after the last action
		}
		named = true
		action, _, ok := p.resolve(written, e.line, "actions", "action", p.catalogue.Actions)
		if !ok {
			continue
		}
		if before, twice := writtenAs[action]; twice {
			if before == written {
				p.report(e.line, "actions", "%q is named twice; an action runs once in a cycle", written)
			} else {
				p.report(e.line, "actions", "%q and %q are the same action; keep one of them", before, written)
			}
			continue
		}
		writtenAs[action] = written
		actions = append(actions, action)
	}
	if !named {
		p.report(e.line, "", "actions is %s: expected at least one action, such as \"enqueue, allocate, backfill\"", show(e.value))
	}
	return actions
}

func (p *parser) actionArguments(e entry, actions []string) map[string]Arguments {
	all := make(map[string]Arguments, len(actions))
	for _, action := range actions {
		all[action] = p.catalogue.Actions[action].Defaults()
	}
	if e.value == nil || isEmpty(e.value) {
		return all
	}
	lines := map[string]int{}
	for _, node := range p.list(e, "") {
		element := entry{key: "an element", line: node.Line, value: node}
		name, line, found := p.name(element, "configurations")
		if !found {
			continue
		}
		if _, is := p.catalogue.Actions[name]; !is && similar.Nearest(name, slices.Collect(maps.Keys(p.catalogue.Actions))) == "" {
			// Volcano reads other things here, such as init-params for its vNPU, and passes over what it does not know.
			p.notice(line, "configurations: %s has no effect: there is no such action", quote(name))
			continue
		}
		action, spec, ok := p.resolve(name, line, "configurations", "action", p.catalogue.Actions)
		if !ok {
			continue
		}
		if before, twice := lines[action]; twice {
			p.report(line, "configurations", "the action %q is configured here and on line %d; put all its arguments in one place", action, before)
		}
		lines[action] = line
		arguments := p.catalogue.Actions[action].Defaults()
		for _, e := range entriesOf(node) {
			switch e.key {
			case "name":
			case "arguments":
				arguments = p.arguments(e, "action "+name, spec.Arguments)
			default:
				p.unknown(e, "action "+name, "name", "arguments")
			}
		}
		if _, runs := all[action]; runs {
			all[action] = arguments
		} else {
			p.notice(line, "action %s is configured, but actions does not name it", name)
		}
	}
	return all
}

// name returns the `name` of an element of a list, or false after reporting that it has none.
func (p *parser) name(element entry, subject string) (string, int, bool) {
	if element.value.Kind != yaml.MappingNode {
		p.report(element.line, subject, "%s is %s: expected a mapping with a name", element.key, show(element.value))
		return "", 0, false
	}
	for _, e := range entriesOf(element.value) {
		if e.key == "name" {
			name, ok := p.read(e, subject, String).(string)
			return strings.TrimSpace(name), e.line, ok
		}
	}
	p.report(element.line, subject, "%s has no name", element.key)
	return "", 0, false
}
