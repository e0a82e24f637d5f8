package docs

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// retiredWords are words that the project does not use, and what to write instead. They are looked for on pages, in
// examples and manifests, and in Go but for its tests: in comments, messages and the parts of names.
var retiredWords = map[string]string{
	"door":        `"admission"; before it a job is "pending admission"`,
	"taker":       `"preemptor", or "the job that preempts"`,
	"giver":       `"the job (or queue) of the victim"`,
	"law":         `"rule", with its number: "rule J1"`,
	"lawful":      `"allowed"`,
	"unlawful":    `"what a rule forbids"`,
	"nobody":      `the subject: "no pod", "no user"`,
	"somebody":    `the subject: "a user", "a client"`,
	"someone":     `the subject: "a user", "a client"`,
	"anybody":     `the subject: "any user", "any client"`,
	"anyone":      `the subject: "any user", "any client"`,
	"everybody":   `the subject: "all pods", "all users"`,
	"everyone":    `the subject: "all pods", "all users"`,
	"whoever":     `the subject: "the user who"`,
	"whomever":    `the subject: "the job that"`,
	"herd":        `"victims"`,
	"likeness":    `"class"`,
	"hopeless":    `what is missing, and what would help`,
	"knock":       `"try", "attempt"`,
	"heir":        `"replacement"`,
	"errand":      `"request", "retry", "PlanExecution"`,
	"undertaking": `"request", "retry", "PlanExecution"`,
	"clerk":       `what it is: "writer", "watch", "recorder"`,
	"witness":     `what it is: "writer", "watch", "recorder"`,
	"anew":        `"again"`,
	"beside":      `"next to", "in addition to", "apart from", "together with"`,
	"buried":      `"deleted"`,
	"stranger":    `"foreign", "of another scheduler", "of another user"`,
	"regrown":     `"changed", "built again"`,
	"replant":     `"build again"`,
	"hopeful":     `what is tried again, and when`,
	"obey":        `"follow"`,
	"grave":       `what it is`,
	"bury":        `"delete"`,
	"veil":        `"hide", "redact"`,
	"census":      `"count"`,
	"greet":       `what is done`,
	"meddle":      `"write", "change"`,
}

// mayUse are the files that may use a retired word, and why. The test refuses an entry without use.
var mayUse = map[string]struct{ word, why string }{
	"internal/metrics/metrics.go": {"law", "a deprecated metric"},
	"docs/metrics.md":             {"law", "a deprecated metric"},
}

// part matches a word of a text, or a part of a name such as taker in TakersFirst.
var part = regexp.MustCompile(`[A-Z]?[a-z]+`)

// retiredIn yields the retired words of a text with their lines.
func retiredIn(text string) (found []string) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		for _, word := range part.FindAllString(line, -1) {
			if word = strings.ToLower(word); word == "besides" {
				continue // a word of its own, not the plural of beside
			}
			for _, of := range []string{word, strings.TrimSuffix(word, "s")} {
				if instead, is := retiredWords[of]; is {
					found = append(found, fmt.Sprintf("%d: %q is retired: write %s", number, of, instead))
					break
				}
			}
		}
	}
	return found
}

func TestNoRetiredWordIsUsed(t *testing.T) {
	files := pages(t)
	files = append(files, filesBelow(t, "../example", ".yaml")...)
	files = append(files, filesBelow(t, "../installer", ".yaml", ".tpl")...)
	files = append(files, filesBelow(t, "..", ".go")...)
	isUsed := map[string]bool{}
	for _, path := range files {
		name := filepath.ToSlash(filepath.Clean(filepath.Join("docs", path)))
		if strings.HasSuffix(name, "_test.go") {
			continue // names of objects and of tests
		}
		for _, f := range retiredIn(page(t, path)) {
			if word := mayUse[name].word; word != "" && strings.Contains(f, fmt.Sprintf("%q", word)) {
				isUsed[name] = true
				continue
			}
			t.Errorf("%s:%s", name, f)
		}
	}
	for name, of := range mayUse {
		if !isUsed[name] {
			t.Errorf("%s does not use %q any more: remove it from mayUse (%s)", name, of.word, of.why)
		}
	}
}

func TestRetiredWordsAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"The scheduler admits the job.":                   0,
		"The job waits\nat the door.":                     1,
		"func nextTaker(doors int)":                       2,
		"Everybody; a taker":                              2,
		"An outdoor flag, lawn, heirloom and a caretaker": 0,
		"Besides, it stands beside another":               1,
	} {
		if got := retiredIn(text); len(got) != want {
			t.Errorf("%q: %v, and there should be %d", text, got, want)
		}
	}
	if got := retiredIn("The job waits\nat the door."); len(got) != 1 || !strings.HasPrefix(got[0], `2: "door"`) {
		t.Errorf("found %v, want the second line", got)
	}
}

// filesBelow returns the files below a folder with one of the endings, without generated clients, hidden folders and
// what npm has installed.
func filesBelow(t *testing.T, folder string, endings ...string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "node_modules" || path == "../pkg/client" || strings.HasPrefix(name, ".") && path != folder):
			return fs.SkipDir
		case !entry.IsDir() && slices.Contains(endings, filepath.Ext(path)):
			found = append(found, path)
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%s has no such files: %v", folder, err)
	}
	return found
}
