package why

import (
	"os"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/controllers/job/lifecycle"
	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/pkg/verdict"
)

func TestEveryReasonIsOnItsPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/why/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := []string{explain.Running, explain.Finished, explain.ForeignScheduler, explain.NotTriedYet, explain.WorkloadsOff, "PodGroupNotFound", lifecycle.ReasonWaitsForWorkload, string(verdict.FailedCreate)}
	for _, reason := range verdict.Refinements {
		reasons = append(reasons, string(reason))
	}
	for _, reason := range reasons {
		if !strings.Contains(string(text), "| `"+reason+"` |") {
			t.Errorf("docs/why/reasons.md does not explain %s", reason)
		}
	}
}
