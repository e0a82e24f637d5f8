package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/test/apitest"
)

func TestTheSchedulerIsNotReadyWhileTheDefinitionOfPodGroupsIsGone(t *testing.T) {
	w := onCluster(t)
	p := w.start("--leader-elect=false")
	w.ready(p)
	w.gang("before-"+w.suffix, 2)
	w.isBound("before-"+w.suffix, 2)

	api, err := apitest.Client(w.cluster.Config())
	must(t, err)
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "installer", "crds", "scheduling.volcano.sh_podgroups.yaml"))
	must(t, err)
	definition := apitest.Object(t, "", string(text))
	must(t, api.Delete(t.Context(), definition.DeepCopy()))
	apply := func() {
		apitest.Eventually(t, func(ctx context.Context) error { // the old one may still be going
			current := definition.DeepCopy()
			if err := client.IgnoreAlreadyExists(api.Create(ctx, current)); err != nil {
				return err
			}
			if err := api.Get(ctx, client.ObjectKeyFromObject(current), current); err != nil || current.GetDeletionTimestamp() != nil {
				return fmt.Errorf("the old definition is going: %v", err)
			}
			return nil
		})
	}
	defer apply()
	apitest.Eventually(t, func(ctx context.Context) error {
		if _, err := get(ctx, "http://"+p.health+"/readyz"); err == nil || !strings.Contains(err.Error(), "podgroups.scheduling.volcano.sh") {
			return fmt.Errorf("readiness: %v", err)
		}
		_, err := get(ctx, "http://"+p.health+"/healthz")
		return err
	})
	apply()
	w.ready(p)
	w.gang("after-"+w.suffix, 2)
	w.isBound("after-"+w.suffix, 2)
}
