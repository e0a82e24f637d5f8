package cli_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

func TestQuotasAreCreatedListedStoppedAndResumed(t *testing.T) {
	mustSay(t, "hekla create resourceflavor spot --node-labels kind=spot --node-taints spot=true:NoSchedule --tolerations spot:NoSchedule,gpu=a100", "create resourceflavor spot successfully")
	mustSay(t, "hekla create clusterqueue team-a --cohort all --nominal-quota spot:cpu=9;memory=36Gi,default:cpu=4;memory=8Gi,gpus:nvidia.com/gpu=2 --borrowing-limit spot:cpu=2 --lending-limit default:memory=1Gi "+
		"--queuing-strategy StrictFIFO --reclaim-within-cohort Any --preemption-within-cluster-queue LowerPriority --namespace-selector team=a", "create clusterqueue team-a successfully")
	mustSay(t, "hekla create cq dry --dry-run=server", "create clusterqueue dry successfully (server dry run)")
	mustSay(t, "hekla create localqueue user-queue -n default -c team-a", "create localqueue user-queue successfully")
	mustFail(t, "hekla create localqueue lost -n default -c missing", `there is no clusterqueue "missing"`)
	mustSay(t, "hekla create localqueue lost -n default -c missing -i", "create localqueue lost successfully")
	mustFail(t, "hekla create localqueue lost -n default", "--clusterqueue")
	mustFail(t, "hekla create clusterqueue bad --nominal-quota cpu=9", "FLAVOR:RESOURCE=QUANTITY")
	mustFail(t, "hekla create clusterqueue bad --nominal-quota spot:cpu=many", `"cpu=many" is not RESOURCE=QUANTITY`)
	mustFail(t, "hekla create clusterqueue bad --nominal-quota spot:cpu=1 --borrowing-limit spot:cpu=1", "must be nil when cohort is empty")
	mustFail(t, "hekla create clusterqueue bad --cohort c --nominal-quota spot:cpu=1 --lending-limit spot:memory=1", "flavor spot has no --nominal-quota of memory")
	mustFail(t, "hekla create resourceflavor bad --node-taints spot", "KEY=VALUE:EFFECT")

	queue, flavor := &v1beta2.ClusterQueue{}, &v1beta2.ResourceFlavor{}
	get(t, "", "team-a", queue)
	get(t, "", "spot", flavor)
	groups := queue.Spec.ResourceGroups
	if len(groups) != 2 || len(groups[0].Flavors) != 2 || groups[0].Flavors[0].Resources[0].BorrowingLimit.Value() != 2 || groups[1].CoveredResources[0] != "nvidia.com/gpu" ||
		queue.Spec.Preemption.ReclaimWithinCohort != "Any" || queue.Spec.NamespaceSelector.MatchLabels["team"] != "a" {
		t.Errorf("the queue is %+v", queue.Spec)
	}
	if f := flavor.Spec; f.NodeLabels["kind"] != "spot" || f.NodeTaints[0].Effect != "NoSchedule" || f.Tolerations[0].Operator != "Exists" || f.Tolerations[1].Value != "a100" {
		t.Errorf("the flavor is %+v", f)
	}

	mustSay(t, "hekla list clusterqueue", `
Name Cohort Pending-Workloads Admitted-Workloads Active Age
team-a all 0 0 false AGE`)
	mustSay(t, "hekla list cq --active=true", "No clusterqueues found")
	mustSay(t, "hekla create clusterqueue team-b --cohort all --nominal-quota spot:cpu=1;memory=1Gi", "create clusterqueue team-b successfully")
	other := &v1beta2.ClusterQueue{}
	get(t, "", "team-b", other)
	other.Status.PendingWorkloads = 3
	other.Status.FlavorsReservation = []v1beta2.FlavorUsage{{Name: "spot", Resources: []v1beta2.ResourceUsage{{Name: "cpu", Total: resource.MustParse("4500m")}}}}
	if err := api.Status().Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	mustSay(t, "hekla tree", `
Name Kind Flavor/Resource Quota Used Borrowed Available Share Pending
all Cohort default/cpu 4 0 0 4 - 3
all Cohort default/memory 8Gi 0 0 1Gi - 3
all Cohort gpus/nvidia.com/gpu 2 0 0 2 - 3
all Cohort spot/cpu 10 4500m 0 5500m - 3
all Cohort spot/memory 37Gi 0 0 37Gi - 3
  team-a ClusterQueue default/cpu 4 0 0 4 0 0
  team-a ClusterQueue default/memory 8Gi 0 0 8Gi 0 0
  team-a ClusterQueue gpus/nvidia.com/gpu 2 0 0 2 0 0
  team-a ClusterQueue spot/cpu 9 0 0 5500m 0 0
  team-a ClusterQueue spot/memory 36Gi 0 0 37Gi 0 0
  team-b ClusterQueue spot/cpu 1 4500m 3500m 5500m 250 3
  team-b ClusterQueue spot/memory 1Gi 0 0 37Gi 250 3`)
	mustSay(t, "hekla tree team-b --no-headers", `
team-b ClusterQueue spot/cpu 1 4500m 3500m 5500m 250 3
team-b ClusterQueue spot/memory 1Gi 0 0 37Gi 250 3`)
	mustFail(t, "hekla tree nothing", `there is neither a cohort nor a clusterqueue "nothing"`)
	mustSay(t, "hekla list localqueue -n default -c team-a", `
Name ClusterQueue Pending-Workloads Admitted-Workloads Age
user-queue team-a 0 0 AGE`)
	mustSay(t, "hekla list rf", `
Name Node-Labels Age
spot kind=spot AGE`)

	mustSay(t, "hekla stop clusterqueue team-a --keep-already-running", "stop clusterqueue team-a successfully")
	get(t, "", "team-a", queue)
	if *queue.Spec.StopPolicy != v1beta2.Hold {
		t.Errorf("the policy is %s", *queue.Spec.StopPolicy)
	}
	mustSay(t, "hekla stop cq team-a", "stop clusterqueue team-a successfully")
	get(t, "", "team-a", queue)
	if *queue.Spec.StopPolicy != v1beta2.HoldAndDrain {
		t.Errorf("the policy is %s", *queue.Spec.StopPolicy)
	}
	mustSay(t, "hekla resume cq team-a", "resume clusterqueue team-a successfully")
	mustSay(t, "hekla stop lq user-queue -n default", "stop localqueue user-queue successfully")
	mustFail(t, "hekla stop cq nothing", `there is no clusterqueue "nothing"`)
	mustFail(t, "hekla stop cq", "requires at least 1 arg")
}

func TestWorkloadsAreListedWithTheirStatus(t *testing.T) {
	for _, name := range []string{"waits", "runs"} {
		w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job-" + name, UID: "1"}}}}
		w.Spec.QueueName = "q"
		w.Spec.PodSets = []v1beta2.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}}}}
		if err := api.Create(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		if name == "runs" {
			w.Status.Admission = &v1beta2.Admission{ClusterQueue: "cq", PodSetAssignments: []v1beta2.PodSetAssignment{{Name: "main"}}}
			conditions.Reserve(w, "cq", time.Now())
			conditions.Admit(w, time.Now())
		} else {
			conditions.Pend(w, v1beta2.ReasonWaitingForQuota, "no quota", time.Now())
		}
		if err := api.Status().Update(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = api.Delete(t.Context(), w) })
	}
	mustSay(t, "hekla list workload -n default -o wide", `
Name Job-Type Job-Name LocalQueue ClusterQueue Status Position Exec-Time Age Priority Message
runs job.batch job-runs q cq ADMITTED - AGE AGE 0 -
waits job.batch job-waits q - PENDING 1 - AGE 0 no quota`)
	mustSay(t, "hekla list wl -n default --status pending --no-headers", "waits job.batch job-waits q - PENDING 1 - AGE 0")
	mustSay(t, "hekla list wl -n default -c cq --no-headers", "runs job.batch job-runs q cq ADMITTED - AGE AGE 0")
	mustFail(t, "hekla list wl --status lost", "--status=lost: it must be one of all, pending, quotareserved, admitted, finished")
	mustSay(t, "hekla stop workload waits -n default", "stop workload waits successfully")
	w := &v1beta2.Workload{}
	get(t, "default", "waits", w)
	if *w.Spec.Active {
		t.Error("the workload is active")
	}
	mustSay(t, "hekla resume workload waits -n default", "resume workload waits successfully")
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil || !*w.Spec.Active {
		t.Errorf("the workload is not active again: %v", err)
	}
}

func TestThePodsOfAnOwnerAreListed(t *testing.T) {
	for _, label := range []string{"batch.kubernetes.io/job-name", "volcano.sh/job-name", "kueue.x-k8s.io/pod-group-name"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "of-", Labels: map[string]string{label: "train"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}}
		if err := api.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = api.Delete(context.Background(), pod, client.GracePeriodSeconds(0)) })
		for of, want := range map[string]string{"job": "batch.kubernetes.io/job-name", "job.batch": "batch.kubernetes.io/job-name", "vcjob": "volcano.sh/job-name",
			"job.batch.volcano.sh": "volcano.sh/job-name", "podgroup": "kueue.x-k8s.io/pod-group-name"} {
			if want == label {
				mustSay(t, "hekla list pods -n default -o name --for "+of+"/train", "pod/"+pod.Name)
			}
		}
	}
	for _, bad := range []string{"job", "job/", "cake/train", "job.example.com/train"} {
		mustFail(t, "hekla list pods --for "+bad, "it must be TYPE/NAME")
	}
}
