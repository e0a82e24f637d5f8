package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// ruleText is where a page has the text of a rule: a row of a table or an item of a list that begins with its
	// number.
	ruleText = regexp.MustCompile(`(?m)^(?:\| |- \*\*)([ACGJKPQST]\d{1,2})(?: \| .{20}|\*\* .{20})`)
	// ruleNames are numbers after the word rule, several of them with commas and the like between.
	ruleNames = regexp.MustCompile(`\b[Rr]ules? ((?:[A-Z]\d{1,2})(?:(?:, | and | or | to |–)[A-Z]\d{1,2})*)`)
	// ruleNote is a number in brackets, as comments and pages have it, and ruleWord one in a literal of its own, as
	// decisions have it.
	ruleNote = regexp.MustCompile(`\(((?:[ACGJKPQST]\d{1,2})(?:(?:, | and | or | to |–)[ACGJKPQST]\d{1,2})*)\)`)
	ruleWord = regexp.MustCompile(`return "([ACGJKPQST]\d{1,2})"|\{"([ACGJKPQST]\d{1,2})",`)
	number   = regexp.MustCompile(`[A-Z]\d{1,2}`)
)

// rulesWithText are the numbers of the rules whose text a page has.
func rulesWithText(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, path := range pages(t) {
		for _, found := range ruleText.FindAllStringSubmatch(page(t, path), -1) {
			all[found[1]] = true
		}
	}
	return all
}

// namedRules are the numbers that a text names as rules.
func namedRules(text string) (all []string) {
	for _, pattern := range []*regexp.Regexp{ruleNames, ruleNote, ruleWord} {
		for _, found := range pattern.FindAllStringSubmatch(text, -1) {
			all = append(all, number.FindAllString(strings.Join(found[1:], " "), -1)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestEveryRuleThatIsNamedHasItsText(t *testing.T) {
	has, places := rulesWithText(t), 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules" || entry.Name() == "bin" || entry.Name() == "dist") {
			return fs.SkipDir
		}
		if entry.IsDir() || strings.HasSuffix(path, "_test.go") || !slices.Contains([]string{".go", ".md", ".tsx", ".ts", ".txt", ".yaml"}, filepath.Ext(path)) {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, name := range namedRules(string(content)) {
			if places++; !has[name] {
				t.Errorf("%s names rule %s, which no page has: write its text in docs/rules.md", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if places < 100 {
		t.Errorf("only %d places name rules", places)
	}
}

func TestTheRulesOfAFamilyHaveNoGaps(t *testing.T) {
	has := rulesWithText(t)
	for family, last := range map[string]int{"A": 3, "C": 24, "G": 15, "J": 4, "K": 7, "P": 6, "Q": 8, "S": 6, "T": 2} {
		for i := 1; i <= last; i++ {
			if name := family + string(rune('0'+i)); i < 10 && !has[name] {
				t.Errorf("rule %s has no text", name)
			} else if name = family + string(rune('0'+i/10)) + string(rune('0'+i%10)); i >= 10 && !has[name] {
				t.Errorf("rule %s has no text", name)
			}
		}
	}
}

func TestNumbersOfRulesAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"see rules Q1, Q2 and Q4 (J2)":    "J2 Q1 Q2 Q4",
		`return "G10", fmt.Sprint()`:      "G10",
		`{"P2", "not marked"}`:            "P2",
		"rules C1–C24":                    "C1 C24",
		"an instance C5 (N2), H100 (A4B)": "",
	} {
		if got := strings.Join(namedRules(text), " "); got != want {
			t.Errorf("%q names %q, want %q", text, got, want)
		}
	}
}
