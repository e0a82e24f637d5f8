package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// A retired word is one that the project does not use any more where users read.
type retiredWord struct {
	pattern *regexp.Regexp
	instead string
}

func retire(pattern, instead string) retiredWord {
	return retiredWord{regexp.MustCompile(`(?i)\b(?:` + strings.ReplaceAll(pattern, " ", `\s+`) + `)\b`), instead}
}

// retiredWords are the words that no page, example, manifest or message uses, and what to write instead.
var retiredWords = []retiredWord{
	retire(`doors?|door-?keepers?`, `"admission"; before it a job is "pending admission"`),
	retire(`(?:let|lets|letting)(?: (?:it|them|jobs|(?:the|a|an|every|each|no|which) \w+))? in(?:to)?`, `"admit"`),
	retire(`takers?`, `"preemptor", or "the job that preempts"`),
	retire(`givers?`, `"the job (or queue) of the victim"`),
	retire(`laws?|lawful(?:ly)?|unlawful(?:ly)?`, `"rule", with its number: "rule J1"`),
	retire(`makingroom`, `"Preempting"`),
	retire(`nobody(?:'s)?|no one|somebody(?:'s)?|someone|anybody(?:'s)?|anyone|everybody(?:'s)?|everyone|who(?:so)?ever|whomever`,
		`the subject: "the scheduler", "the API server", "a user", "no pod"`),
	retire(`herds?|flocks?`, `"victims"`),
	retire(`likeness(?:es)?`, `"class"`),
	retire(`hopeless(?:ness)?`, `what is missing, and what would help`),
	retire(`knock(?:s|ed|ing)?`, `"try", "attempt"`),
	retire(`heirs?`, `"replacement"`),
	retire(`errands?|undertakings?`, `"request", "retry", "PlanExecution"`),
	retire(`clerks?|witness(?:es)?`, `what it is: "writer", "watch", "recorder"`),
	retire(`make-believe`, `"simulated"`),
	retire(`turns? the wheel|keeps? (?:its|the) (?:word|door)|who makes room`, `plain words: what happens, and to which object`),
}

// exception is what a file may still use, and why.
type exception struct {
	words []string
	why   string
}

// notYet are the files that still use retired words. The test refuses an entry without use.
var notYet = map[string]exception{
	"internal/metrics/metrics.go": {[]string{"law"}, "a deprecated metric"},
	"docs/metrics.md":             {[]string{"law"}, "a deprecated metric"},
}

// finding is a place that a rule of the language refuses.
type finding struct {
	line int
	word string // the retired word, in small letters
	text string
}

// retiredIn returns the retired words of a text, by line. Blocks of Go on a page are quoted from code, and are not looked at.
func retiredIn(text string) []finding {
	var kept strings.Builder
	isGo := false
	for line := range strings.Lines(text) {
		if fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```"); isFence {
			isGo = fence == "go"
		}
		if isGo {
			line = strings.Repeat("\n", strings.Count(line, "\n"))
		}
		kept.WriteString(line)
	}
	text = kept.String()
	var found []finding
	for _, word := range retiredWords {
		for _, at := range word.pattern.FindAllStringIndex(text, -1) {
			used := strings.Join(strings.Fields(text[at[0]:at[1]]), " ")
			found = append(found, finding{1 + strings.Count(text[:at[0]], "\n"), strings.ToLower(used),
				fmt.Sprintf("%q is retired: write %s", used, word.instead)})
		}
	}
	return found
}

// maxWords is how many words a sentence may have.
const maxWords = 35

var (
	codeSpan    = regexp.MustCompile("``[^`]+``|`[^`]+`")
	linkTarget  = regexp.MustCompile(`\]\([^)]*\)`)
	listItem    = regexp.MustCompile(`^\s*(?:[-*]|\d+\.) `)
	codeList    = regexp.MustCompile(`code(?:,\s+code)+(?:,?\s+and\s+code)?`)
	sentenceEnd = regexp.MustCompile(`[.!?][)"*_]*(?:\s+|$)`)

	abbreviation = regexp.MustCompile(`(?:\b(?:e\.g|i\.e|cf|vs)|\.\.)\.$`) // its full stop does not end a sentence
)

// longSentences returns the sentences of a page that have too many words. Code between fences does not count, a code span, or a
// list of them, is one word. An item of a list and a cell of a table stand on their own, whether a full stop ends them or not.
func longSentences(text string) []finding {
	var found []finding
	var passage []string
	first, number, isCode := 0, 0, false
	flush := func() {
		line := first
		for _, sentence := range splitSentences(strings.Join(passage, "\n")) {
			if words := countWords(sentence); words > maxWords {
				found = append(found, finding{line, "", fmt.Sprintf("%d words in one sentence, and %d are the most: %s", words, maxWords,
					strings.Join(strings.Fields(sentence), " "))})
			}
			line += strings.Count(sentence, "\n")
		}
		passage = nil
	}
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\n")
		isFence := strings.HasPrefix(strings.TrimSpace(line), "```")
		isHead := strings.HasPrefix(line, "#")
		isRow := strings.HasPrefix(line, "|")
		if isFence || isCode || isHead || isRow || strings.TrimSpace(line) == "" || listItem.MatchString(line) {
			flush()
		}
		if isFence {
			isCode = !isCode
		}
		switch {
		case isFence || isCode || isHead || strings.TrimSpace(line) == "":
		case isRow:
			for _, cell := range strings.Split(strings.ReplaceAll(line, `\|`, "/"), "|") {
				first, passage = number, []string{cell}
				flush()
			}
		default:
			if passage == nil {
				first = number
			}
			passage = append(passage, listItem.ReplaceAllString(line, ""))
		}
	}
	flush()
	return found
}

// splitSentences cuts a passage into its sentences, each with the space that follows it.
func splitSentences(passage string) []string {
	oneWord := func(code string) string { return "code" + strings.Repeat("\n", strings.Count(code, "\n")) }
	passage = linkTarget.ReplaceAllString(codeSpan.ReplaceAllStringFunc(passage, oneWord), "]")
	passage = codeList.ReplaceAllStringFunc(passage, oneWord)
	var sentences []string
	start := 0
	for _, end := range sentenceEnd.FindAllStringIndex(passage, -1) {
		if !abbreviation.MatchString(passage[start : end[0]+1]) {
			sentences, start = append(sentences, passage[start:end[1]]), end[1]
		}
	}
	if start < len(passage) {
		sentences = append(sentences, passage[start:])
	}
	return sentences
}

// countWords returns how many words a text has. A sign that stands alone, such as a dash, is no word.
func countWords(text string) int {
	words := 0
	for _, field := range strings.Fields(text) {
		if strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			words++
		}
	}
	return words
}

func TestSentencesOnThePagesAreShort(t *testing.T) {
	for _, path := range pages(t) {
		for _, f := range longSentences(page(t, path)) {
			t.Errorf("%s:%d: %s", path, f.line, f.text)
		}
	}
}

// filesBelow returns the files below a folder with one of the endings.
func filesBelow(t *testing.T, folder string, endings ...string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains(endings, filepath.Ext(path)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%s has no such files: %v", folder, err)
	}
	return found
}

// refuse reports the findings in a file of the module, unless it may still have them.
func refuse(t *testing.T, path string, found []finding, isUsed map[string]bool) {
	t.Helper()
	name := filepath.ToSlash(filepath.Clean(filepath.Join("docs", path)))
	for _, f := range found {
		if slices.Contains(notYet[name].words, f.word) {
			isUsed[name] = true
			continue
		}
		t.Errorf("%s:%d: %s", name, f.line, f.text)
	}
}

// goFiles returns the files of the programs and their packages, without tests and generated clients.
func goFiles(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, folder := range []string{"../pkg", "../internal", "../cmd"} {
		found = append(found, filesBelow(t, folder, ".go")...)
	}
	return slices.DeleteFunc(found, func(path string) bool {
		return strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../pkg/client/")
	})
}

// retiredInLiterals returns the retired words in the texts of a Go file, such as messages and help texts.
func retiredInLiterals(files *token.FileSet, file *ast.File) []finding {
	var found []finding
	ast.Inspect(file, func(n ast.Node) bool {
		if _, isImport := n.(*ast.ImportSpec); isImport {
			return false
		}
		literal, isLiteral := n.(*ast.BasicLit)
		if !isLiteral || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			return true // the compiler refuses it
		}
		for _, f := range retiredIn(text) {
			found = append(found, finding{files.Position(literal.Pos()).Line + f.line - 1, f.word, f.text})
		}
		return true
	})
	return found
}

func TestNoRetiredWordIsUsed(t *testing.T) {
	isUsed := map[string]bool{}
	read := pages(t)
	read = append(read, filesBelow(t, "../example", ".yaml")...)
	read = append(read, filesBelow(t, "../installer", ".yaml", ".tpl")...)
	for _, path := range read {
		refuse(t, path, retiredIn(page(t, path)), isUsed)
	}
	for _, path := range goFiles(t) {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		refuse(t, path, retiredInLiterals(files, file), isUsed)
	}
	for name, e := range notYet {
		if !isUsed[name] {
			t.Errorf("%s uses no retired word any more: remove it from notYet (%s)", name, e.why)
		}
	}
}

// retiredNames are words that names do not contain any more.
var retiredNames = []string{"herd", "flock", "likeness", "hopeless", "knock", "knocking", "heir", "errand", "undertaking", "witness", "clerk",
	"door", "giver", "taker", "lawful", "nobody", "anybody", "somebody", "whoever"}

// wordsOf splits a name at its capitals, in small letters.
func wordsOf(name string) []string {
	var words []string
	for i, r := range name {
		if i == 0 || unicode.IsUpper(r) {
			words = append(words, "")
		}
		words[len(words)-1] += string(unicode.ToLower(r))
	}
	return words
}

// retiredNamesIn returns the names that a Go file declares with a retired word in them.
func retiredNamesIn(files *token.FileSet, file *ast.File) []finding {
	var found []finding
	check := func(names ...*ast.Ident) {
		for _, name := range names {
			for _, word := range wordsOf(name.Name) {
				if slices.Contains(retiredNames, word) || slices.Contains(retiredNames, strings.TrimSuffix(word, "s")) {
					found = append(found, finding{files.Position(name.Pos()).Line, word, fmt.Sprintf("the name %s has the retired word %q", name, word)})
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			check(n.Name)
		case *ast.TypeSpec:
			check(n.Name)
		case *ast.ValueSpec:
			check(n.Names...)
		case *ast.Field:
			check(n.Names...)
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if name, isName := left.(*ast.Ident); isName && n.Tok == token.DEFINE {
					check(name)
				}
			}
		}
		return true
	})
	return found
}

func TestNoNameHasARetiredWord(t *testing.T) {
	for _, path := range filesBelow(t, "..", ".go") {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range retiredNamesIn(files, file) {
			t.Errorf("%s:%d: %s", path, f.line, f.text)
		}
	}
}

func TestRetiredWordsAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"The scheduler admits the job.":                           0,
		"The job waits at the door.":                              1,
		"first line\nenqueue lets the job in, and nobody sees it": 2,
		"Everybody; LAWFUL; a taker":                              3,
		"An outdoor flag, lawn, heirloom and a caretaker":         0,
		"```go\n// law Q3\n```\n":                                 0,
		"```\nby law Q3\n```\n":                                   1,
	} {
		if got := retiredIn(text); len(got) != want {
			t.Errorf("%q: %v, and there should be %d", text, got, want)
		}
	}
	source := "package p\n\nimport _ \"law\"\n\n// Herd is a comment.\ntype Herd struct{ Size, heirs int }\n\nconst m = \"by \" +\n\t\"law J1\"\n"
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if got := retiredInLiterals(files, file); len(got) != 1 || got[0].line != 9 {
		t.Errorf("of the literals: %v", got)
	}
	if got := retiredNamesIn(files, file); len(got) != 2 || got[0].line != 6 || got[1].line != 6 {
		t.Errorf("of the names: %v", got)
	}
}

func TestLongSentencesAreFound(t *testing.T) {
	long := strings.Repeat("word ", maxWords) + "end."
	short := strings.Repeat("word ", maxWords-1) + "end."
	for name, c := range map[string]struct {
		text string
		line int
	}{
		"a short one":           {short, 0},
		"two short ones":        {short + " " + short, 0},
		"a long one":            {"# Title\n\n" + long, 3},
		"over two lines":        {short + "\n" + strings.Replace(long, "word word", "word\nword", 1), 2},
		"in a list":             {"- " + short + "\n- " + long, 2},
		"in a cell":             {"| a | b |\n|---|---|\n| x | " + long + " |", 3},
		"short items of a list": {"- " + strings.TrimSuffix(short, ".") + "\n- " + short, 0},
		"in code":               {"```\n" + long + "\n```\n", 0},
		"a list of code":        {"These are `a b c`" + strings.Repeat(", `d e f`", maxWords) + " and `g`.", 0},
	} {
		found := longSentences(c.text)
		if c.line == 0 && len(found) > 0 || c.line > 0 && (len(found) != 1 || found[0].line != c.line) {
			t.Errorf("%s: %v", name, found)
		}
	}
}
