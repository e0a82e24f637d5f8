package controllers_test

import (
	"context"
	"fmt"
	"testing"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
)

// sparkGroups are the task groups of a driver and three executors.
const sparkGroups = `[{"name": "spark-driver", "minMember": 1, "minResource": {"cpu": "1"}},
	{"name": "spark-executor", "minMember": 3, "minResource": {"cpu": "1", "memory": "2Gi"}, "nodeSelector": {"disk": "ssd"}}]`

// sparkPod is a pod as Spark writes it: a driver, or an executor that the driver owns.
func sparkPod(namespace, name, role string, owner *corev1.Pod, annotations ...string) *corev1.Pod {
	pod := newLonePod(namespace, name)
	pod.Labels = map[string]string{"spark-app-selector": "spark-0123456789ABCDEF", "spark-role": role, "queue": "root.spark.Eu"}
	pod.Annotations = map[string]string{yunikorn.TaskGroupNameKey: "spark-" + role}
	for i := 0; i < len(annotations); i += 2 {
		pod.Annotations[annotations[i]] = annotations[i+1]
	}
	if owner != nil {
		yes := true
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: owner.Name, UID: owner.UID, Controller: &yes, BlockOwnerDeletion: &yes}}
	}
	return pod
}

// sparkQueue makes the Queue of the applications.
func sparkQueue(t *testing.T) {
	t.Helper()
	queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: "spark-europe", Annotations: map[string]string{scheduling.QueuePathKey: "root.spark.eu"}}}
	create(t, queue)
	t.Cleanup(func() { _ = api.Delete(context.Background(), queue) })
}

// awaitRole waits until a pod is in a PodGroup in some role, "" for none.
func awaitRole(t *testing.T, pod *corev1.Pod, group, role string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		err := api.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		if got := pod.Annotations; err == nil && (got[scheduling.KubeGroupNameAnnotationKey] != group || got[batch.TaskSpecKey] != role) {
			err = fmt.Errorf("the annotations of %s are %v", pod.Name, got)
		}
		return err
	})
}

func TestASparkApplicationIsOneGang(t *testing.T) {
	sparkQueue(t)
	namespace := namespaceFor(t, "spark")
	driver := sparkPod(namespace, "pi-driver", "driver", nil, yunikorn.TaskGroupsKey, sparkGroups,
		yunikorn.GangParametersKey, "placeholderTimeoutInSeconds=60 gangSchedulingStyle=Hard")
	create(t, driver)
	group := awaitGroups(t, namespace, 1, 1)[0]
	needed := group.Spec.MinResources
	if group.Spec.MinMember != 4 || group.Spec.MinTaskMember["spark-driver"] != 1 || group.Spec.MinTaskMember["spark-executor"] != 3 ||
		group.Spec.Queue != "spark-europe" || needed.Cpu().Value() != 4 || needed.Memory().Value() != 6<<30 || needed.Pods().Value() != 4 {
		t.Errorf("the PodGroup is %+v", group.Spec)
	}
	if len(group.OwnerReferences) > 0 || group.Annotations[yunikorn.TaskGroupsKey] != sparkGroups ||
		group.Annotations[yunikorn.GangParametersKey] != driver.Annotations[yunikorn.GangParametersKey] {
		t.Errorf("the PodGroup is %+v", group.ObjectMeta)
	}
	awaitRole(t, driver, group.Name, "spark-driver")
	setPhase(t, &group, scheduling.PodGroupRunning) // as the scheduler does
	finish(t, corev1.PodRunning, driver)

	var executors []*corev1.Pod
	for i := range 4 {
		executor := sparkPod(namespace, fmt.Sprintf("pi-exec-%d", i+1), "executor", driver)
		create(t, executor)
		executors = append(executors, executor)
	}
	for _, executor := range executors {
		awaitRole(t, executor, group.Name, "spark-executor")
	}
	if now := awaitGroups(t, namespace, 1, 5)[0]; now.UID != group.UID || now.Generation != group.Generation || now.Status.Phase != scheduling.PodGroupRunning {
		t.Errorf("executors change the PodGroup: %+v", now)
	}

	finish(t, corev1.PodSucceeded, append(executors, driver)...)
	awaitGroups(t, namespace, 1, 5)
	for _, pod := range append(executors, driver) {
		if err := api.Delete(apitest.Context(t), pod); err != nil {
			t.Fatal(err)
		}
	}
	awaitGroups(t, namespace, 0, 0)
}

func TestAfterAllPodsHaveEndedAnApplicationBeginsAgain(t *testing.T) {
	sparkQueue(t)
	namespace := namespaceFor(t, "spark-again")
	driver := sparkPod(namespace, "driver", "driver", nil, yunikorn.TaskGroupsKey, sparkGroups, yunikorn.GangParametersKey, "gangSchedulingStyle=Hard")
	create(t, driver)
	before := awaitGroups(t, namespace, 1, 1)[0]
	finish(t, corev1.PodFailed, driver)
	again := sparkPod(namespace, "again", "driver", nil, yunikorn.TaskGroupsKey,
		`[{"name": "spark-driver", "minMember": 1, "minResource": {"cpu": "1"}}]`)
	create(t, again)
	awaitRole(t, again, before.Name, "spark-driver")
	group := awaitGroups(t, namespace, 1, 2)[0]
	if _, has := group.Annotations[yunikorn.GangParametersKey]; has || group.UID != before.UID || group.Spec.MinMember != 1 ||
		group.Annotations[yunikorn.TaskGroupsKey] != again.Annotations[yunikorn.TaskGroupsKey] {
		t.Errorf("the PodGroup is %+v", group)
	}
}

func TestBadTaskGroupsAreToldAndStopNoPod(t *testing.T) {
	sparkQueue(t)
	for _, test := range []struct {
		name, key, value, event string
		minMember               int32
	}{
		{"no list", yunikorn.TaskGroupsKey, "executor", "not a JSON list of task groups", 1},
		{"no number", yunikorn.TaskGroupsKey, `[{"name": "spark-driver", "minMember": 0, "minResource": {"cpu": "1"}}]`, "[0].minMember is 0", 1},
		{"another group", yunikorn.TaskGroupsKey, `[{"name": "workers", "minMember": 2, "minResource": {"cpu": "1"}}]`, `has no task group "spark-driver"`, 2},
		{"no time", yunikorn.GangParametersKey, "placeholderTimeoutInSeconds=soon", `placeholderTimeoutInSeconds is "soon"`, 4},
		{"no style", yunikorn.GangParametersKey, "gangSchedulingStyle=Stiff", `gangSchedulingStyle is "Stiff"`, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			namespace := namespaceFor(t, "spark-bad")
			driver := sparkPod(namespace, "driver", "driver", nil, yunikorn.TaskGroupsKey, sparkGroups)
			driver.Annotations[test.key] = test.value
			create(t, driver)
			group := awaitGroups(t, namespace, 1, 1)[0]
			if group.Spec.MinMember != test.minMember || group.Spec.Queue != "spark-europe" {
				t.Errorf("the PodGroup is %+v", group.Spec)
			}
			awaitEvent(t, driver, "InvalidAnnotation", test.event)
		})
	}
	t.Run("a queue that cannot be", func(t *testing.T) {
		namespace := namespaceFor(t, "spark-bad")
		driver := sparkPod(namespace, "driver", "driver", nil)
		delete(driver.Labels, "queue")
		driver.Annotations[yunikorn.QueueKey] = "root..__"
		create(t, driver)
		if group := awaitGroups(t, namespace, 1, 1)[0]; group.Spec.Queue != "default" {
			t.Errorf("the PodGroup is %+v", group.Spec)
		}
		awaitEvent(t, driver, "InvalidAnnotation", "is no path of a queue")
	})
	t.Run("two queues", func(t *testing.T) {
		namespace := namespaceFor(t, "spark-bad")
		driver := sparkPod(namespace, "driver", "driver", nil)
		create(t, driver)
		group := awaitGroups(t, namespace, 1, 1)[0]
		executor := sparkPod(namespace, "executor", "executor", driver)
		executor.Labels["queue"] = "root.elsewhere"
		create(t, executor)
		awaitRole(t, executor, group.Name, "spark-executor")
		awaitEvent(t, executor, "ApplicationQueue", "names queue elsewhere; it goes to queue spark-europe")
	})
}
