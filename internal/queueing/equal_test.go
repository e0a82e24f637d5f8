package queueing

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// written is a podset as a user writes it, and defaulted the same one as the API server stores it in a Job.
func written() v1beta2.PodSet {
	return v1beta2.PodSet{Name: "main", Count: 2, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "i", Ports: []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1000m")}}}},
		NodeSelector: map[string]string{"zone": "a"},
		Tolerations:  []corev1.Toleration{{Key: "b"}, {Key: "a", Operator: corev1.TolerationOpExists}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}}},
	}}}
}

func defaulted() v1beta2.PodSet {
	set := written()
	spec := &set.Template.Spec
	spec.SchedulerName, spec.DNSPolicy, spec.RestartPolicy = "volcano", corev1.DNSClusterFirst, corev1.RestartPolicyNever
	c := &spec.Containers[0]
	c.ImagePullPolicy, c.TerminationMessagePath, c.Ports[0].Protocol = corev1.PullAlways, "/dev/termination-log", corev1.ProtocolTCP
	c.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
	c.Env = []corev1.EnvVar{{Name: "A", Value: "1"}}
	spec.Volumes[0].Ephemeral.VolumeClaimTemplate.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeFilesystem)
	set.Template.Labels = map[string]string{"job-name": "j"}
	spec.Tolerations = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}, {Key: "b", Operator: corev1.TolerationOpEqual}}
	return set
}

func TestPodSetsAreEqualButForWhatTheAPIServerAdds(t *testing.T) {
	if !ArePodSetsEqual([]v1beta2.PodSet{written()}, []v1beta2.PodSet{defaulted()}) {
		t.Error("the defaults of the API server make podsets differ")
	}
	unnamed := written()
	unnamed.Name = ""
	if !ArePodSetsEqual([]v1beta2.PodSet{unnamed}, []v1beta2.PodSet{written()}) {
		t.Error("a podset without a name is not main")
	}
}

func TestPodSetsDifferInWhatCountsForAdmission(t *testing.T) {
	for name, edit := range map[string]func(*v1beta2.PodSet){
		"count":       func(s *v1beta2.PodSet) { s.Count++ },
		"least count": func(s *v1beta2.PodSet) { s.MinCount = ptr.To(int32(1)) },
		"name":        func(s *v1beta2.PodSet) { s.Name = "other" },
		"limits": func(s *v1beta2.PodSet) {
			s.Template.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2")
		},
		"requests": func(s *v1beta2.PodSet) {
			s.Template.Spec.Containers[0].Resources.Requests["memory"] = resource.MustParse("1")
		},
		"port":         func(s *v1beta2.PodSet) { s.Template.Spec.Containers[0].Ports[0].HostPort = 81 },
		"host network": func(s *v1beta2.PodSet) { s.Template.Spec.Containers[0].Ports[0].HostPort = 0 },
		"selector":     func(s *v1beta2.PodSet) { s.Template.Spec.NodeSelector["zone"] = "b" },
		"tolerations":  func(s *v1beta2.PodSet) { s.Template.Spec.Tolerations = s.Template.Spec.Tolerations[:1] },
		"affinity": func(s *v1beta2.PodSet) {
			s.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
		},
		"runtime class": func(s *v1beta2.PodSet) { s.Template.Spec.RuntimeClassName = ptr.To("kata") },
		"overhead": func(s *v1beta2.PodSet) {
			s.Template.Spec.Overhead = corev1.ResourceList{"cpu": resource.MustParse("1")}
		},
		"claims": func(s *v1beta2.PodSet) { s.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} },
		"pod's resources": func(s *v1beta2.PodSet) {
			s.Template.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("9")}}
		},
		"init containers": func(s *v1beta2.PodSet) { s.Template.Spec.InitContainers = []corev1.Container{{Name: "i"}} },
		"restart policy": func(s *v1beta2.PodSet) {
			s.Template.Spec.Containers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		},
		"volume claim": func(s *v1beta2.PodSet) {
			s.Template.Spec.Volumes[0] = corev1.Volume{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}
		},
		"storage class": func(s *v1beta2.PodSet) {
			s.Template.Spec.Volumes[0].Ephemeral.VolumeClaimTemplate.Spec.StorageClassName = ptr.To("fast")
		},
		"number of volumes": func(s *v1beta2.PodSet) { s.Template.Spec.Volumes = nil },
	} {
		t.Run(name, func(t *testing.T) {
			other := defaulted()
			edit(&other)
			if ArePodSetsEqual([]v1beta2.PodSet{written()}, []v1beta2.PodSet{other}) {
				t.Error("they count as equal")
			}
		})
	}
}
