package job

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestACommandIsSplitAsAShellSplitsIt(t *testing.T) {
	for text, want := range map[string][]string{
		"":                             nil,
		"  ":                           nil,
		"sleep  10\t":                  {"sleep", "10"},
		`sh -c 'echo "a b" \n'`:        {"sh", "-c", `echo "a b" \n`},
		`sh -c "echo 'a' \"b\" \\ \n"`: {"sh", "-c", `echo 'a' "b" \ \n`},
		`a\ b c''d ""`:                 {"a b", "cd", ""},
		`pre"mid dle"post`:             {"premid dlepost"},
	} {
		got, err := splitWords(text)
		if difference := cmp.Diff(want, got); err != nil || difference != "" {
			t.Errorf("%s: %v (-want +got)\n%s", text, err, difference)
		}
	}
	for _, text := range []string{`a 'b`, `a "b`, `a \`} {
		if got, err := splitWords(text); err == nil {
			t.Errorf("%s is split into %q", text, got)
		}
	}
}

func TestWordsThatAreQuotedComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.String(), 1, 5).Draw(t, "words")
		var quoted []string
		for _, word := range words {
			quoted = append(quoted, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
		}
		got, err := splitWords(strings.Join(quoted, " "))
		if difference := cmp.Diff(words, got); err != nil || difference != "" {
			t.Fatalf("%v (-want +got)\n%s", err, difference)
		}
	})
}
