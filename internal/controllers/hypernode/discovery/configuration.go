package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

// SourceLabel is the source that is supported, and the value of the label of HyperNodes that were discovered by it.
const SourceLabel = "label"

// ConfigKey is the key of the ConfigMap under which the configuration stands.
const ConfigKey = "volcano-controller.conf"

const (
	// DefaultInterval is after how long all nodes are looked at again, changed or not, if nothing is said.
	DefaultInterval = time.Hour

	// shortestInterval keeps a slip of the unit from making a busy loop.
	shortestInterval = time.Second

	// longestName is how long the name of a topology may be: Volcano's bound.
	longestName = 20
)

// Configuration is what a ConfigMap asks for.
type Configuration struct {
	// Topologies are followed by the labels of nodes, by name. None if the source label is not enabled.
	Topologies []Topology

	// Interval is after how long all nodes are looked at again.
	Interval time.Duration

	// Refused says of every source that is enabled and not supported why.
	Refused []string
}

// Topology is one kind of network.
type Topology struct {
	Name string

	// Labels are the keys of the labels of nodes, from tier 1 up.
	Labels []string
}

// Parse reads a configuration. The error says, line by line, what is wrong with it.
func Parse(data string) (*Configuration, error) {
	r := &reader{}
	document := &yaml.Node{}
	decoder := yaml.NewDecoder(strings.NewReader(data))
	c := &Configuration{Interval: DefaultInterval}
	switch err := decoder.Decode(document); {
	case errors.Is(err, io.EOF):
		return c, nil
	case err != nil:
		return nil, fmt.Errorf("not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	case !errors.Is(decoder.Decode(&yaml.Node{}), io.EOF):
		return nil, errors.New("more than one YAML document; expected one")
	}
	const list = "networkTopologyDiscovery"
	of := r.mapping(document.Content[0], "", list)
	isFollowed := false
	for i, node := range r.list(of[list], list) {
		r.source(c, node, fmt.Sprintf("%s[%d]", list, i), &isFollowed)
	}
	return c, errors.Join(r.problems...)
}

// reader collects what is wrong while it reads on.
type reader struct {
	problems []error
}

func (r *reader) fail(node *yaml.Node, path, format string, values ...any) {
	r.problems = append(r.problems, fmt.Errorf("line %d: %s: %s", node.Line, cmp.Or(path, "the configuration"), fmt.Sprintf(format, values...)))
}

// mapping returns the values of a mapping by their keys, of which only these may stand in it; without any, all may.
// What is empty is a mapping of nothing.
func (r *reader) mapping(node *yaml.Node, path string, known ...string) map[string]*yaml.Node {
	values := map[string]*yaml.Node{}
	if isEmpty(node) {
		return values
	}
	if node.Kind != yaml.MappingNode {
		r.fail(node, path, "expected a mapping, not %s", show(node))
		return values
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		_, isTwice := values[key.Value]
		switch {
		case isTwice:
			r.fail(key, path, "the key %q stands here twice", key.Value)
		case len(known) > 0 && !slices.Contains(known, key.Value):
			r.fail(key, path, "there is no key %q; there are %s", key.Value, strings.Join(known, ", "))
		default:
			values[key.Value] = value
		}
	}
	return values
}

func (r *reader) list(node *yaml.Node, path string) []*yaml.Node {
	if isEmpty(node) {
		return nil
	}
	if node.Kind != yaml.SequenceNode {
		r.fail(node, path, "expected a list, not %s", show(node))
		return nil
	}
	return node.Content
}

// scalar reads a value into what it is to be; what is not there leaves it.
func (r *reader) scalar(node *yaml.Node, path, expected string, to any) {
	if isEmpty(node) {
		return
	}
	if node.Kind != yaml.ScalarNode || node.Decode(to) != nil {
		r.fail(node, path, "expected %s, not %s", expected, show(node))
	}
}

// source reads one source.
func (r *reader) source(c *Configuration, node *yaml.Node, path string, isFollowed *bool) {
	values := r.mapping(node, path, "source", "enabled", "interval", "credentials", "config")
	name, isEnabled := "", false
	r.scalar(values["source"], path+".source", "the name of a source", &name)
	r.scalar(values["enabled"], path+".enabled", "true or false", &isEnabled)
	interval := r.interval(values["interval"], path+".interval")
	switch name {
	case "ufm", "roce":
		if isEnabled {
			c.Refused = append(c.Refused, fmt.Sprintf("%s.source: %q is not supported, for it asks devices of a vendor; "+
				"HyperNodes are discovered by the source label, or written by hand", path, name))
		}
	case SourceLabel:
		if !isEnabled {
			return
		}
		if *isFollowed {
			r.fail(node, path, "the source %q is enabled twice", name)
		}
		*isFollowed = true
		c.Interval = interval
		if credentials := values["credentials"]; !isEmpty(credentials) {
			r.fail(credentials, path+".credentials", "the source %q needs no credentials", name)
		}
		const types = "networkTopologyTypes"
		config := r.mapping(values["config"], path+".config", types)
		c.Topologies = r.topologies(node, config[types], path+".config."+types)
	default:
		r.fail(node, path+".source", "there is no source %q; there is label", name)
	}
}

func (r *reader) interval(node *yaml.Node, path string) time.Duration {
	interval := time.Duration(0)
	r.scalar(node, path, "a duration such as 10m", &interval)
	switch {
	case interval == 0:
		return DefaultInterval
	case interval < shortestInterval:
		r.fail(node, path, "%s is less than %s", show(node), shortestInterval)
	}
	return interval
}

// topologies reads a mapping of names to labels, or a list of such mappings: Volcano takes both.
func (r *reader) topologies(source, node *yaml.Node, path string) []Topology {
	parts := []*yaml.Node{node}
	if !isEmpty(node) && node.Kind == yaml.SequenceNode {
		parts = node.Content
	}
	var topologies []Topology
	inNames := map[string]string{}
	for _, part := range parts {
		of := r.mapping(part, path)
		for _, name := range slices.Sorted(maps.Keys(of)) {
			labels := of[name]
			at := path + "." + name
			clean := cleanName(name)
			switch other, isTaken := inNames[clean]; {
			case len(name) > longestName:
				r.fail(labels, at, "the name has %d characters; %d are the most", len(name), longestName)
			case len(validation.IsDNS1123Subdomain(prefix(name, 1)+"x")) > 0:
				r.fail(labels, at, "%q cannot be a part of the names of HyperNodes, which would begin with %s", name, prefix(name, 1))
			case isTaken:
				r.fail(labels, at, "%q and %q are the same in the names of HyperNodes", min(name, other), max(name, other))
			}
			inNames[clean] = name
			topologies = append(topologies, Topology{Name: name, Labels: r.labels(labels, at)})
		}
	}
	if len(topologies) == 0 && len(r.problems) == 0 {
		r.fail(source, path, "a topology is needed: its name, and the labels of nodes that make it up")
	}
	slices.SortFunc(topologies, func(a, b Topology) int { return cmp.Compare(a.Name, b.Name) })
	return topologies
}

// labels reads the labels of one topology. They stand from the farthest to the closest and end with that of the nodes.
func (r *reader) labels(node *yaml.Node, path string) []string {
	entries := r.list(node, path)
	var keys []string
	for i, entry := range entries {
		at := fmt.Sprintf("%s[%d]", path, i)
		key := ""
		r.scalar(r.mapping(entry, at, "nodeLabel")["nodeLabel"], at+".nodeLabel", "the key of a label", &key)
		switch problems := validation.IsQualifiedName(key); {
		case len(problems) > 0:
			r.fail(entry, at+".nodeLabel", "%q is no key of a label: %s", key, problems[0])
		case key == topologyv1alpha1.NetworkTopologySourceLabelKey:
			r.fail(entry, at+".nodeLabel", "%q says who makes a HyperNode; it cannot say where nodes are", key)
		case slices.Contains(keys, key):
			r.fail(entry, at+".nodeLabel", "%q stands here twice", key)
		}
		keys = append(keys, key)
	}
	switch {
	case len(keys) == 0:
		r.fail(node, path, "expected a list of nodeLabel")
	case keys[len(keys)-1] != corev1.LabelHostname:
		r.fail(entries[len(entries)-1], path, "the last nodeLabel stands for the nodes themselves and must be %q, not %q",
			corev1.LabelHostname, keys[len(keys)-1])
	case len(keys) == 1:
		r.fail(node, path, "a nodeLabel above %q is needed", corev1.LabelHostname)
	default:
		keys = keys[:len(keys)-1]
	}
	slices.Reverse(keys)
	return keys
}

func isEmpty(node *yaml.Node) bool {
	return node == nil || node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

// show is a value as a message mentions it.
func show(node *yaml.Node) string {
	switch node.Kind {
	case yaml.ScalarNode:
		return fmt.Sprintf("%q", node.Value)
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	}
	return "a reference"
}
