package conf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// document returns the root of the one YAML document in data, or nil if there are only comments.
func document(data []byte) (*yaml.Node, error) {
	// The library would accept UTF-16 too, and number its lines differently from editors.
	if !utf8.Valid(data) {
		return nil, Problems{{Line: 1 + bytes.Count(validPart(data), []byte("\n")), Message: "not a text in UTF-8"}}
	}
	documents, err := decode(data)
	if err != nil {
		message, _ := strings.CutPrefix(err.Error(), "yaml: ")
		return nil, Problems{{Line: brokenLine(data), Message: "not valid YAML: " + libraryLine.ReplaceAllString(message, "")}}
	}
	if len(documents) > 1 {
		return nil, Problems{{Line: documents[1].Line, Message: "a second YAML document begins; expected one"}}
	}
	if len(documents) == 0 || len(documents[0].Content) == 0 || isNull(documents[0].Content[0]) {
		return nil, nil
	}
	root := documents[0].Content[0]
	if found := foreign(root); len(found) > 0 {
		return nil, found
	}
	return root, nil
}

// validPart returns data up to the first byte that is not UTF-8.
func validPart(data []byte) []byte {
	rest := data
	for len(rest) > 0 {
		character, size := utf8.DecodeRune(rest)
		if character == utf8.RuneError && size == 1 {
			break
		}
		rest = rest[size:]
	}
	return data[:len(data)-len(rest)]
}

func decode(data []byte) ([]*yaml.Node, error) {
	var documents []*yaml.Node
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		node := &yaml.Node{}
		switch err := decoder.Decode(node); {
		case errors.Is(err, io.EOF):
			return documents, nil
		case err != nil:
			return nil, err
		}
		documents = append(documents, node)
	}
}

var libraryLine = regexp.MustCompile(`^line \d+: `)

// mostReread limits the bytes that brokenLine reads repeatedly: a second or two. A configuration of a hundred lines
// needs a hundredth of that.
const mostReread = 1 << 25

// brokenLine returns the line at which data ceases to be YAML: the one after the longest valid beginning. The line in
// the library's message is often that of the block around the error, or one next to it. For a file that is too long to
// search it returns 0.
func brokenLine(data []byte) int {
	lines := bytes.SplitAfter(data, []byte("\n"))
	if len(lines)*len(data) > mostReread {
		return 0
	}
	broken := len(lines)
	for end := len(data); broken > 1; broken-- {
		end -= len(lines[broken-1])
		if _, err := decode(data[:end]); err == nil {
			break
		}
	}
	return broken
}

// tags are the tags of a plain YAML file without explicit tags.
var tags = map[string]bool{"!!str": true, "!!int": true, "!!float": true, "!!bool": true, "!!null": true,
	"!!timestamp": true, "!!map": true, "!!seq": true}

// foreign lists features of YAML that the format does not allow. References are among them: every value must be where
// it is used, and a short file must not expand to a long one.
func foreign(node *yaml.Node) Problems {
	var found Problems
	refuse := func(what string) { found = append(found, Problem{Line: node.Line, Message: what}) }
	switch {
	case node.Kind == yaml.AliasNode:
		refuse(fmt.Sprintf("*%s refers to a value elsewhere in the file; write the value out", node.Value))
	case node.ShortTag() == "!!merge":
		refuse("<< merges another mapping into this one; write its keys out")
	case !tags[node.ShortTag()]:
		refuse(fmt.Sprintf("the tag %s has no meaning here; leave it out", node.ShortTag()))
	}
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 && child.Kind != yaml.ScalarNode && child.Kind != yaml.AliasNode {
			found = append(found, Problem{Line: child.Line, Message: show(child) + " cannot be a key"})
			continue
		}
		found = append(found, foreign(child)...)
	}
	return found
}

// entry is a key and its value in a mapping.
type entry struct {
	key   string
	line  int // of the key
	value *yaml.Node
}

// entriesOf returns the entries of a mapping in the order of the file. Of a duplicate key it returns the first.
func entriesOf(mapping *yaml.Node) []entry {
	var entries []entry
	seen := map[string]bool{}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key := mapping.Content[i]
		if !seen[key.Value] {
			entries = append(entries, entry{key: key.Value, line: key.Line, value: mapping.Content[i+1]})
		}
		seen[key.Value] = true
	}
	return entries
}

// duplicates lists the duplicate keys of all mappings of the file.
func duplicates(node *yaml.Node) Problems {
	var found Problems
	lines := map[string]int{}
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			if line, twice := lines[child.Value]; twice {
				found = append(found, Problem{Line: child.Line, Message: fmt.Sprintf(
					"the key %s stands here and on line %d; keep the one you mean", quote(child.Value), line)})
			} else {
				lines[child.Value] = child.Line
			}
			continue
		}
		found = append(found, duplicates(child)...)
	}
	return found
}

// isEmpty reports whether a key has no value, as when all lines below it are comments.
func isEmpty(node *yaml.Node) bool {
	return isNull(node) || node.Kind != yaml.ScalarNode && len(node.Content) == 0
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

// show formats a value for a message.
func show(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	case isNull(node):
		return "empty"
	case node.ShortTag() == "!!str":
		return quote(node.Value)
	}
	return shorten(node.Value)
}

func quote(text string) string { return strconv.Quote(shorten(text)) }

// longestShown is how many characters of a value a message shows.
const longestShown = 60

func shorten(text string) string {
	if characters := []rune(text); len(characters) > longestShown {
		return strings.TrimSpace(string(characters[:longestShown])) + "…"
	}
	return text
}
