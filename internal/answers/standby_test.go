package answers

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/pkg/scheduler"
)

func TestAStandbyNamesWhoLeads(t *testing.T) {
	leader := ""
	s := New(scheduler.New(scheduler.Options{}).Questions(), nil, logr.Discard())
	s.LedBy(func() string { return leader })
	said := func() string {
		_, err := s.questions.Node(t.Context(), "n")
		status, is := s.statusOf(err, api.Nodes, &question{}).(apierrors.APIStatus)
		if !is || status.Status().Code != http.StatusServiceUnavailable {
			t.Fatalf("%v", err)
		}
		return status.Status().Message
	}
	if text := said(); !strings.Contains(text, "it does not lead") {
		t.Errorf("no leader is known: %s", text)
	}
	leader = "scheduler-2"
	if text := said(); !strings.Contains(text, "on standby") || !strings.Contains(text, "scheduler-2 leads") || !strings.Contains(text, "kubectl get apiservice") {
		t.Errorf("another leads: %s", text)
	}
}
