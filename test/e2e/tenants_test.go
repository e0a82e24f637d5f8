package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// guaranteedShares is the configuration of these tests.
const guaranteedShares = `actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: predicates
  - name: guaranteed-shares
    arguments: {subtrees: [root], preemptionDelay: 1s}
  - name: nodeorder
`

// tenant creates a queue that is guaranteed some CPUs.
func tenant(t *testing.T, name, cpu string) {
	t.Helper()
	queue := &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name,
		Annotations: map[string]string{schedulingv1beta1.QueuePathKey: "root." + name}}}
	if cpu != "" {
		queue.Spec.Guarantee.Resource = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	if _, err := batch.SchedulingV1beta1().Queues().Create(t.Context(), queue, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// shareByGuarantees begins a test with guaranteed shares, on two nodes of eight CPUs.
func shareByGuarantees(t *testing.T) {
	t.Helper()
	haveNodes(t, 2)
	tidyUp(t)
	configure(t, guaranteedShares)
}

// sparkPod is a pod as Spark writes it, in a queue by its path.
func sparkPod(name, role, cpu, queue string, owner *corev1.Pod) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name,
			Labels:      map[string]string{"spark-app-selector": "spark-e2e", "spark-role": role, "queue": queue},
			Annotations: map[string]string{yunikorn.TaskGroupNameKey: "spark-" + role}},
		Spec: corev1.PodSpec{SchedulerName: "volcano", RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "spark", Image: "spark", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}},
	}
	if owner != nil {
		yes := true
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: owner.Name, UID: owner.UID, Controller: &yes}}
	}
	return pod
}

func createPod(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	created, err := core.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// awaitNode waits until a pod runs, and returns its node.
func awaitNode(t *testing.T, name string) (node string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		pod, err := core.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("pod %s is %s: %+v", name, pod.Status.Phase, pod.Status.Conditions)
		}
		if err == nil {
			node = pod.Spec.NodeName
		}
		return err
	})
	return node
}

// awaitApplication waits until the PodGroup of the application is as it is wanted.
func awaitApplication(t *testing.T, problem func(*schedulingv1beta1.PodGroup) string) *schedulingv1beta1.PodGroup {
	t.Helper()
	var group *schedulingv1beta1.PodGroup
	apitest.Eventually(t, func(ctx context.Context) (err error) {
		group, err = batch.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault).Get(ctx, "podgroup-app-spark-e2e", metav1.GetOptions{})
		if err == nil {
			if why := problem(group); why != "" {
				err = fmt.Errorf("%s: %+v, %+v", why, group.Annotations, group.Status)
			}
		}
		return err
	})
	return group
}

func TestTheNodesOfSparksExecutorsAreHeldFromWhenTheDriverStarts(t *testing.T) {
	shareByGuarantees(t)
	restartScheduler(t)
	tenant(t, "spark", "")
	tenant(t, "others", "")
	driver := sparkPod("driver", "driver", "1", "root.spark", nil)
	driver.Annotations[yunikorn.TaskGroupsKey] = `[{"name": "spark-driver", "minMember": 1, "minResource": {"cpu": "1"}},
		{"name": "spark-executor", "minMember": 3, "minResource": {"cpu": "4"}}]`
	driver = createPod(t, driver)
	awaitNode(t, "driver")
	var held []string
	awaitApplication(t, func(g *schedulingv1beta1.PodGroup) string {
		if held = slices.Clone(decision.StandInsOf(g).Nodes["spark-executor"]); len(held) != 3 || g.Spec.MinMember != 4 || g.Spec.Queue != "spark" {
			return "the nodes of three executors are not held"
		}
		return ""
	})

	// Of sixteen CPUs one runs and three times four are held, so three are free. The scheduler that comes knows that,
	// too.
	create(t, in("others", batchJob("other", 1, "4")))
	awaitReason(t, "other", "NotGuaranteed")
	restartScheduler(t)
	for i := range 3 {
		createPod(t, sparkPod(fmt.Sprintf("exec-%d", i+1), "executor", "4", "root.spark", driver))
	}
	var got []string
	for i := range 3 {
		got = append(got, awaitNode(t, fmt.Sprintf("exec-%d", i+1)))
	}
	slices.Sort(held)
	if slices.Sort(got); !slices.Equal(got, held) {
		t.Errorf("the executors run on %v, and %v were held for them", got, held)
	}
	awaitApplication(t, func(g *schedulingv1beta1.PodGroup) string {
		if len(decision.StandInsOf(g).Nodes) > 0 || g.Status.Phase != schedulingv1beta1.PodGroupRunning || g.Status.Running != 4 {
			return "the application does not run without stand-ins"
		}
		return ""
	})
	awaitReason(t, "other", "NotGuaranteed")

	// The driver takes its executors along, and the room is free.
	if err := core.CoreV1().Pods(metav1.NamespaceDefault).Delete(t.Context(), "driver", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitStaying(t, "other", 1)
	noNodeIsOverCommitted(t)
	nothingWasForbidden(t)
}

func TestATenantGetsWhatItIsGuaranteedAndNoMore(t *testing.T) {
	shareByGuarantees(t)
	tenant(t, "sales", "6")
	tenant(t, "research", "6")
	create(t, in("research", elastic(batchJob("long", 16, "1"))))
	awaitStaying(t, "long", 16)
	create(t, in("sales", batchJob("urgent", 6, "1")))
	awaitStaying(t, "urgent", 6)
	awaitStaying(t, "long", 10)

	t.Run("beyond its guarantee it waits", func(t *testing.T) {
		create(t, in("sales", batchJob("more", 1, "1")))
		awaitReason(t, "more", "NotGuaranteed", "queue sales has what it is guaranteed: cpu holds 6 of 6, asks for 1")
	})
	t.Run("the pods that left do not take back", func(t *testing.T) {
		pods, err := allPods(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if a, b := staying(pods, "urgent"), staying(pods, "long"); a != 6 || b != 10 || len(leaving(pods)) > 0 {
			t.Errorf("%d and %d pods run, %d leave", a, b, len(leaving(pods)))
		}
	})
	t.Run("the events name the rule and the amounts", func(t *testing.T) {
		apitest.Eventually(t, func(ctx context.Context) error {
			text, err := system.Kubectl(ctx, "get", "events", "--output=jsonpath={.items[*].message}")
			if want := "G4"; err == nil && (!strings.Contains(text, want) || !strings.Contains(text, "queue sales, which holds cpu 0 of the 6 it is guaranteed")) {
				err = fmt.Errorf("no event says so: %s", text)
			}
			return err
		})
	})
	noNodeIsOverCommitted(t)
	nothingWasForbidden(t)
}
