package tenant

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/apitest"
)

// A tenant whose ResourceQuota allows a tenth of a CPU writes a PodGroup with task groups of three CPUs and a timeout
// of thirty years. Nothing is held for them, the PodGroup says why, and another tenant's pod gets the node.
func TestTaskGroupsBeyondAQuotaHoldNothing(t *testing.T) {
	schedule(t)
	hog, other := tenantOf(t, "holds"), tenantOf(t, "needs")
	create(t, admin, "holds", "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: tenth}\nspec: {hard: {requests.cpu: 100m}}")
	apitest.Eventually(t, func(ctx context.Context) error {
		quota := &corev1.ResourceQuota{}
		if err := admin.Get(ctx, client.ObjectKey{Namespace: "holds", Name: "tenth"}, quota); err != nil || len(quota.Status.Hard) == 0 {
			return fmt.Errorf("the quota is %v, %v", quota.Status, err)
		}
		return nil
	})
	group := create(t, hog, "holds", `
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata:
  name: app
  annotations:
    yunikorn.apache.org/task-groups: '[{"name": "driver", "minMember": 1, "minResource": {"cpu": "100m"}}, {"name": "executor", "minMember": 3, "minResource": {"cpu": "1"}}]'
    yunikorn.apache.org/schedulingPolicyParameters: "placeholderTimeoutInSeconds=999999999 gangSchedulingStyle=Hard"
spec: {minMember: 4, minTaskMember: {driver: 1, executor: 3}}`)
	pod := func(name, annotations, cpu string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, annotations: {%s}}\nspec: {schedulerName: volcano, containers: [{name: a, image: b, resources: {requests: {cpu: %s}}}]}",
			name, annotations, cpu)
	}
	create(t, hog, "holds", pod("driver", "scheduling.k8s.io/group-name: app, volcano.sh/task-spec: driver", "100m"))
	apitest.Eventually(t, func(ctx context.Context) error {
		stored := &scheduling.PodGroup{}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(group), stored); err != nil {
			return err
		}
		for _, c := range stored.Status.Conditions {
			if c.Reason == "Refused" && strings.Contains(c.Message, "ResourceQuota holds/tenth") {
				return nil
			}
		}
		return fmt.Errorf("it says %+v", stored.Status)
	})
	create(t, other, "needs", pod("whole", "", "4"))
	apitest.Eventually(t, func(ctx context.Context) error {
		stored := &corev1.Pod{}
		if err := admin.Get(ctx, client.ObjectKey{Namespace: "needs", Name: "whole"}, stored); err != nil || stored.Spec.NodeName == "" {
			return fmt.Errorf("it has no node: %v, %v", stored.Status.Conditions, err)
		}
		return nil
	})
}
