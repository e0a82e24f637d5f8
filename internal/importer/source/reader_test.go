package source_test

import (
	"strings"
	"testing"

	"hekla.sh/hekla/internal/importer/source"
)

func TestADocumentIsReadStrictlyAndAllProblemsAreListed(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "the text is empty",
		"a: [":                     "not valid YAML",
		"a: 1\n---\nb: 2":          "a second YAML document begins; expected one",
		"a: {}\nc: 1":              "line 1: a: is a mapping, expected a text\nline 2: c: there is no such key",
		"A: 1":                     "line 1: A: there is no such key; write a",
		"a: 1\na: 2":               "stands here and on line 1; keep the one you mean",
		"b: maybe":                 `line 1: b: is "maybe", allowed is true or false`,
		"l: 1":                     `line 1: l: is "1", expected a list`,
		"a: 1\nb: true\nl: [x, y]": "",
	} {
		r := &source.Reader{Report: &source.Report{}}
		if root := r.Document(text); root != nil {
			r.Mapping(source.Value{Node: root}, source.Keys{
				"a": func(v source.Value) { r.Keep(r.Text(v), "a text") },
				"b": func(v source.Value) { r.Change(r.Flag(v), "a flag") },
				"l": func(v source.Value) {
					r.Lose("lists", source.Field{Path: v.Path, Number: v.Number, Text: r.Words(v)}, "a list")
				},
			})
		}
		said := ""
		if err := r.Err(); err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, want) || (said == "") != (want == "") {
			t.Errorf("%q: %q, want %q", text, said, want)
		}
	}
}

func TestALineSaysWhatBecameOfAKey(t *testing.T) {
	r := &source.Report{Accepted: []string{"lists"}}
	r.Lose("lists", source.Field{Path: "l", Number: 3, Text: "x y"}, "there are none")
	r.Keep(source.Field{Path: "a", Number: 1, Text: "1"}, "as it is")
	var text []string
	for _, line := range r.Lines() {
		text = append(text, line.String())
	}
	want := "kept    line 1, a = 1: as it is\nlost    line 3, l = x y: there are none (accepted)"
	if got := strings.Join(text, "\n"); got != want {
		t.Errorf("the lines are\n%s\nwant\n%s", got, want)
	}
}
