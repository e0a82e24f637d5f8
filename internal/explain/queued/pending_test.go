package queued_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/fixture"
)

func TestThosePendingHaveTheirPlaces(t *testing.T) {
	k := newKueue(t, 4)
	k.Apply("{kind: LocalQueue, metadata: {name: second}, spec: {clusterQueue: q}}")
	k.submit("runs", "q", 0, 4)
	k.Rest(50)
	k.submit("low", "q", 1, 7)
	k.submit("high", "second", 9, 7)
	k.submit("later", "q", 1, 7)
	k.submit("elsewhere", "lender", 5, 1)
	k.submit("inactive", "q", 5, 1)
	k.Edit("inactive", func(o *v1beta2.Workload) {
		no := false
		o.Spec.Active = &no
	})
	list := func(local string, page queued.Page) string {
		var key types.NamespacedName
		if local != "" {
			key = fixture.Key(local)
		}
		var said []string
		for _, p := range queued.PendingIn(k.Cache.Workloads.Reader, "q", key, page) {
			said = append(said, fmt.Sprintf("%s of %s %d %d", p.Name, p.LocalQueue, p.InClusterQueue, p.InLocalQueue))
		}
		return strings.Join(said, ", ")
	}
	all := queued.Page{Limit: 10}
	const want = "high of second 0 0, low of q 1 0, later of q 2 1"
	for _, stop := range []v1beta2.StopPolicy{v1beta2.StopNone, v1beta2.Hold} {
		q := k.Object("v1beta2.ClusterQueue/q").(*v1beta2.ClusterQueue).DeepCopy()
		q.Spec.StopPolicy = &stop
		k.Replace(q)
		k.read()
		if got := list("", all); got != want {
			t.Errorf("with the policy %s there wait %s", stop, got)
		}
	}
	if got := list("q", all); got != "low of q 1 0, later of q 2 1" {
		t.Errorf("in the LocalQueue there wait %s", got)
	}
	if got := list("", queued.Page{Offset: 1, Limit: 1}); got != "low of q 1 0" {
		t.Errorf("the second page is %s", got)
	}
}
