package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
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
	once, err := rewrite([]byte(written), options{embedded: []string{"template"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rewritten, string(once)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	twice, err := rewrite(once, options{embedded: []string{"template"}})
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
	if err := rewriteAll(directory, options{embedded: []string{"template"}}); err != nil {
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
	if err := rewriteAll(t.TempDir(), options{}); err == nil {
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
		got, err := rewrite([]byte(definition), options{forms: []string{forms}})
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
	got, err := rewrite([]byte(definition), options{forms: []string{"Whole.part", "Another.rest"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Replace(definition, "            "+rule, "", 1), string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnOlderVersionIsServedWithTheSameSchema(t *testing.T) {
	const definition = `
spec:
  group: example.com
  versions:
  - name: v2
    schema:
      openAPIV3Schema:
        properties: {spec: {type: string}}
    served: true
    storage: true
`
	how := options{older: []string{"another.com/v0", "example.com/v1"}}
	once, err := rewrite([]byte(definition), how)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := rewrite(once, how)
	if err != nil || string(twice) != string(once) {
		t.Errorf("rewriting twice changes it (%v):\n%s", err, twice)
	}
	var got struct {
		Spec struct {
			Versions []struct {
				Name            string
				Schema          map[string]any
				Served, Storage bool
			}
		}
	}
	if err := yaml.Unmarshal(once, &got); err != nil {
		t.Fatal(err)
	}
	versions := got.Spec.Versions
	if len(versions) != 2 || versions[0].Name != "v2" || versions[1].Name != "v1" {
		t.Fatalf("the versions are not v2 and v1:\n%s", once)
	}
	if !versions[0].Storage || versions[1].Storage || !versions[1].Served {
		t.Errorf("v2 is not the one that is stored, or v1 is not served:\n%s", once)
	}
	if diff := cmp.Diff(versions[0].Schema, versions[1].Schema); diff != "" {
		t.Errorf("the schemas differ:\n%s", diff)
	}
}
