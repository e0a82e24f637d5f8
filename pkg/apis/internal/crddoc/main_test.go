package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const written = `---
spec:
  description: What is wanted.
  properties:
    capability:
      additionalProperties:
        anyOf:
          - type: integer
          - type: string
        pattern: ^[0-9]+$
        x-kubernetes-int-or-string: true
      description: The ceiling.
    port:
      description: A number or a name.
      x-kubernetes-int-or-string: true
    template:
      description: The pod to make.
      properties:
        description:
          description: A property of this name stays.
          type: string
        limits:
          items:
            description: Gone.
            pattern: ^[0-9]+$
            x-kubernetes-int-or-string: true
`

const rewritten = `---
spec:
  description: What is wanted.
  properties:
    capability:
      additionalProperties:
        anyOf:
          - type: integer
          - type: string
        pattern: ^[0-9]+$
        x-kubernetes-int-or-string: true
      description: The ceiling.
    port:
      description: A number or a name.
      x-kubernetes-int-or-string: true
    template:
      description: The pod to make.
      properties:
        description:
          type: string
        limits:
          items:
            pattern: ^[0-9]+$
            x-kubernetes-int-or-string: true
`

func TestDocumentationOfEmbeddedTypesIsDroppedAndOurOwnKept(t *testing.T) {
	once, err := rewrite([]byte(written), []string{"template"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rewritten, string(once)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	twice, err := rewrite(once, []string{"template"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rewritten, string(twice)); diff != "" {
		t.Errorf("rewriting twice (-want +got):\n%s", diff)
	}
}

func TestEveryFileOfTheDirectoryIsRewrittenInPlace(t *testing.T) {
	directory := t.TempDir()
	for _, name := range []string{"a.yaml", "b.yaml"} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(written), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := rewriteAll(directory, []string{"template"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.yaml", "b.yaml"} {
		content, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rewritten, string(content)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestADirectoryWithoutDefinitionsIsAnError(t *testing.T) {
	if err := rewriteAll(t.TempDir(), nil); err == nil {
		t.Error("an empty directory was accepted; the generator before it must have failed")
	}
}
