package edge

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/client/definitions"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/apitest"
)

// changeDefinition patches the definition of PodGroups and waits until the API server serves it.
func changeDefinition(t *testing.T, config *rest.Config, api discovery.DiscoveryInterface, patch string, hasStatus bool) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Patch(apitest.Context(t), "podgroups.scheduling.volcano.sh", types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, func(context.Context) error {
		missing, err := definitions.WithoutStatus(api, definitions.Written)
		if lacks := slices.ContainsFunc(missing, func(r schema.GroupVersionResource) bool { return r.Resource == "podgroups" }); err == nil && lacks == hasStatus {
			err = fmt.Errorf("the API server says that these lack the subresource: %v", missing)
		}
		return err
	})
}

func TestAStatusIsWrittenWhereItIsNoSubresource(t *testing.T) {
	clients, c := adminClients(t)
	if missing, err := definitions.WithoutStatus(clients.Core.Discovery(), definitions.Written); err != nil || len(missing) > 0 {
		t.Fatalf("Hekla's own definitions lack the subresource: %v, %v", missing, err)
	}
	// Volcano's own definition of PodGroups has none.
	changeDefinition(t, c.Config(), clients.Core.Discovery(), `[{"op":"remove","path":"/spec/versions/0/subresources"}]`, false)
	defer changeDefinition(t, c.Config(), clients.Core.Discovery(), `[{"op":"add","path":"/spec/versions/0/subresources","value":{"status":{}}}]`, true)
	told := make(chan schema.GroupVersionResource, 10)
	ctx := apitest.Context(t)
	go definitions.Watch(ctx, clients.Core.Discovery(), definitions.Written, 10*time.Millisecond, func(r schema.GroupVersionResource) { told <- r })
	if resource := <-told; definitions.Name(resource) != "podgroups.scheduling.volcano.sh" {
		t.Errorf("told is %v", resource)
	}
	namespace := space(t, clients)
	o, _ := startOutbox(t, clients)
	group := createGroup(t, clients, namespace, "group")
	write := func(uid types.UID, status schedulingv1beta1.PodGroupStatus) error {
		o.Do(decision.Decisions{Groups: []decision.GroupStatus{{
			Job: cluster.JobID{Namespace: namespace, Name: "group"}, UID: uid, Status: status,
		}}})
		settled(t, o)
		live, err := clients.Batch.SchedulingV1beta1().PodGroups(namespace).Get(apitest.Context(t), "group", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if diff := cmp.Diff(schedulingv1beta1.PodGroupInqueue, live.Status.Phase); diff != "" {
			return fmt.Errorf("phase (-want +got):\n%s", diff)
		}
		return nil
	}
	if err := write(group.UID, schedulingv1beta1.PodGroupStatus{Phase: schedulingv1beta1.PodGroupInqueue}); err != nil {
		t.Error(err)
	}
	if err := write("another", schedulingv1beta1.PodGroupStatus{Phase: schedulingv1beta1.PodGroupRunning}); err != nil {
		t.Errorf("a status of its namesake: %v", err)
	}
	if len(told) > 0 {
		t.Errorf("it is told again while nothing has changed: %v", <-told)
	}
}
