package imports

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is how many columns a line of a comment may have. A tab has four.
const maxColumns = 120

// prose matches a line of a comment that is prose or part of a list. Code, tables and what tools read are as wide as
// they have to be.
var prose = regexp.MustCompile(`^// (?: {0,3}(?:[-*]|\d+\.) +| {0,6})[^ \t+]`)

// checkWidth says which lines of comments are too wide. Comments behind code do not count.
func checkWidth(s *source) []string {
	var wrong []string
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			at := s.set.Position(c.Pos())
			columns := utf8.RuneCountInString(c.Text) + 4*(at.Column-1)
			isTable := strings.Contains(strings.TrimLeft(strings.TrimPrefix(c.Text, "//"), " "), "   ")
			if columns > maxColumns && prose.MatchString(c.Text) && !isTable && !s.isBehindCode(c) {
				wrong = append(wrong, fmt.Sprintf("%s: the comment is %d columns wide, and %d are the most", s.at(c), columns, maxColumns))
			}
		}
	}
	return wrong
}

// isBehindCode reports whether a comment stands on a line on which code begins or ends.
func (s *source) isBehindCode(c *ast.Comment) bool {
	line := s.set.Position(c.Pos()).Line
	behind := false
	ast.Inspect(s.file, func(n ast.Node) bool {
		if n == nil || behind {
			return false
		}
		if _, isComment := n.(*ast.CommentGroup); isComment {
			return false
		}
		from, to := s.set.Position(n.Pos()).Line, s.set.Position(n.End()).Line
		behind = n.Pos() < c.Pos() && (from == line || to == line && n.End() <= c.Pos())
		return !behind && from <= line && line <= to
	})
	return behind
}

func TestCommentsHaveOneWidth(t *testing.T) {
	for _, s := range parse(t, func(file string) bool {
		return !strings.Contains(file, "/pkg/client/") && !strings.Contains(file, "zz_generated")
	}) {
		for _, wrong := range checkWidth(s) {
			t.Error(wrong)
		}
	}
}

func TestTooWideCommentsAreFound(t *testing.T) {
	wide := strings.TrimSpace(strings.Repeat("words ", 20))
	for text, want := range map[string]int{
		"// " + wide:                                    1,
		"// " + wide[:110]:                              0,
		"//   - " + wide:                                1,
		"//  1. " + wide:                                1,
		"//\tx := " + wide:                              0,
		"// +kubebuilder:validation:" + wide:            0,
		"//go:generate " + wide:                         0,
		"var a int // " + wide:                          0,
		"func f() {\n\tg()\n\t// " + wide[:115] + "\n}": 1,
		"// name    " + wide:                            0,
	} {
		if got := checkWidth(snippet(t, "pkg/x", "package x\n\n"+text+"\n")); len(got) != want {
			t.Errorf("%s: got %v, want %d", text, got, want)
		}
	}
}
