package simulation

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAJobFlowWhoseTemplateIsGoneNeedNotEnd(t *testing.T) {
	for _, c := range []struct {
		name       string
		templates  []string
		violations int
	}{
		{"all are there", []string{"one", "two"}, 1},
		{"one is gone", []string{"one"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &driver{plan: &Plan{}, steps: newHash(), observer: &observer{objects: map[string]*object{}, sorted: map[string][]string{}}}
			add := func(collection, name string, fields map[string]any) {
				o := &object{collection: collection, Unstructured: unstructured.Unstructured{Object: fields}}
				o.SetNamespace("a")
				o.SetName(name)
				d.observer.objects[o.id()] = o
			}
			add(jobFlows, "flow", map[string]any{"spec": map[string]any{"flows": []any{map[string]any{"name": "one"}, map[string]any{"name": "two"}}},
				"status": map[string]any{"state": map[string]any{"phase": "Running"}}})
			for _, name := range c.templates {
				add(jobTemplates, name, map[string]any{})
			}
			(&rules{driver: d}).flowsAtRest()
			if got := d.result.Violations; len(got) != c.violations {
				t.Errorf("violations are %q, want %d", got, c.violations)
			}
		})
	}
}
