// Command crdpolish rewrites CustomResourceDefinition files as controller-gen writes them, for two things no marker can
// say.
//
// It drops the documentation of Kubernetes types that are embedded in Hekla's (pod templates, volume claims). With every
// description the Job definition exceeds the 256 KiB that `kubectl apply` can remember in an annotation; with none
// `kubectl explain` is mute. The embedded types are documented by Kubernetes itself.
//
// It bounds the length of quantities. Without a bound the API server must assume that each may fill a whole request,
// and refuses rules that compare them as too costly.
//
//	crdpolish DIRECTORY [PROPERTY…]
//
// Invariants:
//
//  1. Only descriptions below the named properties go, and only quantities outside of them are bounded; a named property
//     keeps its own description.
//  2. The output depends on the input only, so generated files can be compared. Polishing twice changes nothing.
//
// It must not know what the definitions are for.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"
)

// quantityMaxLength bounds a quantity as text. The longest sensible one, a 64-bit number with sign, decimals and suffix,
// has fewer than 32 characters.
const quantityMaxLength = "64"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: crdpolish DIRECTORY [PROPERTY…]")
		os.Exit(2)
	}
	if err := rewriteAll(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "crdpolish:", err)
		os.Exit(1)
	}
}

// rewriteAll rewrites every YAML file of a directory in place.
func rewriteAll(directory string, embedded []string) error {
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
		rewritten, err := rewrite(content, embedded)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(file, rewritten, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// rewrite returns one polished YAML document.
func rewrite(content []byte, embedded []string) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, err
	}
	polish(&document, embedded)

	var out bytes.Buffer
	out.WriteString("---\n")
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

// polish walks a document and rewrites the schemas in it.
func polish(node *yaml.Node, embedded []string) {
	if node.Kind != yaml.MappingNode {
		for _, child := range node.Content {
			polish(child, embedded)
		}
		return
	}
	if isQuantity(node) {
		set(node, "maxLength", quantityMaxLength)
	}
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Value == "properties" {
			polishProperties(value, embedded)
		} else {
			polish(value, embedded)
		}
	}
}

// polishProperties takes the schemas of properties apart: those of embedded types lose their documentation, the others
// are walked.
func polishProperties(properties *yaml.Node, embedded []string) {
	for i := 0; i+1 < len(properties.Content); i += 2 {
		name, schema := properties.Content[i], properties.Content[i+1]
		if slices.Contains(embedded, name.Value) {
			stripBelow(schema)
		} else {
			polish(schema, embedded)
		}
	}
}

// isQuantity tells a quantity from other values that may be a number or a text: only quantities have a pattern.
func isQuantity(schema *yaml.Node) bool {
	return get(schema, "x-kubernetes-int-or-string") != nil && get(schema, "pattern") != nil
}

// get returns the value of a key, or nil.
func get(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// set gives a key a number as its value, in alphabetical order among the keys.
func set(mapping *yaml.Node, key, number string) {
	if value := get(mapping, key); value != nil {
		value.Value = number
		return
	}
	at := 0
	for at < len(mapping.Content) && mapping.Content[at].Value < key {
		at += 2
	}
	mapping.Content = slices.Insert(mapping.Content, at,
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key},
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: number},
	)
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
