package tenant

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/apitest"
)

// A user who may edit a pod could otherwise make another queue pay for it, or none.
func TestNoTenantChangesWhichQueueIsChargedForAPod(t *testing.T) {
	const namespace = "team-account"
	tenant := tenantOf(t, namespace)
	pod := func(name, metadata, spec string) *unstructured.Unstructured {
		return apitest.Object(t, namespace, "apiVersion: v1\nkind: Pod\nmetadata: {name: "+name+", "+metadata+"}\nspec: {schedulerName: other, "+spec+
			"automountServiceAccountToken: false, containers: [{name: a, image: b}]}")
	}
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "names the queue that is charged for the pod") {
			t.Errorf("%s: %v", what, err)
		}
	}
	const account = "annotations: {hekla.sh/account: cheap/j}, "
	refused("a pod that begins on a node", tenant.Create(apitest.Context(t), pod("placed", account, "nodeName: n1, ")))
	p := pod("p", account, "") // The Binding says another queue.
	if err := tenant.Create(apitest.Context(t), p); err != nil {
		t.Fatal(err)
	}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", Annotations: map[string]string{decision.AccountAnnotation: "dear/j"}},
		Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}
	if err := admin.SubResource("binding").Create(apitest.Context(t), &corev1.Pod{ObjectMeta: binding.ObjectMeta}, binding); err != nil {
		t.Fatal(err)
	}
	for what, patch := range map[string]string{"another": `"cheap/j"`, "none": `null`, "": `"dear/j"`} {
		err := tenant.Patch(apitest.Context(t), p, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"note": "x", "hekla.sh/account": `+patch+`}}}`)))
		if what != "" {
			refused(what+" account", err)
		} else if err != nil || p.GetAnnotations()["note"] != "x" || p.GetAnnotations()[decision.AccountAnnotation] != "dear/j" {
			t.Errorf("an edit that leaves the account: %v, %v", err, p.GetAnnotations())
		}
	}
}
