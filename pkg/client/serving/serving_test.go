package serving_test

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/client/serving"
	"hekla.sh/hekla/pkg/conf"
)

func TestAConfigurationWithActionAndPluginAdmits(t *testing.T) {
	const tiers = "\ntiers: [{plugins: [{name: priority}]}, {plugins: [{name: cohorts, arguments: {unknown: 1}}]}]"
	for text, want := range map[string]bool{
		"":                                   false,
		"actions: enqueue, allocate" + tiers: false,
		"actions: enqueue, admit":            false,
		"actions: \"enqueue,admit\"" + tiers: true,
		conf.DefaultYAML:                     true,
	} {
		if _, got, err := serving.Admits([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	if _, _, err := serving.Admits([]byte("actions: [")); err == nil {
		t.Error("what is no YAML is read")
	}
}

func TestKueueRunsWhileItsLeaseIsRenewed(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lease := func(name, holder string, renewed time.Time) coordinationv1.Lease {
		return coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: ptr.To(int32(15))}}
	}
	for name, test := range map[string]struct {
		lease coordinationv1.Lease
		runs  bool
	}{
		"renewed":      {lease(v1beta2.LeaseName, "a", now.Add(-10*time.Second)), true},
		"expired":      {lease(v1beta2.LeaseName, "a", now.Add(-15*time.Second)), false},
		"given back":   {lease(v1beta2.LeaseName, "", now), false},
		"of another":   {lease("other", "a", now), false},
		"never filled": {coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: v1beta2.LeaseName}}, false},
	} {
		if found := serving.Holder([]coordinationv1.Lease{{}, test.lease}, now); (found != nil) != test.runs {
			t.Errorf("%s: found %v", name, found)
		}
	}
}
