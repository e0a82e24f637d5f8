package intake

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"hekla.sh/hekla/internal/edge/apiserver"
)

// TestKindsThatAreFoundAtOnceAreAllWatched runs two searches for kinds that an API server need not have, which end
// together. An informer that the other starts can no longer be set up, and the caches would never be complete.
func TestKindsThatAreFoundAtOnceAreAllWatched(t *testing.T) {
	clients, err := apiserver.Connect(&rest.Config{Host: "127.0.0.1:1"}, 10, 10)
	if err != nil {
		t.Fatal(err)
	}
	inbox, err := New(clients, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer inbox.Wait()
	defer cancel()
	var both sync.WaitGroup
	found := make(chan struct{})
	both.Go(func() {
		if err := inbox.watchMore(ctx, func() map[string]toolscache.SharedIndexInformer {
			made := inbox.kueue.informers()
			close(found)
			time.Sleep(50 * time.Millisecond) // the other ends meanwhile, if nothing holds it
			return made
		}); err != nil {
			t.Error(err)
		}
	})
	both.Go(func() {
		<-found
		if err := inbox.watchMore(ctx, func() map[string]toolscache.SharedIndexInformer {
			return map[string]toolscache.SharedIndexInformer{"deviceclasses": inbox.core.Resource().V1().DeviceClasses().Informer()}
		}); err != nil {
			t.Error(err)
		}
	})
	both.Wait()
	if got := len(inbox.watched()); got < 25 {
		t.Errorf("%d kinds are watched", got)
	}
}
