package jobs

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"hekla.sh/hekla/pkg/apis"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

func TestAWorkloadThatWaitsHasItsPlace(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	workload := func(name string, minute int) *v1beta2.Workload {
		return &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute))},
			Spec: v1beta2.WorkloadSpec{QueueName: "all", PodSets: []v1beta2.PodSet{{Name: "main", Count: 1}}}}
	}
	holds, first, second := workload("holds", 0), workload("first", 1), workload("second", 2)
	conditions.Reserve(holds, "cluster-queue", noon)
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := apis.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	rows, missing, err := collect(context.Background(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(holds, second, first).Build(), "team")
	if err != nil || len(missing) > 0 {
		t.Fatal(err, missing)
	}
	places := map[string]string{}
	for _, r := range rows {
		places[r.name] = r.place
	}
	for name, want := range map[string]string{
		"Workload/holds": "", "Workload/first": "place 1 of the Workloads in LocalQueue all that wait for quota",
		"Workload/second": "place 2 of the Workloads in LocalQueue all that wait for quota",
	} {
		if got, isThere := places[name]; !isThere || got != want {
			t.Errorf("the place of %s is %q, want %q", name, got, want)
		}
	}
}
