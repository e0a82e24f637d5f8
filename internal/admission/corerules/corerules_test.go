package corerules_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/internal/admission/corerules"
)

func template(edit func(*corev1.PodSpec)) *corev1.PodTemplateSpec {
	made := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}}}
	edit(&made.Spec)
	return made
}

// said is what is wrong, "" if nothing is.
func said(problems field.ErrorList) string {
	if len(problems) == 0 {
		return ""
	}
	return problems.ToAggregate().Error()
}

func TestAPodTemplateIsJudgedAsTheAPIServerWouldJudgeThePod(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*corev1.PodSpec)
		want string // part of what is said, "" if nothing is to be
	}{
		"what is left open has its default": {func(*corev1.PodSpec) {}, ""},
		"no container":                      {func(s *corev1.PodSpec) { s.Containers = nil }, "task.template.spec.containers: Required value"},
		"a name that is none":               {func(s *corev1.PodSpec) { s.Containers[0].Name = "Main" }, `task.template.spec.containers[0].name: Invalid value: "Main"`},
		"a policy that there is not":        {func(s *corev1.PodSpec) { s.RestartPolicy = "Sometimes" }, "task.template.spec.restartPolicy: Unsupported value"},
		"more requested than allowed": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("2")}
			s.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
		}, "must be less than or equal to cpu limit"},
		"a volume that nobody has declared": {func(s *corev1.PodSpec) {
			s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		}, `task.template.spec.containers[0].volumeMounts[0].name: Not found: "data"`},
		"a field of a feature that may be off": {func(s *corev1.PodSpec) { s.HostnameOverride = ptr.To("elsewhere") }, ""},
		"a privileged container": {func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		}, ""},
		"a privileged container before the others": {func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "tune", Image: "busybox", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)}}}
		}, ""},
		"a container in the host of a Windows node": {func(s *corev1.PodSpec) {
			s.HostNetwork = true
			s.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: ptr.To(true)}}
		}, ""},
		"all of the host": {func(s *corev1.PodSpec) {
			s.HostNetwork, s.HostPID, s.HostIPC = true, true, true
			s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
			s.Volumes = []corev1.Volume{{Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		}, ""},
		"a user namespace on the network of the host": {func(s *corev1.PodSpec) { s.HostNetwork, s.HostUsers = true, ptr.To(false) }, ""},
		"resources of the pod as a whole": {func(s *corev1.PodSpec) {
			s.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}}
		}, ""},
		"a sidecar": {func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "proxy", Image: "busybox", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
		}, ""},
		"unconfined proc": {func(s *corev1.PodSpec) {
			s.HostUsers = ptr.To(false)
			s.Containers[0].SecurityContext = &corev1.SecurityContext{ProcMount: ptr.To(corev1.UnmaskedProcMount)}
		}, ""},
		"rules for restarts": {func(s *corev1.PodSpec) {
			s.RestartPolicy = corev1.RestartPolicyNever
			s.Containers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever)
			s.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: "RestartAllContainers",
				ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: "In", Values: []int32{3}}}}
		}, ""},
		"a toleration that compares": {func(s *corev1.PodSpec) {
			s.Tolerations = []corev1.Toleration{{Key: "load", Operator: "Lt", Value: "5", Effect: corev1.TaintEffectNoSchedule}}
		}, ""},
		"a volume of an image": {func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "busybox"}}}}
			s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		}, ""},
		"a pause of nothing": {func(s *corev1.PodSpec) {
			s.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{}}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			judged := template(test.edit)
			before := judged.DeepCopy()
			got := said(corerules.PodTemplate(judged, field.NewPath("task", "template")))
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("it says %q, want %q", got, test.want)
			}
			if diff := cmp.Diff(before, judged); diff != "" {
				t.Errorf("what is judged has changed:\n%s", diff)
			}
		})
	}
}

func TestOfAResourceThereIsNoLessThanNothingAndNoPartOfAWhole(t *testing.T) {
	for _, test := range []struct {
		name     corev1.ResourceName
		quantity string
		want     string
	}{
		{"cpu", "0", ""},
		{"cpu", "100m", ""},
		{"cpu", "-1", "queue.cpu: Invalid value"},
		{"memory", "1Gi", ""},
		{"pods", "1500m", "must be an integer"},
		{"example.com/gpu", "2", ""},
		{"example.com/gpu", "500m", "must be an integer"},
	} {
		got := said(corerules.Quantity(test.name, resource.MustParse(test.quantity), field.NewPath("queue", string(test.name))))
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s of %s: it says %q, want %q", test.quantity, test.name, got, test.want)
		}
	}
}
