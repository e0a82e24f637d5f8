package docs

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "rewrite what is quoted on pages")

// quote is a block of code on a page, with the comment above it that says which declarations of which file it shows.
var quote = regexp.MustCompile("(?s)<!-- quote ([^\\s]+) ([^>]+) -->\n```go\n(.*?)```\n")

// declarations returns declarations of a file with their comments, in the order of their names: functions and types by
// their name, methods as type.method, constants and variables by any name of their group.
func declarations(t *testing.T, path string, names []string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", path))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, content, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, declaration := range file.Decls {
		start, documentation := declaration.Pos(), (*ast.CommentGroup)(nil)
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			documentation = d.Doc
		case *ast.GenDecl:
			documentation = d.Doc
		}
		if documentation != nil {
			start = documentation.Pos()
		}
		text := string(content[set.Position(start).Offset:set.Position(declaration.End()).Offset])
		for _, name := range namesOf(declaration) {
			found[name] = text
		}
	}
	var texts []string
	for _, name := range names {
		if found[name] == "" {
			t.Fatalf("%s declares no %s", path, name)
		}
		texts = append(texts, found[name])
	}
	return strings.Join(texts, "\n\n") + "\n"
}

func namesOf(declaration ast.Decl) []string {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		receiver := d.Recv.List[0].Type
		if pointer, is := receiver.(*ast.StarExpr); is {
			receiver = pointer.X
		}
		if of, is := receiver.(*ast.Ident); is {
			return []string{of.Name + "." + d.Name.Name}
		}
	case *ast.GenDecl:
		var names []string
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names = append(names, name.Name)
				}
			}
		}
		return names
	}
	return nil
}

// guides are the pages that lead through the sources.
func guides(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("adding-*.md")
	if err != nil || len(found) < 2 {
		t.Fatalf("%d pages: %v", len(found), err)
	}
	return found
}

func TestQuotesAreWhatTheSourcesSay(t *testing.T) {
	for _, path := range guides(t) {
		text := page(t, path)
		current := quote.ReplaceAllStringFunc(text, func(block string) string {
			match := quote.FindStringSubmatch(block)
			said := declarations(t, match[1], strings.Fields(match[2]))
			if said != match[3] && !*rewrite {
				t.Errorf("%s quotes %s of %s as it is not any more: go test ./docs -run TestQuotes -rewrite", path, match[2], match[1])
			}
			return "<!-- quote " + match[1] + " " + match[2] + " -->\n```go\n" + said + "```\n"
		})
		if *rewrite && current != text {
			if err := os.WriteFile(path, []byte(current), 0o644); err != nil { //nolint:gosec // a page
				t.Fatal(err)
			}
		}
	}
}

// What is neither quoted nor compiled goes out of date unnoticed.
func TestAllCodeOnGuidesIsQuotedOrCompiled(t *testing.T) {
	for _, path := range guides(t) {
		rest := quote.ReplaceAllString(page(t, path), "")
		for i, block := range regexp.MustCompile("(?s)```go\n(.*?)```\n").FindAllStringSubmatch(rest, -1) {
			if !strings.HasPrefix(block[1], "package main\n") {
				t.Errorf("%s: block %d without a quote is no program: put <!-- quote FILE NAME --> above it", path, i+1)
				continue
			}
			source := filepath.Join(t.TempDir(), "main.go")
			if err := os.WriteFile(source, []byte(block[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			if output, err := run(t, "go", "vet", source); err != nil {
				t.Errorf("%s: block %d: %v\n%s", path, i+1, err, output)
			}
		}
	}
}

func TestGuidesNameAtMostFivePlaces(t *testing.T) {
	item := regexp.MustCompile(`(?m)^\d+\. \[[^\]]+\]\([^)]+\)`)
	for _, path := range guides(t) {
		_, places, isThere := strings.Cut(page(t, path), "\n## The places to touch\n")
		places, _, _ = strings.Cut(places, "\n## ")
		if number := len(item.FindAllString(places, -1)); !isThere || number < 1 || number > 5 {
			t.Errorf("%s names %d places to touch, each a numbered line that begins with a link; there may be five", path, number)
		}
	}
}

func TestTheScenarioForContributorsIsOneOfOurs(t *testing.T) {
	const path = "../CONTRIBUTING.md"
	name := regexp.MustCompile("`(test/scenarios/[a-z-]+\\.txt)`").FindStringSubmatch(page(t, path))
	if name == nil {
		t.Fatalf("%s names no scenario", path)
	}
	content, err := os.ReadFile(filepath.Join("..", name[1]))
	if err != nil {
		t.Fatal(err)
	}
	if shown := blocks(t, path, "text")[0]; shown != string(content) {
		t.Errorf("%s shows %s as it is not any more:\n%s", path, name[1], shown)
	}
}
