package source

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Entry is a key of a mapping of texts, and its value.
type Entry struct {
	Key string
	Field
}

// Value is a value that is not read yet.
type Value struct {
	Node *yaml.Node
	Field
}

// Keys are the keys of a mapping, each with the function that reads it.
type Keys map[string]func(v Value)

// Reader reads a YAML document strictly.
type Reader struct {
	*Report
	visited int
}

// maxVisited bounds the values that are read. Aliases make a short text stand for very many.
const maxVisited = 200_000

// Document returns the root of the one YAML document in a text, nil if that is not possible.
func (r *Reader) Document(text string) *yaml.Node {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var root, second yaml.Node
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF), err == nil && (len(root.Content) == 0 || isNull(root.Content[0])):
		r.Refuse(Field{}, "the text is empty")
		return nil
	case err != nil:
		r.Refuse(Field{}, "not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		return nil
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		r.Refuse(Field{Number: max(second.Line, 1)}, "a second YAML document begins; expected one")
		return nil
	}
	return root.Content[0]
}

// visit counts a value, and reports whether it is to be read.
func (r *Reader) visit(v Value) bool {
	r.visited++
	if r.visited == maxVisited {
		r.Refuse(v.Field, "the text has more than %d values", maxVisited)
	}
	return r.visited < maxVisited
}

// resolve follows an alias.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// pairs returns the keys and values of a mapping, in the order of the text.
func (r *Reader) pairs(v Value) (pairs []Value, names []string) {
	node := resolve(v.Node)
	if !r.visit(v) || isNull(node) {
		return nil, nil
	}
	if node.Kind != yaml.MappingNode {
		r.Refuse(v.Field, "is %s, expected a mapping", kindOf(node))
		return nil, nil
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := resolve(node.Content[i])
		at := Field{Path: join(v.Path, key.Value), Number: key.Line}
		switch {
		case key.Kind != yaml.ScalarNode:
			r.Refuse(at, "is %s, which cannot be a key", kindOf(key))
			continue
		case key.Tag == "!!merge":
			r.Refuse(at, "merges another mapping into this one; write its keys out")
			continue
		case seen[key.Value] > 0:
			r.Refuse(at, "stands here and on line %d; keep the one you mean", seen[key.Value])
			continue
		}
		seen[key.Value] = key.Line
		pairs, names = append(pairs, Value{Node: resolve(node.Content[i+1]), Field: at}), append(names, key.Value)
	}
	return pairs, names
}

// Mapping reads the keys of a mapping. A key that is not among them is a problem.
func (r *Reader) Mapping(v Value, known Keys) {
	pairs, names := r.pairs(v)
	for i, pair := range pairs {
		read := known[names[i]]
		if read == nil {
			hint := ""
			if lower := strings.ToLower(names[i]); known[lower] != nil {
				hint = "; write " + lower
			}
			r.Refuse(pair.Field, "there is no such key%s", hint)
			continue
		}
		read(pair)
	}
}

// List reads the elements of a list.
func (r *Reader) List(v Value, read func(v Value)) {
	node := resolve(v.Node)
	if !r.visit(v) || isNull(node) {
		return
	}
	if node.Kind != yaml.SequenceNode {
		r.Refuse(v.Field, "is %s, expected a list", kindOf(node))
		return
	}
	for i, child := range node.Content {
		read(Value{Node: resolve(child), Field: Field{Path: fmt.Sprintf("%s[%d]", v.Path, i), Number: child.Line}})
	}
}

// Text reads a value that is no mapping and no list. The result is not written if that is not possible.
func (r *Reader) Text(v Value) Field {
	node := resolve(v.Node)
	switch {
	case !r.visit(v):
		return Field{}
	case node.Kind != yaml.ScalarNode:
		r.Refuse(v.Field, "is %s, expected a text", kindOf(node))
		return Field{}
	case !isNull(node):
		v.Text = node.Value
	}
	return v.Field
}

// Flag reads true or false.
func (r *Reader) Flag(v Value) Field {
	f := r.Text(v)
	if !f.IsWritten() {
		return f
	}
	var is bool
	if node := resolve(v.Node); isNull(node) || node.Decode(&is) != nil {
		r.Refuse(f, "is %q, allowed is true or false", Shorten(f.Text))
		return Field{}
	}
	f.Text = strconv.FormatBool(is)
	return f
}

// Texts reads a mapping of texts.
func (r *Reader) Texts(v Value) (entries []Entry) {
	pairs, names := r.pairs(v)
	for i, pair := range pairs {
		pair.Path = fmt.Sprintf("%s[%s]", v.Path, names[i])
		if f := r.Text(pair); f.IsWritten() {
			entries = append(entries, Entry{Key: names[i], Field: f})
		}
	}
	return entries
}

// Words reads a list of texts, and returns them separated by spaces.
func (r *Reader) Words(v Value) string {
	var words []string
	r.List(v, func(v Value) {
		if word := r.Text(v); word.IsWritten() {
			words = append(words, word.Text)
		}
	})
	return strings.Join(words, " ")
}

// Child returns the value of a key of a mapping, nil if it is not there.
func Child(n *yaml.Node, name string) *yaml.Node {
	n = resolve(n)
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return resolve(n.Content[i+1])
		}
	}
	return nil
}

// ChildText returns the text of a key of a mapping, "" if it is not there.
func ChildText(n *yaml.Node, name string) string {
	if child := Child(n, name); child != nil && child.Kind == yaml.ScalarNode && !isNull(child) {
		return child.Value
	}
	return ""
}

// Shift adds to the lines of a document that stands within another one.
func Shift(n *yaml.Node, lines int) {
	n.Line += lines
	for _, child := range n.Content {
		Shift(child, lines)
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case isNull(n):
		return "empty"
	}
	return strconv.Quote(Shorten(n.Value))
}
