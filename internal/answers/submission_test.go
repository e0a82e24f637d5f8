package answers

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/pkg/scheduler"
)

// submit asks a server whose loop does not run.
func submit(t *testing.T, body string) (code int, message string) {
	t.Helper()
	s := New(scheduler.New(scheduler.Options{}).Questions(), nil, logr.Discard())
	q := &question{ctx: t.Context(), request: httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)), who: &user.DefaultInfo{Name: "u"}, namespace: "n"}
	_, err := s.submission(q)
	status, is := s.statusOf(err, api.Submissions, q).(apierrors.APIStatus)
	if !is {
		t.Fatalf("%v", err)
	}
	return int(status.Status().Code), status.Status().Message
}

func TestASubmissionThatCostsTooMuchIsNotDecoded(t *testing.T) {
	const group = `"podGroup":{"metadata":{"namespace":"n","name":"a"}}`
	pod := func(resources string) string {
		return `{` + group + `,"pods":[{"metadata":{"namespace":"n","name":"p"},"spec":{"containers":[{"resources":` + resources + `}]}}]}`
	}
	for name, test := range map[string]struct {
		body string
		code int
		want string
	}{
		"a quantity of a pod":      {pod(`{"requests":{"cpu":"1e-2000000000"}}`), http.StatusBadRequest, "pods[0].spec.containers[0].resources.requests.cpu: Invalid value"},
		"a quantity as a number":   {pod(`{"limits":{"cpu":1e-2000000000}}`), http.StatusBadRequest, "limits.cpu: Invalid value"},
		"a quantity of the group":  {`{"podGroup":{"spec":{"minResources":{"cpu":"1e-2000000000"}}}}`, http.StatusBadRequest, "minResources.cpu: Invalid value"},
		"a quantity in a shortcut": {`{` + group + `,"PODS":[{"spec":{"overhead":{"cpu":"1e-2000000000"}}}]}`, http.StatusBadRequest, "overhead.cpu: Invalid value"},
		"one that is well":         {pod(`{"requests":{"cpu":"1"}}`), http.StatusServiceUnavailable, ""},
	} {
		begin := time.Now()
		code, message := submit(t, test.body)
		if code != test.code || !strings.Contains(message, test.want) {
			t.Errorf("%s: %d %s", name, code, message)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
	}
}

func TestAGangWhoseQuantityCostsTooMuchIsNotParsed(t *testing.T) {
	if g, err := api.ParseGang("1xcpu=1e-2000000000"); err == nil || !strings.Contains(err.Error(), "is no quantity") {
		t.Errorf("%v, %v", g, err)
	}
}

func TestASubmissionOfManyEmptyPodsIsRefused(t *testing.T) {
	code, message := submit(t, `{"podGroup":{"metadata":{"namespace":"n","name":"a"}},"pods":[`+strings.Repeat("{},", 700_000)+`{}]}`)
	if code != http.StatusBadRequest || !strings.Contains(message, "more than 64 MiB") {
		t.Errorf("%d %.200s", code, message)
	}
	if code, message := submit(t, strings.Repeat(" ", MaxBody+1)); code != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %.200s", code, message)
	}
}
