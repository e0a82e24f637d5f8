package main

import (
	"os"
	"path/filepath"
	"strings"
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
        maxLength: 64
        pattern: ^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$
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
            maxLength: 64
            pattern: ^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$
            x-kubernetes-int-or-string: true
`

func TestDocumentationOfEmbeddedTypesIsDroppedAndOurOwnKept(t *testing.T) {
	once, err := rewrite([]byte(written), []string{"template"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rewritten, string(once)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	twice, err := rewrite(once, []string{"template"}, nil)
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
	if err := rewriteAll(directory, []string{"template"}, nil); err != nil {
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
	if err := rewriteAll(t.TempDir(), nil, nil); err == nil {
		t.Error("an empty directory was accepted; the generator before it must have failed")
	}
}

func TestAFormLosesTheRulesAboutChange(t *testing.T) {
	const definition = `---
spec:
  names:
    kind: Form
  versions:
    - schema:
        properties:
          frozen:
            type: string
            x-kubernetes-validations:
              - message: cannot be changed
                rule: self == oldSelf
          list:
            type: array
            x-kubernetes-validations:
              - message: at most ten
                rule: self.size() <= 10
              - message: cannot grow
                rule: self.size() <= oldSelf.size()
              - message: one of both
                optionalOldSelf: true
                rule: oldSelf.hasValue() || has(self.a) != has(self.b)
`
	const form = `---
spec:
  names:
    kind: Form
  versions:
    - schema:
        properties:
          frozen:
            type: string
          list:
            type: array
            x-kubernetes-validations:
              - message: at most ten
                rule: self.size() <= 10
              - message: one of both
                rule: has(self.a) != has(self.b)
`
	for forms, want := range map[string]string{"Form": form, "Another": definition} {
		got, err := rewrite([]byte(definition), nil, []string{forms})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("forms are %s (-want +got):\n%s", forms, diff)
		}
	}
}

func TestAPartThatIsAFormLosesTheRulesAboutChange(t *testing.T) {
	const rule = `x-kubernetes-validations:
              - message: cannot be changed
                rule: self == oldSelf
`
	const definition = `---
spec:
  names:
    kind: Whole
  versions:
    - schema:
        properties:
          part:
            type: string
            ` + rule + `          rest:
            type: string
            ` + rule
	got, err := rewrite([]byte(definition), nil, []string{"Whole.part", "Another.rest"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Replace(definition, "            "+rule, "", 1), string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
