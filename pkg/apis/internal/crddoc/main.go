package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"hekla.sh/hekla/pkg/apis/bounds"
)

func main() {
	forms := flag.String("forms", "", "kinds, separated by commas, whose objects are forms for others, or KIND.PROPERTY for a part")
	older := flag.String("older", "", "GROUP/VERSION, separated by commas: an older version in which the kinds of the group are served as well")
	flag.Parse()
	if flag.NArg() < 1 {
		fmt.Fprintln(os.Stderr, "usage: crddoc [--forms=KIND[.PROPERTY],…] [--older=GROUP/VERSION,…] DIRECTORY [PROPERTY…]")
		os.Exit(2)
	}
	how := options{embedded: flag.Args()[1:], forms: strings.Split(*forms, ","), older: strings.Split(*older, ",")}
	if err := rewriteAll(flag.Arg(0), how); err != nil {
		fmt.Fprintln(os.Stderr, "crddoc:", err)
		os.Exit(1)
	}
}

// options say what is rewritten.
type options struct {
	embedded []string // properties without descriptions below them
	forms    []string // KIND or KIND.PROPERTY without rules about change
	older    []string // GROUP/VERSION to be served as well
}

// rewriteAll rewrites every YAML file of a directory in place.
func rewriteAll(directory string, how options) error {
	files, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no YAML files in %s", directory)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rewritten, err := rewrite(content, how)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(file, rewritten, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// rewrite returns one YAML document without the descriptions below the named properties and, if it defines a form,
// without the rules about change.
func rewrite(content []byte, how options) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, err
	}
	visit(&document, how.embedded)
	boundQuantities(&document)
	allowTwice(&document, how.embedded)
	for _, form := range how.forms {
		if kind, property, isPart := strings.Cut(form, "."); kind != kindOf(&document) {
			continue
		} else if isPart {
			dropRulesOfChangeBelow(&document, property)
		} else {
			dropRulesOfChange(&document)
		}
	}
	for _, older := range how.older {
		if group, version, _ := strings.Cut(older, "/"); group != "" {
			if err := serveOlder(&document, group, version); err != nil {
				return nil, err
			}
		}
	}

	var out bytes.Buffer
	out.WriteString("---\n")
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

// visit finds the named properties, wherever schemas nest, and strips what is below them.
func visit(node *yaml.Node, embedded []string) {
	if node.Kind != yaml.MappingNode {
		for _, child := range node.Content {
			visit(child, embedded)
		}
		return
	}
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Value == "properties" {
			visitProperties(value, embedded)
		} else {
			visit(value, embedded)
		}
	}
}

func visitProperties(properties *yaml.Node, embedded []string) {
	for i := 0; i+1 < len(properties.Content); i += 2 {
		name, schema := properties.Content[i], properties.Content[i+1]
		if slices.Contains(embedded, name.Value) {
			stripBelow(schema)
		} else {
			visit(schema, embedded)
		}
	}
}

// stripBelow removes the descriptions below a schema and leaves the schema's own.
func stripBelow(schema *yaml.Node) {
	for i := 0; i+1 < len(schema.Content); i += 2 {
		if schema.Content[i].Value != "description" {
			strip(schema.Content[i+1], schema.Content[i].Value == "properties")
		}
	}
}

// strip removes every description below a node. Where the keys of a mapping are names of properties, one called
// "description" is a property and stays.
func strip(node *yaml.Node, namesProperties bool) {
	if node.Kind != yaml.MappingNode {
		for _, child := range node.Content {
			strip(child, false)
		}
		return
	}
	kept := node.Content[:0]
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Value == "description" && !namesProperties {
			continue
		}
		strip(value, key.Value == "properties" && !namesProperties)
		kept = append(kept, key, value)
	}
	node.Content = kept
}

// boundQuantities bounds the text of quantities wherever schemas nest. A quantity is a number or a text that has a
// pattern; what may be a number or a name has none.
func boundQuantities(node *yaml.Node) {
	for _, child := range node.Content {
		boundQuantities(child)
	}
	if node.Kind != yaml.MappingNode || valueOf(node, "x-kubernetes-int-or-string") == nil {
		return
	}
	pattern := valueOf(node, "pattern")
	if pattern == nil {
		return
	}
	pattern.SetString(bounds.QuantityPattern)
	length := valueOf(node, "maxLength")
	if length == nil {
		at := slices.Index(node.Content, pattern) - 1
		length = &yaml.Node{}
		key := &yaml.Node{}
		key.SetString("maxLength")
		node.Content = slices.Insert(node.Content, at, key, length)
	}
	*length = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(bounds.MaxQuantityLength)}
}

// repeatable are the lists of a pod template that may have two items of one key, as in a pod: of two environment
// variables of one name the last one counts.
var repeatable = []string{"env", "ports", "imagePullSecrets", "hostAliases"}

// allowTwice makes these lists below the named properties lists without keys: the API server refuses a key twice only
// in custom resources.
func allowTwice(node *yaml.Node, embedded []string) {
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 1 && slices.Contains(embedded, node.Content[i-1].Value) {
			eachProperty(child, func(name string, schema *yaml.Node) {
				if slices.Contains(repeatable, name) && valueOf(schema, listKeys) != nil {
					drop(schema, listKeys)
					valueOf(schema, listType).SetString("atomic")
				}
			})
		} else {
			allowTwice(child, embedded)
		}
	}
}

const (
	listType = "x-kubernetes-list-type"
	listKeys = "x-kubernetes-list-map-keys"
)

// eachProperty calls a function for the schema of each property, wherever schemas nest.
func eachProperty(node *yaml.Node, do func(name string, schema *yaml.Node)) {
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 1 && node.Content[i-1].Value == "properties" {
			for j := 0; j+1 < len(child.Content); j += 2 {
				do(child.Content[j].Value, child.Content[j+1])
			}
		}
		eachProperty(child, do)
	}
}

// drop removes a key of a mapping.
func drop(mapping *yaml.Node, key string) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			mapping.Content = slices.Delete(mapping.Content, i, i+2)
			return
		}
	}
}

// serveOlder adds an older version to the definition of a kind of the group. Its schema is that of the version there
// is, so that nothing need be converted; that one stays the stored one.
func serveOlder(document *yaml.Node, group, name string) error {
	if len(document.Content) != 1 {
		return nil
	}
	spec := valueOf(document.Content[0], "spec")
	if spec == nil {
		return nil
	}
	if of := valueOf(spec, "group"); of == nil || of.Value != group {
		return nil
	}
	versions := valueOf(spec, "versions")
	if versions == nil || len(versions.Content) == 0 {
		return fmt.Errorf("the definition has no version")
	}
	for _, version := range versions.Content {
		if valueOf(version, "name").Value == name {
			return nil
		}
	}
	text, err := yaml.Marshal(versions.Content[0])
	if err != nil {
		return err
	}
	var older yaml.Node
	if err := yaml.Unmarshal(text, &older); err != nil {
		return err
	}
	version := older.Content[0]
	valueOf(version, "name").SetString(name)
	valueOf(version, "storage").Value = "false"
	versions.Content = append(versions.Content, version)
	return nil
}

// valueOf is the value under a key of a mapping, nil if there is none.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// kindOf is the kind that a document defines, or "".
func kindOf(document *yaml.Node) string {
	var definition struct {
		Spec struct {
			Names struct {
				Kind string `yaml:"kind"`
			} `yaml:"names"`
		} `yaml:"spec"`
	}
	if err := document.Decode(&definition); err != nil {
		return ""
	}
	return definition.Spec.Names.Kind
}

const (
	rulesKey = "x-kubernetes-validations"

	// exception is how a rule begins that holds for what is new only.
	exception = "oldSelf.hasValue() || "
)

// dropRulesOfChange removes, wherever schemas nest, the rules that compare with what was there before.
func dropRulesOfChange(node *yaml.Node) {
	for _, child := range node.Content {
		dropRulesOfChange(child)
	}
	if node.Kind != yaml.MappingNode {
		return
	}
	kept := node.Content[:0]
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Value == rulesKey && value.Kind == yaml.SequenceNode {
			value.Content = slices.DeleteFunc(value.Content, isOfChange)
			if len(value.Content) == 0 {
				continue
			}
		}
		kept = append(kept, key, value)
	}
	node.Content = kept
}

// dropRulesOfChangeBelow does that for the properties of a name only.
func dropRulesOfChangeBelow(node *yaml.Node, property string) {
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 1 && node.Content[i-1].Value == property {
			dropRulesOfChange(child)
		} else {
			dropRulesOfChangeBelow(child, property)
		}
	}
}

// isOfChange reports whether a rule needs what was there before. One that only makes an exception of it is rid of that.
func isOfChange(rule *yaml.Node) bool {
	var old *yaml.Node
	kept := make([]*yaml.Node, 0, len(rule.Content))
	for i := 0; i+1 < len(rule.Content); i += 2 {
		switch rule.Content[i].Value {
		case "rule":
			old = rule.Content[i+1]
		case "optionalOldSelf":
			continue
		}
		kept = append(kept, rule.Content[i], rule.Content[i+1])
	}
	if old == nil || !strings.Contains(old.Value, "oldSelf") {
		return false
	}
	rest, isException := strings.CutPrefix(old.Value, exception)
	if !isException || strings.Contains(rest, "oldSelf") {
		return true
	}
	old.Value, rule.Content = rest, kept
	return false
}
