package snapshot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/pkg/apis/bounds"
)

// kept are names with a meaning of their own.
var kept = map[string]bool{"": true, "default": true, "root": true, "kube-system": true, "kube-public": true, "kube-node-lease": true,
	"volcano": true, "default-scheduler": true, "system-cluster-critical": true, "system-node-critical": true}

// Rename reads a snapshot and writes it with other names of namespaces, pods, jobs, queues, nodes and all other
// objects. The same name becomes the same other name everywhere: in references, labels, annotations and sentences.
// Their order stays. Keys of labels and names of resources are not names in this sense.
func Rename(from io.Reader, to io.Writer) (err error) {
	decoder := json.NewDecoder(from)
	decoder.UseNumber()
	var all map[string]any
	if err := decoder.Decode(&all); err != nil {
		return fmt.Errorf("this is no snapshot, or a part of one: %w", err)
	}
	if all["kind"] != Kind {
		return fmt.Errorf("this is %v, and no snapshot", all["kind"])
	}
	r := newRenamer(all)
	objects, _ := all["objects"].([]any)
	for _, o := range objects {
		r.walk(o, "")
	}
	entries, _ := all["journal"].([]any)
	for _, e := range entries {
		r.walk(e, "")
	}
	if queue, ok := all["defaultQueue"].(string); ok {
		all["defaultQueue"] = r.text(queue)
	}
	configuration, _ := all["configuration"].(string)
	if all["configuration"], err = r.configuration(configuration); err != nil {
		return err
	}
	all["namesHidden"] = true
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(all); err != nil {
		return err
	}
	_, err = to.Write(text.Bytes())
	return err
}

// configuration replaces names in arguments of plugins and actions. Names of plugins are not names in this sense.
func (r *renamer) configuration(text string) (string, error) {
	var all map[string]any
	if err := bounds.UnmarshalYAML([]byte(text), &all); err != nil {
		return "", fmt.Errorf("configuration: %w", err)
	}
	r.arguments(all)
	renamed, err := yaml.Marshal(all)
	return string(renamed), err
}

func (r *renamer) arguments(part any) {
	switch part := part.(type) {
	case []any:
		for _, element := range part {
			r.arguments(element)
		}
	case map[string]any:
		for key, value := range part {
			if key == "arguments" {
				part[key] = r.walk(value, key)
				continue
			}
			r.arguments(value)
		}
	}
}

// renamer replaces names.
type renamer struct{ names map[string]string }

// newRenamer finds all names of a snapshot and gives each another, in the same order.
func newRenamer(all map[string]any) *renamer {
	found := map[string]bool{}
	add := func(of any, keys ...string) {
		m, _ := of.(map[string]any)
		for _, key := range keys {
			if name, _ := m[key].(string); !kept[name] {
				found[name] = true
			}
		}
	}
	objects, _ := all["objects"].([]any)
	for _, one := range objects {
		o, _ := one.(map[string]any)
		meta, _ := o["metadata"].(map[string]any)
		add(meta, "name", "namespace", "generateName")
		owners, _ := meta["ownerReferences"].([]any)
		for _, owner := range owners {
			add(owner, "name")
		}
		spec, _ := o["spec"].(map[string]any)
		add(spec, "queue", "parent", "nodeName", "priorityClassName", "cohort", "cohortName", "parentName", "queueName", "clusterQueue")
		containers, _ := spec["containers"].([]any)
		for _, c := range containers {
			add(c, "name", "image")
		}
	}
	entries, _ := all["journal"].([]any)
	for _, e := range entries {
		add(e, "queue", "node")
		for _, key := range []string{"job", "pod", "for"} {
			m, _ := e.(map[string]any)
			text, _ := m[key].(string)
			if namespace, name, ok := strings.Cut(text, "/"); ok {
				add(map[string]any{"namespace": namespace, "name": name}, "namespace", "name")
			}
		}
	}
	sorted := make([]string, 0, len(found))
	for name := range found {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	r := &renamer{names: map[string]string{}}
	for i, name := range sorted {
		r.names[name] = fmt.Sprintf("n%07d", i)
	}
	return r
}

// notNames are fields whose values are words of the API, below which nothing is a name.
var notNames = map[string]bool{"apiVersion": true, "kind": true, "uid": true, "resourceVersion": true, "allocatable": true, "capacity": true, "requests": true,
	"limits": true, "schedulerName": true, "phase": true, "type": true, "operator": true, "effect": true, "key": true, "topologyKey": true}

// shortPrefix is the length of the shortest name that counts as the beginning of a longer word.
const shortPrefix = 3

// walk replaces names in the values below a part of an object.
func (r *renamer) walk(part any, field string) any {
	if notNames[field] {
		return part
	}
	switch part := part.(type) {
	case string:
		return r.text(part)
	case []any:
		for i := range part {
			part[i] = r.walk(part[i], field)
		}
	case map[string]any:
		for key, value := range part {
			part[key] = r.walk(value, key)
		}
	}
	return part
}

// text replaces the names in a text. Names end where the text goes on with neither a letter, a digit, "-" nor ".".
func (r *renamer) text(text string) string {
	if other, ok := r.names[text]; ok {
		return other
	}
	var b strings.Builder
	for len(text) > 0 {
		end := strings.IndexFunc(text, isBetween)
		if end == 0 {
			next := strings.IndexFunc(text, func(c rune) bool { return !isBetween(c) })
			if next < 0 {
				next = len(text)
			}
			b.WriteString(text[:next])
			text = text[next:]
			continue
		}
		if end < 0 {
			end = len(text)
		}
		b.WriteString(r.word(text[:end]))
		text = text[end:]
	}
	return b.String()
}

func isBetween(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_')
}

// word replaces a word, or its parts between dots.
func (r *renamer) word(word string) string {
	if other, ok := r.names[word]; ok {
		return other
	}
	// Names of pods begin with that of their job, and so does much else that is made for it.
	for end := len(word) - 1; end > 0; end-- {
		if other, ok := r.names[word[:end]]; ok && word[end] == '-' && end >= shortPrefix {
			return other + word[end:]
		}
	}
	parts := strings.Split(word, ".")
	for i, part := range parts {
		if other, ok := r.names[part]; ok {
			parts[i] = other
		}
	}
	return strings.Join(parts, ".")
}
