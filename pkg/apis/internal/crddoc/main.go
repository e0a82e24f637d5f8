package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: crddoc DIRECTORY [PROPERTY…]")
		os.Exit(2)
	}
	if err := rewriteAll(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "crddoc:", err)
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

// rewrite returns one YAML document without the descriptions below the named properties.
func rewrite(content []byte, embedded []string) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, err
	}
	visit(&document, embedded)

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
