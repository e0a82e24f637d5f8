package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/test/apitest"
)

// gangUnderQuota is a Volcano Job whose four pods must start together, in a namespace.
func gangUnderQuota(namespace, name string) string {
	return fmt.Sprintf(`
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: %s, namespace: %s}
spec:
  minAvailable: 4
  tasks:
  - name: worker
    replicas: 4
    template:
      metadata: {annotations: {hekla.sh/run-for: 1s}}
      spec:
        restartPolicy: Never
        terminationGracePeriodSeconds: 1
        containers: [{name: main, image: busybox, resources: {requests: {cpu: 100m}}}]
---
`, name, namespace)
}

// The quota has room for one gang of four pods. If two were admitted, each might get a part of its pods, and neither
// would ever start.
func TestGangsUnderAResourceQuotaRunOneAfterTheOther(t *testing.T) {
	haveNodes(t, 2)
	const namespace, gangs = "rationed", 6
	var text strings.Builder
	text.WriteString(`
apiVersion: v1
kind: Namespace
metadata: {name: rationed}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: four, namespace: rationed}
spec: {hard: {pods: 4, requests.cpu: 400m}}
---
`)
	for i := range gangs {
		text.WriteString(gangUnderQuota(namespace, fmt.Sprint("gang-", i)))
	}
	applyText(t, text.String())
	waited := false
	apitest.Eventually(t, func(ctx context.Context) error {
		jobs, err := batch.BatchV1alpha1().Jobs(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ended := 0
		for i := range jobs.Items {
			if jobs.Items[i].Status.State.Phase == batchv1alpha1.Completed {
				ended++
			}
		}
		groups, err := batch.SchedulingV1beta1().PodGroups(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range groups.Items {
			for _, c := range groups.Items[i].Status.Conditions {
				waited = waited || c.Reason == "Refused" && strings.Contains(c.Message, "ResourceQuota rationed/four")
			}
		}
		if ended < gangs {
			return fmt.Errorf("%d of %d gangs have ended", ended, gangs)
		}
		return nil
	})
	if !waited {
		t.Error("no PodGroup said that it waits for the ResourceQuota")
	}
}
