package bounds

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestATextIsSplitIntoItsDocuments(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string // what each says, or its error begins with
	}{
		"none":                        {"", nil},
		"one":                         {"a: 1\n", []string{`{"a":1}`}},
		"several":                     {"a: 1\n---\nb: 2\n---\n- c\n", []string{`{"a":1}`, `{"b":2}`, `["c"]`}},
		"separators around":           {"---\na: 1\n---\n---\nb: 2\n---\n", []string{`{"a":1}`, `{"b":2}`}},
		"comments are no document":    {"# one\n---\na: 1\n---\n# two\n---\nb: c: d\n", []string{`{"a":1}`, "document 2: "}},
		"line ends of Windows":        {"a: 1\r\n---\r\nb: 2\r\n", []string{`{"a":1}`, `{"b":2}`}},
		"JSON":                        {`{"a": 1}`, []string{`{"a":1}`}},
		"an empty object":             {"{}\n", []string{"{}"}},
		"what follows a mistake":      {"a: b: c\n---\nb: 2\n", []string{"document 1: ", `{"b":2}`}},
		"a key twice":                 {"a: 1\n---\na: 1\na: 2\n", []string{`{"a":1}`, "document 2: "}},
		"a text within a block stays": {"a: |\n  x\n  ---\n  y\n", []string{`{"a":"x\n---\ny\n"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for d, err := range Documents(strings.NewReader(test.text)) {
				if err != nil {
					got = append(got, err.Error())
					continue
				}
				if d.Number != len(got)+1 {
					t.Errorf("document %d is called %d", len(got)+1, d.Number)
				}
				got = append(got, string(d.JSON))
			}
			if !slices.EqualFunc(got, test.want, func(g, w string) bool {
				return g == w || strings.HasPrefix(w, "document") && strings.HasPrefix(g, w)
			}) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestATextThatCannotBeReadEndsWithTheReason(t *testing.T) {
	broken := errors.New("broken")
	var got []error
	for _, err := range Documents(io.MultiReader(strings.NewReader("a: 1\n---\nb: 2\n"), iotest.ErrReader(broken))) {
		got = append(got, err)
	}
	if len(got) != 2 || got[0] != nil || !errors.Is(got[1], broken) || got[1].Error() != "document 2: broken" {
		t.Errorf("errors %v, want none of the first document, and the reader's of the second", got)
	}
	for range Documents(strings.NewReader("a: 1\n---\nb: 2\n")) {
		break // who has enough may stop
	}
}
