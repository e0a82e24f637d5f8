package docs

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A remark is the text of a comment without its slashes. Its line n is the line first+n of the file.
type remark struct {
	first int
	lines []string
}

// directive matches a comment that is read by a tool. An example's output is text of the program, not of the comment.
var (
	directive     = regexp.MustCompile(`^//(?:line |extern |export |nolint|[a-z0-9]+:[a-z0-9])`)
	marker        = regexp.MustCompile(`^\+[a-zA-Z0-9]+(?:[:=].*)?$`)
	plainText     = regexp.MustCompile(`^[A-Za-z0-9.,;:?!'"()-]+(?: [A-Za-z0-9.,;:?!'"()-]+)*$`)
	exampleOutput = regexp.MustCompile(`(?i)^(?:unordered )?output:`)
)

// textOf returns what a comment says, line by line. Directives, markers of code generators and the output of examples are left empty.
func textOf(c *ast.Comment) []string {
	text, isBlock := strings.CutPrefix(c.Text, "/*")
	if isBlock {
		lines := strings.Split(strings.TrimSuffix(text, "*/"), "\n")
		for i, line := range lines {
			lines[i] = strings.TrimPrefix(strings.TrimLeft(line, " \t"), "* ")
		}
		return lines
	}
	text = strings.TrimPrefix(strings.TrimPrefix(text, "//"), " ")
	if directive.MatchString(c.Text) || marker.MatchString(text) {
		return []string{""}
	}
	return []string{text}
}

// remarksIn returns the comments of a file. A comment behind code and the comments right below it in the same column are one remark,
// which gofmt does not say, but a reader sees.
func remarksIn(files *token.FileSet, file *ast.File, source []byte) []remark {
	var remarks []remark
	code := strings.Split(string(source), "\n")
	column, next := 0, 0 // where a comment would continue the last remark
	for _, group := range file.Comments {
		at := files.Position(group.Pos())
		isAlone := strings.HasPrefix(strings.TrimSpace(code[at.Line-1]), "/")
		if len(remarks) == 0 || at.Line != next || at.Column != column || !isAlone {
			remarks = append(remarks, remark{first: at.Line})
		}
		last := &remarks[len(remarks)-1]
		for _, c := range group.List {
			lines := textOf(c)
			if exampleOutput.MatchString(lines[0]) {
				break
			}
			for len(last.lines) < files.Position(c.Pos()).Line-last.first {
				last.lines = append(last.lines, "")
			}
			if n := files.Position(c.Pos()).Line - last.first; n < len(last.lines) { // two comments on a line
				last.lines[n] += " " + lines[0]
				lines = lines[1:]
			}
			last.lines = append(last.lines, lines...)
		}
		column, next = at.Column, files.Position(group.End()).Line+1
	}
	return remarks
}

// passages returns the parts of a remark in which sentences do not cross over: its paragraphs, items of lists and blocks of code.
// A paragraph goes on behind an empty line or a block of code unless its last sentence has ended.
func (r remark) passages() []remark {
	var prose, code []remark
	isOpen, isItem, wasCode := false, false, false
	for i, line := range r.lines {
		trimmed := strings.TrimSpace(line)
		startsItem := listItem.MatchString(line)
		isCode := !startsItem && !isItem && (strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "  "))
		switch {
		case trimmed == "" || strings.HasPrefix(line, "# "):
			if isOpen {
				last := prose[len(prose)-1].lines
				isOpen = trimmed == "" && !strings.ContainsAny(last[len(last)-1][len(last[len(last)-1])-1:], ".!?:)")
			}
			isItem = isItem && isOpen
		case isCode && !plainText.MatchString(trimmed):
			isCode = false
		case isCode:
			if !wasCode {
				code = append(code, remark{first: r.first + i})
			}
			code[len(code)-1].lines = append(code[len(code)-1].lines, trimmed)
		default:
			if startsItem || !isOpen {
				prose = append(prose, remark{first: r.first + i})
			}
			last := &prose[len(prose)-1]
			for last.first+len(last.lines) < r.first+i {
				last.lines = append(last.lines, "")
			}
			last.lines = append(last.lines, strings.TrimSpace(listItem.ReplaceAllString(line, "")))
			isItem = startsItem || isItem
			isOpen = true
		}
		wasCode = isCode
	}
	// Lines of plain words are prose, also where they are indented like code.
	return append(prose, code...)
}

// maxWordsOfCode is how many words between backticks are one word of a sentence. Longer text is prose.
const maxWordsOfCode = 15

// longSentencesOf returns the sentences of a remark that have too many words.
func longSentencesOf(r remark) []finding {
	var found []finding
	for _, passage := range r.passages() {
		line := passage.first
		text := codeSpan.ReplaceAllStringFunc(strings.Join(passage.lines, "\n"), func(span string) string {
			if countWords(span) > maxWordsOfCode {
				return strings.Trim(span, "`")
			}
			return span
		})
		for _, sentence := range splitSentences(text) {
			if words := countWords(sentence); words > maxWords {
				found = append(found, finding{line, "", fmt.Sprintf("%d words in one sentence, and %d are the most: %s", words, maxWords,
					strings.Join(strings.Fields(sentence), " "))})
			}
			line += strings.Count(sentence, "\n")
		}
	}
	return found
}

// names matches code that has the name of a retired word: the package test/laws, and single words between backticks, such as keys.
var names = regexp.MustCompile("(?:\\b[Pp]ackage |/)laws\\b|`[^`\\s]+`")

// findingsInComments returns what the comments of a Go file say in words that are retired, or in sentences that are too long.
func findingsInComments(files *token.FileSet, file *ast.File, source []byte) []finding {
	var found []finding
	for _, r := range remarksIn(files, file, source) {
		for _, f := range retiredIn(names.ReplaceAllString(strings.Join(r.lines, "\n"), "name")) {
			f.line += r.first - 1
			found = append(found, f)
		}
		found = append(found, longSentencesOf(r)...)
	}
	slices.SortStableFunc(found, func(a, b finding) int { return cmp.Compare(a.line, b.line) })
	return found
}

func TestCommentsAreInPlainWords(t *testing.T) {
	findings := map[string][]string{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != "..":
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(file) {
			return err
		}
		name := filepath.ToSlash(filepath.Clean(filepath.Join("docs", path)))
		folder := filepath.ToSlash(filepath.Dir(name))
		for _, f := range findingsInComments(files, file, source) {
			findings[folder] = append(findings[folder], fmt.Sprintf("%s:%d: %s", name, f.line, f.text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range slices.Sorted(maps.Keys(findings)) {
		for _, f := range findings[folder] {
			t.Error(f)
		}
	}
}

func TestFindingsInCommentsAreExact(t *testing.T) {
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
	long, short, half := words(maxWords)+" end.", words(maxWords-1)+" end.", words(maxWords/2+1)
	for name, c := range map[string]struct {
		source string
		lines  []int // of the findings
	}{
		"a short sentence":                       {"// " + short + "\n", nil},
		"a long sentence":                        {"// " + long + "\n", []int{3}},
		"the second sentence":                    {"// " + short + "\n// " + long + "\n", []int{4}},
		"over two lines":                         {"// " + half + "\n// " + half + "\n", []int{3}},
		"over an empty line of the comment":      {"// " + half + "\n//\n// " + half + "\n", []int{3}},
		"over a block of code":                   {"// " + half + "\n//\n//\ta := b\n//\n// " + half + "\n", []int{3}},
		"two paragraphs":                         {"// " + half + ".\n//\n// " + half + ".\n", nil},
		"a heading":                              {"// # " + half + "\n//\n// " + half + ".\n", nil},
		"behind a colon":                         {"// " + half + ":\n//\n// " + half + ".\n", nil},
		"items of a list":                        {"// " + half + ":\n//   - " + half + "\n//   - " + half + "\n", nil},
		"an item of two lines":                   {"// List:\n//   - " + half + "\n//     " + half + "\n", []int{4}},
		"a block of code":                        {"// Code:\n//\n//\tfor a := range b {\n//\t\tc[a] = d\n//\t}\n", nil},
		"a table":                                {"// Table:\n//\n//\ta    " + half + "\n//\tb    " + half + "\n", nil},
		"a sentence indented like code":          {"// Code:\n//\n//\t" + half + "\n//\t" + half + "\n", []int{5}},
		"behind code":                            {"var a int // " + half + "\n", nil},
		"behind code and below in the same row":  {"var a int // " + half + "\n          // " + half + "\n", []int{3}},
		"behind code and below in another one":   {"var a int // " + half + "\n\n// " + half + "\nvar b int\n", nil},
		"behind two lines of code":               {"var a int // " + half + "\nvar b int // " + half + "\n", nil},
		"a comment between stars":                {"/*\n" + half + "\n" + half + "\n*/\n", []int{4}},
		"an abbreviation does not end it":        {"// " + half + ", e.g. " + half + "\n", []int{3}},
		"three dots do not end it":               {"// " + half + " ... " + half + "\n", []int{3}},
		"signs are no words":                     {"// " + words(maxWords-1) + " - = + — end.\n", nil},
		"code between backticks is one word":     {"// " + words(maxWords-1) + " `a b c d`.\n", nil},
		"many words between backticks are words": {"// Say `" + long + "`.\n", []int{3}},
		"a directive":                            {"//nolint:all " + long + "\nvar a int\n", nil},
		"a marker":                               {"// +kubebuilder:validation:XValidation:rule=\"" + long + "\"\nvar a int\n", nil},
		"the output of an example":               {"func Example() {\n\t// Output:\n\t// " + long + "\n}\n", nil},
		"a retired word":                         {"// First line.\n// It waits at the door.\n", []int{4}},
		"a retired phrase over two lines":        {"// The scheduler lets\n// jobs in.\n", []int{3}},
		"a retired word in a body":               {"func a() {\n\tb() // nobody\n}\n", []int{4}},
		"a retired word in code":                 {"var nobody = \"law\"\n", nil},
		"a retired word that is a key":           {"// The key `law` holds one, as package laws says, see test/laws.\n", nil},
		"two retired words between backticks":    {"// See `the laws`.\n", []int{3}},
	} {
		t.Run(name, func(t *testing.T) {
			files := token.NewFileSet()
			source := []byte("package p\n\n" + c.source)
			file, err := parser.ParseFile(files, "p.go", source, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			var lines []int
			found := findingsInComments(files, file, source)
			for _, f := range found {
				lines = append(lines, f.line)
			}
			if !slices.Equal(lines, c.lines) {
				t.Errorf("found in lines %v, and should be in %v: %v", lines, c.lines, found)
			}
		})
	}
}
