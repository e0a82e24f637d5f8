package why

import (
	"os"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/explain"
)

func TestEveryReasonIsOnItsPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/why/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range append([]string{explain.Running, explain.Finished, explain.ForeignScheduler, explain.NotTriedYet, explain.WorkloadsOff}, explain.Refinements...) {
		if !strings.Contains(string(text), "| `"+reason+"` |") {
			t.Errorf("docs/why/reasons.md does not explain %s", reason)
		}
	}
}
