package controllers_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func newLonePod(namespace, name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: podSpec()}
	pod.Spec.SchedulerName = "volcano"
	return pod
}

// awaitGroups waits until the namespace holds so many PodGroups and every pod in it names one of them.
func awaitGroups(t *testing.T, namespace string, groups, pods int) []scheduling.PodGroup {
	t.Helper()
	list := &scheduling.PodGroupList{}
	eventually(t, func(ctx context.Context) error {
		if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		names := map[string]bool{}
		for _, group := range list.Items {
			names[group.Name] = true
		}
		present, err := podsIn(ctx, namespace)
		if err != nil {
			return err
		}
		for _, pod := range present {
			if named := pod.Annotations[scheduling.KubeGroupNameAnnotationKey]; !names[named] {
				return fmt.Errorf("pod %s names PodGroup %q, there are %v", pod.Name, named, names)
			}
		}
		if len(names) != groups || len(present) != pods {
			return fmt.Errorf("%d PodGroups and %d pods, want %d and %d", len(names), len(present), groups, pods)
		}
		return nil
	})
	return list.Items
}

func TestALonePodGetsAPodGroupAndTakesItAlong(t *testing.T) {
	namespace := namespaceFor(t, "lone")
	change(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, func(namespace *corev1.Namespace) {
		namespace.Annotations = map[string]string{scheduling.QueueNameAnnotationKey: "research"}
	})
	pod := newLonePod(namespace, "one")
	pod.Annotations = map[string]string{scheduling.PreemptableKey: "true"}
	create(t, pod)
	group := awaitGroups(t, namespace, 1, 1)[0]
	if group.Name != "podgroup-"+string(pod.UID) || group.Spec.MinMember != 1 || group.Spec.Queue != "research" ||
		group.Spec.MinResources.Cpu().Value() != 1 || group.Annotations[scheduling.PreemptableKey] != "true" {
		t.Errorf("the PodGroup is %s, %+v", group.Name, group)
	}
	if err := api.Delete(testContext(t), pod); err != nil {
		t.Fatal(err)
	}
	awaitGroups(t, namespace, 0, 0)
}

func TestPodsOfADeploymentShareAPodGroup(t *testing.T) {
	namespace := namespaceFor(t, "deployment")
	labels := map[string]string{"app": "web"}
	replicas := int32(4)
	spec := podSpec()
	spec.SchedulerName, spec.RestartPolicy = "volcano", corev1.RestartPolicyAlways
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Annotations: map[string]string{
			scheduling.GroupMinMemberAnnotationKey: "3",
		}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
	create(t, deployment)
	group := awaitGroups(t, namespace, 1, 4)[0]
	owner := metav1.GetControllerOf(&group)
	if group.Spec.MinMember != 3 || group.Spec.Queue != "default" || owner == nil || owner.Kind != "ReplicaSet" {
		t.Errorf("the PodGroup is %+v owned by %+v", group.Spec, owner)
	}

	// A PodGroup that vanishes while its pods live comes back.
	if err := api.Delete(testContext(t), &group); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		again := &scheduling.PodGroup{}
		err := api.Get(ctx, client.ObjectKeyFromObject(&group), again)
		if err == nil && again.UID == group.UID {
			err = fmt.Errorf("the old PodGroup is still there")
		}
		return err
	})

	// Scaled to nothing, the ReplicaSet stays and its PodGroup goes.
	change(t, deployment, func(deployment *appsv1.Deployment) { *deployment.Spec.Replicas = 0 })
	awaitGroups(t, namespace, 0, 0)
}

func TestAnAnnotationThatCannotBeReadIsToldOnThePod(t *testing.T) {
	namespace := namespaceFor(t, "annotation")
	pod := newLonePod(namespace, "one")
	pod.Annotations = map[string]string{scheduling.GroupMinMemberAnnotationKey: "many"}
	create(t, pod)
	awaitEvent(t, pod, "InvalidAnnotation", `scheduling.volcano.sh/group-min-member: "many"`)
	awaitGroups(t, namespace, 1, 1)
}

func TestPodsOfOthersAreLeftAlone(t *testing.T) {
	namespace := namespaceFor(t, "others")
	foreign := newLonePod(namespace, "foreign")
	foreign.Spec.SchedulerName = "default-scheduler"
	create(t, foreign)
	placed := newLonePod(namespace, "placed")
	placed.Annotations = map[string]string{scheduling.KubeGroupNameAnnotationKey: "mine"}
	create(t, placed)
	// When this later one has its PodGroup, the earlier ones have been looked at.
	create(t, newLonePod(namespace, "witness"))
	eventually(t, func(ctx context.Context) error {
		pods, err := podsIn(ctx, namespace)
		if err == nil && pods["witness"].Annotations[scheduling.KubeGroupNameAnnotationKey] == "" {
			err = fmt.Errorf("no PodGroup yet")
		}
		return err
	})
	pods, err := podsIn(testContext(t), namespace)
	if err != nil {
		t.Fatal(err)
	}
	if got, found := pods["foreign"].Annotations[scheduling.KubeGroupNameAnnotationKey]; found {
		t.Errorf("the other scheduler's pod was put into %q", got)
	}
	if got := pods["placed"].Annotations[scheduling.KubeGroupNameAnnotationKey]; got != "mine" {
		t.Errorf("the pod was moved from mine to %q", got)
	}
	for _, name := range []string{"foreign", "placed"} {
		key := client.ObjectKey{Namespace: namespace, Name: "podgroup-" + string(pods[name].UID)}
		if err := api.Get(testContext(t), key, &scheduling.PodGroup{}); !apierrors.IsNotFound(err) {
			t.Errorf("a PodGroup was made for %s (%v)", name, err)
		}
	}
}
