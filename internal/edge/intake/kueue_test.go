package intake

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/pkg/resources"
)

// mostBytes is how much a Workload may take that waits: in the cache of its watch, and in the model.
const mostBytes = 2048

// decoded is a Workload of a Job as the API server sends it: nothing of it is shared with others.
func decoded(i int) *v1beta2.Workload {
	uid := types.UID(fmt.Sprintf("00000000-0000-0000-0001-%012d", i))
	return &v1beta2.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("te", "am"), Name: fmt.Sprintf("job-training-%d-abcde", i), UID: types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)),
			ResourceVersion: fmt.Sprint(i), Generation: 1, CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0)),
			Labels:          map[string]string{fmt.Sprint(v1beta2.JobUIDLabel): string(uid)},
			Finalizers:      []string{fmt.Sprint(v1beta2.ResourceInUseFinalizer)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: fmt.Sprint("training-", i), UID: uid, Controller: ptr.To(true)}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "controllers", FieldsV1: metav1.NewFieldsV1(strings.Repeat("f", 2000))}},
		},
		Spec: v1beta2.WorkloadSpec{QueueName: fmt.Sprint("l", "q"), Priority: ptr.To(int32(0)), Active: ptr.To(true), PodSets: []v1beta2.PodSet{{Name: "main", Count: 4, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, SchedulerName: "volcano", Containers: []corev1.Container{{
				Name: "main", Image: "training:1", Command: []string{"train", "--part", fmt.Sprint(i)}, Env: []corev1.EnvVar{{Name: "PART", Value: fmt.Sprint(i)}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}}}}}}}}},
		Status: v1beta2.WorkloadStatus{Conditions: []metav1.Condition{{Type: fmt.Sprint(v1beta2.QuotaReserved), Status: metav1.ConditionFalse, Reason: fmt.Sprint(v1beta2.ReasonWaitingForQuota),
			Message: "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 4 more needed"}}},
	}
}

func TestAPendingWorkloadIsSmall(t *testing.T) {
	const count = 10_000
	slimmer, reader := newSlimmer(), workloads.New(resources.NewIndex())
	reader.Set(&v1beta2.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	reader.Set(&v1beta2.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq"}, Spec: v1beta2.ClusterQueueSpec{NamespaceSelector: &metav1.LabelSelector{},
		ResourceGroups: []v1beta2.ResourceGroup{{CoveredResources: []corev1.ResourceName{"cpu", "memory"}, Flavors: []v1beta2.FlavorQuotas{{Name: "default",
			Resources: []v1beta2.ResourceQuota{{Name: "cpu"}, {Name: "memory"}}}}}}}})
	reader.Set(&v1beta2.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lq"}, Spec: v1beta2.LocalQueueSpec{ClusterQueue: "cq"}})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range count {
		slim, err := slimmer.slim(decoded(i))
		if err != nil {
			t.Fatal(err)
		}
		reader.Set(slim.(*v1beta2.Workload))
	}
	reader.Settle(time.Unix(0, 0))
	if active, _ := reader.Queues().All()[0].Waiting(); active != count {
		t.Fatalf("%d Workloads wait", active)
	}
	if each := (heap() - before) / count; each > mostBytes {
		t.Errorf("a pending Workload takes %d bytes, and %d are the most", each, mostBytes)
	} else {
		t.Logf("a pending Workload takes %d bytes", each)
	}
	runtime.KeepAlive(reader)
	runtime.KeepAlive(slimmer)
}

func TestTheOwnerOfAWorkloadIsKept(t *testing.T) {
	for name, test := range map[string]struct {
		labels map[string]string
		owned  bool
		want   types.UID // of the owner that is kept
	}{
		"an owner and the label": {map[string]string{v1beta2.JobUIDLabel: "labelled"}, true, "labelled"},
		"an owner alone":         {nil, true, "00000000-0000-0000-0001-000000000001"},
		"the label alone":        {map[string]string{v1beta2.JobUIDLabel: "labelled"}, false, ""},
		"neither":                {nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := decoded(1)
			w.Labels = test.labels
			if !test.owned {
				w.OwnerReferences = nil
			}
			slim, err := newSlimmer().slim(w)
			if err != nil {
				t.Fatal(err)
			}
			owner := metav1.GetControllerOfNoCopy(slim.(*v1beta2.Workload))
			if (owner != nil) != test.owned || test.owned && (owner.APIVersion != "batch/v1" || owner.Kind != "Job" || owner.Name != "training-1" || owner.UID != test.want) {
				t.Errorf("the owner is %+v", owner)
			}
			if uid := slim.(*v1beta2.Workload).Labels[v1beta2.JobUIDLabel]; !test.owned && uid != test.labels[v1beta2.JobUIDLabel] {
				t.Errorf("the UID of the job is %q", uid)
			}
		})
	}
}
