package edge

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// largePod has a bit of everything.
func largePod() *corev1.Pod {
	amount := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	always := corev1.ContainerRestartPolicyAlways
	container := corev1.Container{
		Name: "main", Image: "image", Command: []string{"run"}, Args: []string{"fast"},
		Env:           []corev1.EnvVar{{Name: "SECRET", Value: "1"}},
		Ports:         []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}},
		Resources:     corev1.ResourceRequirements{Requests: amount},
		VolumeMounts:  []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		RestartPolicy: &always,
	}
	status := corev1.ContainerStatus{Name: "main", ImageID: "sha", AllocatedResources: amount,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "scheduling.k8s.io/group-name": "g"},
			Labels:      map[string]string{"app": "a"},
		},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{container}, Containers: []corev1.Container{container},
			NodeName: "node", SchedulerName: "volcano", ServiceAccountName: "default", Overhead: amount,
			Volumes: []corev1.Volume{
				{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{status},
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
		},
	}
}

func TestWhatDecisionsReadOfAPodStays(t *testing.T) {
	before := largePod()
	after, err := slim(largePod())
	if err != nil {
		t.Fatal(err)
	}
	want := before.DeepCopy()
	want.ManagedFields = nil
	delete(want.Annotations, corev1.LastAppliedConfigAnnotation)
	for _, containers := range [][]corev1.Container{want.Spec.InitContainers, want.Spec.Containers} {
		c := &containers[0]
		c.Command, c.Args, c.Env, c.VolumeMounts = nil, nil, nil, nil
	}
	want.Spec.ServiceAccountName, want.Spec.Volumes = "", want.Spec.Volumes[1:]
	want.Status.PodIP = ""
	want.Status.ContainerStatuses[0].ImageID, want.Status.ContainerStatuses[0].State = "", corev1.ContainerState{}
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("slimmed (-want +got):\n%s", diff)
	}
	again, err := slim(after.(*corev1.Pod).DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, again); diff != "" {
		t.Errorf("slimmed twice (-once +twice):\n%s", diff)
	}
}

func TestANodeKeepsItsImages(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{
		Images: []corev1.ContainerImage{{Names: []string{"image"}}}, Addresses: []corev1.NodeAddress{{Address: "10.0.0.1"}},
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
	}}
	if _, err := slim(node); err != nil {
		t.Fatal(err)
	}
	if len(node.Status.Images) != 1 || node.Status.Addresses != nil || node.Status.Capacity == nil {
		t.Errorf("left is %+v", node.Status)
	}
}
