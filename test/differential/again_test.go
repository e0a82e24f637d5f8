package differential

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A scenario does not change when it is led: otherwise shrink would search in another than the one that fails.
func TestAScenarioCanBeLedAgain(t *testing.T) {
	for seed := range uint64(100) {
		w := makeScenario(1300 + seed)
		first := lead(w).story
		smaller := *w
		smaller.objects = slices.DeleteFunc(slices.Clone(w.objects), func(o runtime.Object) bool { _, isNode := o.(*corev1.Node); return isNode })
		lead(&smaller)
		if again := lead(w).story; !slices.Equal(first, again) {
			t.Fatalf("seed %d: first\n%s\nand again\n%s", 1300+seed, strings.Join(first, "\n"), strings.Join(again, "\n"))
		}
	}
}
