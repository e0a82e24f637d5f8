package app

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/answers/publish"
	"hekla.sh/hekla/test/apitest"
)

// places are the Workloads of an answer with their positions in the ClusterQueue and in the LocalQueue.
func places(s *api.PendingWorkloadsSummary) string {
	var all []string
	for i := range s.Items {
		w := &s.Items[i]
		namespace, _, _ := strings.Cut(w.Namespace, "-")
		all = append(all, fmt.Sprintf("%s/%s %d %d", namespace, w.Name, w.PositionInClusterQueue, w.PositionInLocalQueue))
	}
	return strings.Join(all, ", ")
}

// A Workload that waits has its place by Kueue's API, through the API server, in both versions.
func TestPlacesOfWorkloadsAreServedByKueuesAPI(t *testing.T) {
	w := onCluster(t)
	w.register(publish.Visibility()...)
	ctx := t.Context()
	ours, theirs, queue := "ours-"+w.suffix, "theirs-"+w.suffix, "places-"+w.suffix
	for _, namespace := range []string{ours, theirs} {
		_, err := w.core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		must(t, err)
	}
	objects := []string{fmt.Sprintf(`{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: %s}, spec: {namespaceSelector: {}, stopPolicy: Hold,
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: none, resources: [{name: cpu, nominalQuota: 1}]}]}]}}`, queue)}
	for _, namespace := range []string{ours, theirs} {
		objects = append(objects, fmt.Sprintf("{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: q, namespace: %s}, spec: {clusterQueue: %s}}", namespace, queue))
	}
	for _, made := range []struct {
		namespace, name string
		priority        int
	}{{ours, "low", 1}, {ours, "high", 9}, {theirs, "middle", 5}} {
		objects = append(objects, fmt.Sprintf("{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: %s, namespace: %s}, spec: {queueName: q, priority: %d,"+
			" podSets: [{name: main, count: 1, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}}]}}", made.name, made.namespace, made.priority))
	}
	for _, text := range objects {
		must(t, w.cluster.Apply(ctx, []*unstructured.Unstructured{apitest.Object(t, "", text)}))
	}
	w.ready(w.start("--leader-elect=false", "--scheduler-name=places-"+w.suffix, "--answers-address="+freeAddress(t), "--answers-service="+systemNamespace+"/"+publish.Service))
	for _, version := range api.VisibilityVersions {
		root := "/apis/" + api.VisibilityGroup + "/" + version
		all, local := root+"/clusterqueues/"+queue+"/pendingworkloads", root+"/namespaces/"+ours+"/localqueues/q/pendingworkloads"
		for path, want := range map[string]string{
			all:                       "ours/high 0 0, theirs/middle 1 0, ours/low 2 1",
			all + "?limit=1&offset=1": "theirs/middle 1 0",
			local:                     "ours/high 0 0, ours/low 2 1",
			local + "?offset=1":       "ours/low 2 1",
		} {
			apitest.Eventually(t, func(ctx context.Context) error {
				var found api.PendingWorkloadsSummary
				if err := askThrough(ctx, w.core, path, &found); err != nil {
					return err
				}
				if got := places(&found); got != want || found.Kind != "PendingWorkloadsSummary" || found.APIVersion != api.VisibilityGroup+"/"+version {
					return fmt.Errorf("%s is a %s of %s: %s, want %s", path, found.Kind, found.APIVersion, got, want)
				}
				return nil
			})
		}
		var found api.PendingWorkloadsSummary
		if err := askThrough(ctx, w.core, root+"/clusterqueues/nowhere/pendingworkloads", &found); !apierrors.IsNotFound(err) {
			t.Errorf("a ClusterQueue that is not there: %v", err)
		}
		if err := askThrough(ctx, w.core, all+"?limit=many", &found); !apierrors.IsBadRequest(err) {
			t.Errorf("a limit that is no number: %v", err)
		}
		if list, err := w.core.Discovery().ServerResourcesForGroupVersion(api.VisibilityGroup + "/" + version); err != nil || len(list.APIResources) != 2 {
			t.Errorf("discovery: %v, %v", list, err)
		}
	}
	// Who may get the places in the LocalQueues of a namespace may get no others.
	user := w.user("places-"+w.suffix, ours)
	path := "/apis/" + api.VisibilityGroup + "/v1beta2/namespaces/" + ours + "/localqueues/q/pendingworkloads"
	var found api.PendingWorkloadsSummary
	if err := askThrough(ctx, user, path, &found); !apierrors.IsForbidden(err) {
		t.Errorf("without the right: %v", err)
	}
	_, err := w.core.RbacV1().Roles(ours).Patch(ctx, "places-"+w.suffix, types.JSONPatchType,
		[]byte(`[{"op": "add", "path": "/rules/-", "value": {"apiGroups": ["`+api.VisibilityGroup+`"], "resources": ["localqueues/pendingworkloads"], "verbs": ["get"]}}]`), metav1.PatchOptions{})
	must(t, err)
	apitest.Eventually(t, func(ctx context.Context) error { return askThrough(ctx, user, path, &found) })
	for _, path := range []string{strings.Replace(path, ours, theirs, 1), "/apis/" + api.VisibilityGroup + "/v1beta2/clusterqueues/" + queue + "/pendingworkloads"} {
		if err := askThrough(ctx, user, path, &found); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want Forbidden", path, err)
		}
	}
}
