package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/test/apitest"
)

// discovery serves as much of an API server as a manager asks before it starts: that there are pods. The rest is for
// others.
func discovery(t *testing.T, others http.HandlerFunc) (address string) {
	answers := map[string]any{
		"/api":  metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}},
		"/api/v1": metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Namespaced: true}}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, request *http.Request) {
		answer, is := answers[request.URL.Path]
		if !is {
			others(reply, request)
			return
		}
		reply.Header().Set("Content-Type", "application/json")
		text, _ := json.Marshal(answer)
		_, _ = reply.Write(text)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server.URL
}

func TestControllersOfOthersAreSetUpInOrder(t *testing.T) {
	known := []schema.GroupVersionKind{}
	refused := errors.New("the second does not fit")
	command := NewCommand(
		func(mgr manager.Manager) (err error) {
			known, _, err = mgr.GetScheme().ObjectKinds(&batch.Job{})
			return err
		},
		func(manager.Manager) error { return refused },
		func(manager.Manager) error {
			t.Error("a third is set up after the second has failed")
			return nil
		},
	)
	address := discovery(t, func(reply http.ResponseWriter, request *http.Request) {
		t.Errorf("asked for %s before the start", request.URL.Path)
		http.NotFound(reply, request)
	})
	command.SetArgs([]string{"--master=" + address, "--leader-elect=false"})
	if err := command.ExecuteContext(t.Context()); !errors.Is(err, refused) {
		t.Errorf("the command ends with %v, want %v", err, refused)
	}
	if len(known) != 1 || known[0] != batch.GroupVersion.WithKind("Job") {
		t.Errorf("the scheme of the manager knows a Job as %v", known)
	}
}

func TestAStopIsFollowedBeforeTheCachesAreFull(t *testing.T) {
	asked := make(chan struct{}, 100)
	address := discovery(t, func(_ http.ResponseWriter, request *http.Request) {
		asked <- struct{}{}
		<-request.Context().Done() // the list does not come
	})
	o := newOptions()
	o.election.LeaderElect = false
	mgr, err := newManager(&rest.Config{Host: address}, o, false, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	if _, err := mgr.GetCache().GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- keep(ctx, mgr) }()
	<-asked
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it still runs")
	}
}

func TestProfilesAreServedOnlyWhenAskedFor(t *testing.T) {
	for want, arguments := range map[int][]string{http.StatusNotFound: nil, http.StatusOK: {"--enable-pprof"}} {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := listener.Addr().String()
		_ = listener.Close()
		o := parse(t, append(arguments, "--enable-metrics", "--listen-address="+address, "--leader-elect=false")...)
		if err := o.validate(); err != nil {
			t.Fatal(err)
		}
		mgr, err := newManager(&rest.Config{Host: discovery(t, http.NotFound)}, o, false, logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		for path, want := range map[string]int{"/metrics": http.StatusOK, "/debug/pprof/cmdline": want} {
			apitest.Eventually(t, func(ctx context.Context) error {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
				if err != nil {
					return err
				}
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					return err
				}
				if response.StatusCode != want {
					err = fmt.Errorf("%s with %v: %d, want %d", path, arguments, response.StatusCode, want)
				}
				return errors.Join(err, response.Body.Close())
			})
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
