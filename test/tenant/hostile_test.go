package tenant

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/test/apitest"
)

// TestNoQuestionStopsTheScheduler lets a user who may only view one namespace submit what would take the scheduler
// hours or gigabytes. Between the attacks it answers others.
func TestNoQuestionStopsTheScheduler(t *testing.T) {
	port, err := localcluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	schedule(t, "--web-address="+address)
	tenantOf(t, "hostile")
	tenantOf(t, "peaceful")
	waitingGroup(t, "peaceful", "waits")
	hostile, peaceful := accountOf(t, address, "hostile", "viewer", "view"), accountOf(t, address, "peaceful", "viewer", "view")
	answered := func() {
		t.Helper()
		apitest.Eventually(t, func(ctx context.Context) error {
			code, text, err := peaceful.ask(ctx, http.MethodGet, api.Jobs.Path("peaceful", "waits"), "")
			if err == nil && code != http.StatusOK {
				err = fmt.Errorf("%d %s", code, text)
			}
			return err
		})
	}
	answered()
	const group = `{"podGroup":{"metadata":{"namespace":"hostile","name":"a"},"spec":{"minMember":1,"queue":"default"}},"pods":[`
	term := `{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"a":"%d-%d"}}},`
	var affine strings.Builder
	for pod := range 1000 {
		fmt.Fprintf(&affine, `{"metadata":{"namespace":"hostile","name":"p%d"},"spec":{"schedulerName":"volcano","containers":[{"name":"a"}],"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[`, pod)
		for i := range 60 {
			fmt.Fprintf(&affine, term, pod, i)
		}
		affine.WriteString(`{"topologyKey":"zone"}]}}}},`)
	}
	for name, body := range map[string]string{
		"a quantity":        group + `{"spec":{"containers":[{"resources":{"requests":{"cpu":"1e-2000000000"}}}]}}]}`,
		"empty pods":        group + strings.Repeat("{},", 700_000) + "{}]}",
		"pods of 60 terms":  group + strings.TrimSuffix(affine.String(), ",") + "]}",
		"a body too large":  strings.Repeat(" ", 10<<20),
		"nothing but depth": strings.Repeat("[", 1<<20),
	} {
		begin := time.Now()
		code, text, err := hostile.ask(apitest.Context(t), http.MethodPost, api.Submissions.Path("hostile", ""), body)
		if err == nil && code != http.StatusBadRequest && code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d %.300s", name, code, text)
		}
		t.Logf("%s: %d in %v: %.200s (%v)", name, code, time.Since(begin), text, err)
		answered()
	}
}
