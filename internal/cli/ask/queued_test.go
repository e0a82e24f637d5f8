package ask

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestFieldsThatDoNotExistAreErrors(t *testing.T) {
	for _, kind := range slices.Concat(submittedKinds, changedKinds) {
		o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{}}}
		o.SetGroupVersionKind(kind)
		if read, err := typed(o); err != nil || read.GetName() != "a" {
			t.Errorf("%s: got %v, %v", kind, read, err)
		}
		o.Object["spec"] = map[string]any{"wieght": int64(3)}
		if _, err := typed(o); err == nil || !strings.Contains(err.Error(), kind.Kind+" a: ") || !strings.Contains(err.Error(), `unknown field "spec.wieght"`) {
			t.Errorf("%s with a field that does not exist: %v", kind, err)
		}
	}
}
