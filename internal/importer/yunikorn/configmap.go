package yunikorn

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"hekla.sh/hekla/internal/importer/source"
)

// losable are the prefixes of keys of YuniKorn's ConfigMap that have no counterpart, and what to do.
var losable = map[string]string{
	"service":             "Hekla's processes have flags of their own; see docs/install.md",
	"log":                 "Hekla's processes have the flag -v",
	"admissionController": "Hekla's webhooks are set up by the flags of the controllers; see docs/admission.md",
	"kubernetes":          "Hekla's processes have the flags --kube-api-qps and --kube-api-burst",
}

// groupKey names the key under which the queues stand, without its suffix .yaml.
const groupKey, defaultGroup = "service.policyGroup", "queues"

// configMap returns the root of queues.yaml in YuniKorn's ConfigMap. The other keys are lost. It returns nil if there
// are no queues.
func (r reader) configMap(root *yaml.Node) (queues *yaml.Node) {
	var entries []source.Entry
	var node *yaml.Node
	skip := func(source.Value) {}
	r.Mapping(source.Value{Node: root, Field: source.Field{Number: root.Line}}, source.Keys{
		"apiVersion": skip, "kind": skip, "metadata": skip, "immutable": skip,
		"data": func(v source.Value) { entries, node = r.Texts(v), v.Node },
	})
	name := defaultGroup
	for _, e := range entries {
		if e.Key == groupKey && e.Text != "" {
			name = e.Text
		}
	}
	name += ".yaml"
	for _, e := range entries {
		prefix, _, _ := strings.Cut(e.Key, ".")
		switch advice, isLosable := losable[prefix]; {
		case e.Key == name:
			if queues = r.Document(e.Text); queues != nil {
				source.Shift(queues, lineAbove(node, name))
			}
		case e.Key == groupKey:
			r.Keep(e.Field, "the queues are read from the key %s", name)
		case isLosable:
			r.Lose(prefix, e.Field, "%s", advice)
		default:
			r.Refuse(e.Field, "YuniKorn has no such key")
		}
	}
	if !slices.ContainsFunc(entries, func(e source.Entry) bool { return e.Key == name }) {
		r.Refuse(source.Field{Path: "data", Number: root.Line}, "the ConfigMap has no key %s", name)
	}
	return queues
}

// lineAbove returns the line above the text of a key: that of the key for a text in a block.
func lineAbove(mapping *yaml.Node, key string) int {
	text := source.Child(mapping, key)
	if text == nil {
		return 0
	}
	if text.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return text.Line
	}
	return text.Line - 1
}
