package bounds

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// Document is one of several in a text of YAML.
type Document struct {
	// Number counts from 1 on, in the order of the text.
	Number int
	// JSON is what it says.
	JSON []byte
}

// Problem is an error that names the document.
func (d Document) Problem(err error) error { return fmt.Errorf("document %d: %w", d.Number, err) }

// Documents splits a text of YAML from any user. Nothing but comments between two separators is no document. An error
// names the document; those behind it follow, unless the text itself cannot be read.
func Documents(from io.Reader) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		reader := yaml.NewYAMLReader(bufio.NewReader(from))
		for number := 1; ; {
			text, readErr := reader.Read()
			if errors.Is(readErr, io.EOF) {
				return
			}
			d, err := Document{Number: number}, readErr
			if err == nil {
				d.JSON, err = YAMLToJSON(text)
			}
			switch {
			case err != nil:
				err = d.Problem(err)
			case bytes.Equal(d.JSON, []byte("null")):
				continue
			}
			if !yield(d, err) || readErr != nil {
				return
			}
			number++
		}
	}
}
