package conf

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// YAML prints the configuration in force: every switch, and every argument with a value, with aliases resolved, in an
// order that does not depend on the file. Parsing it gives an equal configuration. It contains the secrets of the
// metrics block.
func (c *Configuration) YAML() []byte { return c.print(c.Metrics, true) }

// String is [Configuration.YAML] for logs, without the secrets of the metrics block and without switches at their
// defaults.
func (c *Configuration) String() string {
	metrics := maps.Clone(c.Metrics)
	for key := range metrics {
		if strings.HasSuffix(key, "password") {
			metrics[key] = "(not shown)"
		}
	}
	return string(c.print(metrics, false))
}

func (c *Configuration) print(metrics map[string]string, allSwitches bool) []byte {
	root := &yaml.Node{Kind: yaml.MappingNode}
	put(root, "actions", text(strings.Join(c.Actions, ", ")))
	tiers := &yaml.Node{Kind: yaml.SequenceNode}
	for _, tier := range c.Tiers {
		plugins := &yaml.Node{Kind: yaml.SequenceNode}
		for _, plugin := range tier.Plugins {
			plugins.Content = append(plugins.Content, plugin.node(allSwitches))
		}
		node := &yaml.Node{Kind: yaml.MappingNode}
		put(node, "plugins", plugins)
		tiers.Content = append(tiers.Content, node)
	}
	put(root, "tiers", tiers)
	configurations := &yaml.Node{Kind: yaml.SequenceNode}
	for _, action := range c.Actions {
		if arguments := c.ActionArguments[action]; len(arguments.values) > 0 {
			node := &yaml.Node{Kind: yaml.MappingNode}
			put(node, "name", name(action))
			put(node, "arguments", render(arguments.values))
			configurations.Content = append(configurations.Content, node)
		}
	}
	if len(configurations.Content) > 0 {
		put(root, "configurations", configurations)
	}
	if len(metrics) > 0 {
		put(root, "metrics", render(metrics))
	}
	compatibility := &yaml.Node{Kind: yaml.MappingNode}
	put(compatibility, "preemptableByDefault", render(c.Compatibility.PreemptableByDefault))
	put(compatibility, "queuePriority", name(string(c.Compatibility.QueuePriority)))
	put(compatibility, "victimVote", name(string(c.Compatibility.VictimVote)))
	put(root, "compatibility", compatibility)

	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		panic(fmt.Sprintf("conf: a configuration that was parsed cannot be printed: %v", err))
	}
	return out.Bytes()
}

func (p Plugin) node(allSwitches bool) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	put(node, "name", name(p.Name))
	for s := Switch(1); s <= lastSwitch; s++ {
		if on := p.Switches.On(s); allSwitches || on != s.Default() {
			put(node, s.String(), render(on))
		}
	}
	if len(p.Arguments.values) > 0 {
		put(node, "arguments", render(p.Arguments.values))
	}
	return node
}

func put(mapping *yaml.Node, key string, value *yaml.Node) {
	mapping.Content = append(mapping.Content, name(key), value)
}

// render returns a value of any kind as a node. Mappings are sorted by key.
func render(value any) *yaml.Node {
	switch v := value.(type) {
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
	case int:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(v)}
	case float64:
		digits := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(digits, ".e") {
			digits += ".0" // otherwise it would need the tag !!float to be parsed as one
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: digits}
	case string:
		return text(v)
	case time.Duration:
		return text(v.String())
	case []any:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		for _, element := range v {
			node.Content = append(node.Content, render(element))
		}
		return node
	case map[string]any:
		return renderMap(v)
	case map[string]string:
		return renderMap(v)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
}

func renderMap[V any](values map[string]V) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		put(node, key, render(values[key]))
	}
	return node
}

// text returns a scalar that every parser reads as a string.
func text(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: value}
}

var plainName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)

// name returns a scalar for a place where only a string is allowed. It needs no quotes unless it has unusual
// characters.
func name(value string) *yaml.Node {
	if plainName.MatchString(value) {
		return &yaml.Node{Kind: yaml.ScalarNode, Value: value}
	}
	return text(value)
}
