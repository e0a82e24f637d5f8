package mutants

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the table in docs/promises.md")

// finding is what came of the last search for a mutant.
type finding struct {
	Name string `json:"name"`
	// Of is the digest of the mutant as it was then.
	Of string `json:"of"`
	// By is the machine that has found it, "" if none has. Until then it did so many units.
	By    string `json:"by,omitempty"`
	After int    `json:"after,omitempty"`
	Unit  string `json:"unit,omitempty"`
	// Seconds are those of all rounds of all machines, those before it included.
	Seconds int    `json:"seconds"`
	Says    string `json:"says,omitempty"`
	// Tried is how much was done by machines that have not found it.
	Tried []string `json:"tried,omitempty"`
}

const findingsFile = "findings.yaml"

// readFindings reads the findings by the names of their mutants.
func readFindings(t *testing.T) map[string]finding {
	t.Helper()
	text, err := os.ReadFile(findingsFile)
	if err != nil {
		t.Fatal(err)
	}
	var all []finding
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		t.Fatal(err)
	}
	byName := map[string]finding{}
	for _, f := range all {
		byName[f.Name] = f
	}
	return byName
}

// writeFindings writes the findings in the order of the mutants.
func writeFindings(t *testing.T, mutants []mutant, byName map[string]finding) {
	t.Helper()
	text := bytes.NewBufferString("# Written by make mutants.\n")
	var all []finding
	for _, m := range mutants {
		if f, is := byName[m.Name]; is {
			f.Name = m.Name
			all = append(all, f)
		}
	}
	content, err := yaml.Marshal(all)
	if err == nil {
		text.Write(content)
		err = os.WriteFile(findingsFile, text.Bytes(), 0o644) //nolint:gosec // data of the project
	}
	if err != nil {
		t.Error(err)
	}
}

func TestEachFindingIsOfAMutantAsItIs(t *testing.T) {
	findings := readFindings(t)
	for _, m := range readMutants(t) {
		f, is := findings[m.Name]
		if !is || f.Of != m.digest() {
			t.Errorf("%s was not looked for as it is now: make mutants MUTANTS=%s", m.Name, m.Name)
		}
		delete(findings, m.Name)
	}
	for name := range findings {
		t.Errorf("there is no mutant %s any more: make mutants", name)
	}
}

// head begins the table of the page, and tableText is all of it.
const head = "| Defect | In | Found by | After | It says |\n|---|---|---|---|---|\n"

var tableText = regexp.MustCompile(regexp.QuoteMeta(head) + `(?:\|.*\n)*`)

// table is the table of the page.
func table(mutants []mutant, findings map[string]finding) string {
	var b strings.Builder
	b.WriteString(head)
	for _, m := range mutants {
		f := findings[m.Name]
		by, after := f.By, fmt.Sprintf("%s %s", grouped(f.After), f.Unit)
		if by == "" {
			by, after = "not found", strings.Join(f.Tried, ", ")
		}
		says := strings.ReplaceAll(f.Says, "|", "\\|")
		if text, byAudit := strings.CutPrefix(says, "audit: "); byAudit && by == "simulation" {
			by, says = by+", by `hekla audit`", text
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s |\n", m.Defect, filepath.Base(filepath.Dir(m.File))+"/"+filepath.Base(m.File), by, after, says)
	}
	return b.String()
}

// grouped writes a number with commas.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

func TestThePageShowsTheFindings(t *testing.T) {
	path := filepath.Join(root, "docs", "promises.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := table(readMutants(t), readFindings(t))
	shown := tableText.Find(text)
	if shown == nil {
		t.Fatalf("the page has no table that begins\n%s", head)
	}
	if string(shown) == want {
		return
	}
	if !*rewrite {
		t.Fatal("the table of the page is not that of the findings: go test ./test/mutants -run TestThePageShows -rewrite")
	}
	if err := os.WriteFile(path, bytes.Replace(text, shown, []byte(want), 1), 0o644); err != nil { //nolint:gosec // a page
		t.Fatal(err)
	}
}
