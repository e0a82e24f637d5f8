package tenant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/test/apitest"
)

// startAgain kills the API server and starts it with the same arguments. It returns before it is ready.
func startAgain(t *testing.T) {
	t.Helper()
	processes := cluster.Processes()
	i := slices.IndexFunc(processes, func(p *localcluster.Process) bool { return p.Name == "kube-apiserver" })
	if i < 0 {
		t.Fatal("no API server runs")
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", processes[i].PID))
	if err != nil {
		t.Fatal(err)
	}
	words := bytes.Split(bytes.TrimRight(line, "\x00"), []byte{0})
	again := localcluster.Program{Name: processes[i].Name, Path: string(words[0])}
	for _, word := range words[1:] {
		again.Args = append(again.Args, string(word))
	}
	if err := processes[i].Kill(); err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(cluster.Server())
	if err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, func(ctx context.Context) error { // its sockets are closed a moment after it is gone
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address.Host)
		if err != nil {
			return err
		}
		return listener.Close()
	})
	server, err := cluster.Run(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if said, err := os.ReadFile(server.LogPath); t.Failed() {
			t.Logf("%v\n%s", err, said[max(len(said)-4000, 0):])
		}
	})
}

// A client does not try again what is forbidden (403). An API server that has just started does not know yet the kinds
// of definitions, which policies with parameters of such a kind must not make a refusal. Asked is who may do all,
// because it does not know rights either at first.
func TestNoJobIsForbiddenAfterTheAPIServerHasStarted(t *testing.T) {
	const namespace = "restart"
	tenantOf(t, namespace)
	objects := map[string]string{
		"a PodGroup": "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: 1, queue: default}",
		"a Job":      gang("j", "queue: default"),
	}
	try := func(ctx context.Context) (forbidden, other error) {
		for name, text := range objects {
			switch err := admin.Create(ctx, apitest.Object(t, namespace, text), client.DryRunAll); {
			case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
				forbidden = errors.Join(forbidden, fmt.Errorf("%s: %w", name, err))
			case err != nil:
				other = errors.Join(other, fmt.Errorf("%s: %w", name, err))
			}
		}
		return forbidden, other
	}
	if forbidden, other := try(apitest.Context(t)); forbidden != nil || other != nil {
		t.Fatalf("before: %v, %v", forbidden, other)
	}
	startAgain(t)
	const settled = 30 * time.Second // what the API server takes at most until it knows the kinds
	served, last := 0, error(nil)
	for begun := time.Now(); time.Since(begun) < settled; time.Sleep(100 * time.Millisecond) {
		forbidden, other := try(apitest.Context(t))
		if forbidden != nil {
			t.Fatalf("%s after the start: %v", time.Since(begun), forbidden)
		}
		if last = other; other == nil {
			served++
		}
	}
	if served == 0 || last != nil {
		t.Errorf("both were accepted %d times; in the end: %v", served, last)
	}
}
