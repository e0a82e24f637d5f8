package edge

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/edge/intake"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/apitest"
)

// counter is a connection that counts.
type counter func(*http.Request) (*http.Response, error)

func (c counter) RoundTrip(request *http.Request) (*http.Response, error) { return c(request) }

// TestWhatIsListedInPagesComesOnceAndIsFollowed creates more pods and nodes than fit on two pages.
func TestWhatIsListedInPagesComesOnceAndIsFollowed(t *testing.T) {
	clients, c := adminClients(t)
	var continued atomic.Int32
	config := c.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return counter(func(request *http.Request) (*http.Response, error) {
			if request.URL.Query().Has("continue") {
				continued.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	paged, err := apiserver.Connect(config, 2000, 2000)
	if err != nil {
		t.Fatal(err)
	}
	namespace, wanted := space(t, clients), map[types.UID]string{}
	for i := range 7 {
		wanted[createPod(t, clients, namespace, fmt.Sprint("pod-", i)).UID] = fmt.Sprint("pod ", i)
		node, err := clients.Core.CoreV1().Nodes().Create(apitest.Context(t), &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "paged-"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wanted[node.UID] = fmt.Sprint("node ", i)
	}
	inbox := startInbox(t, paged, intake.Options{PageSize: 3})
	for _, e := range inbox.Take() {
		delete(wanted, e.(cache.Set).Object.(metav1.Object).GetUID())
	}
	for _, what := range wanted {
		t.Errorf("%s did not come", what)
	}
	if got := continued.Load(); got < 4 {
		t.Errorf("seven pods and seven nodes were listed with %d further requests", got)
	}
	for again := range 2 { // nothing that was made after the list is missed
		late := createPod(t, clients, namespace, fmt.Sprint("late-", again))
		await(t, inbox, "a later pod", isSet(late.UID, func(*cluster.Pod) bool { return true }))
	}
	for _, e := range inbox.Take() {
		if set, ok := e.(cache.Set); ok {
			t.Errorf("%T comes a second time", set.Object)
		}
	}
}
