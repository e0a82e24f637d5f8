package builder

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

var priorities = map[string]int32{"high": 100, "low": 1}

func priority(class string) int32 { return priorities[class] }

func withClass(task batch.TaskSpec, class string) batch.TaskSpec {
	task.Template.Spec.PriorityClassName = class
	return task
}

func TestThePodGroupSaysWhatTheJobNeeds(t *testing.T) {
	job := fixture.BatchJob(fixture.BatchTask("ps", 1, "500m"), fixture.WithMinAvailable(fixture.BatchTask("worker", 4, "2"), 3))
	job.Spec.Queue, job.Spec.PriorityClassName = "research", "high"
	job.Labels = map[string]string{"team": "a"}
	job.Annotations = map[string]string{
		"volcano.sh/sla-waiting-time": "1h", corev1.LastAppliedConfigAnnotation: "{}",
	}
	group := PodGroup(job, priority, FromTemplate)
	want := scheduling.PodGroupSpec{
		MinMember:         4,
		MinTaskMember:     map[string]int32{"ps": 1, "worker": 3},
		Queue:             "research",
		PriorityClassName: "high",
		MinResources: &corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("6500m"), corev1.ResourceRequestsCPU: resource.MustParse("6500m"),
			corev1.ResourcePods: resource.MustParse("4"), "count/pods": resource.MustParse("4"),
		},
	}
	if !apiequality.Semantic.DeepEqual(want, group.Spec) {
		t.Errorf("spec (-want +got):\n%s", cmp.Diff(want, group.Spec))
	}
	if group.Namespace != "lab" || group.Name != "sim-1f2e" || !metav1.IsControlledBy(group, job) {
		t.Errorf("metadata is %+v", group.ObjectMeta)
	}
	if diff := cmp.Diff(map[string]string{"volcano.sh/sla-waiting-time": "1h", scheduling.SchedulerNameKey: "volcano"}, group.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if group.Labels["team"] != "a" {
		t.Errorf("labels are %v", group.Labels)
	}
}

func TestThePodGroupBelongsToTheSchedulerOfThePodsThatWillBe(t *testing.T) {
	by := func(name string, task batch.TaskSpec) batch.TaskSpec {
		task.Template.Spec.SchedulerName = name
		return task
	}
	for name, test := range map[string]struct {
		tasks []batch.TaskSpec
		want  string
	}{
		"templates name none":             {[]batch.TaskSpec{fixture.BatchTask("a", 1, "1"), fixture.BatchTask("b", 1, "1")}, "volcano"},
		"all templates name one":          {[]batch.TaskSpec{by("second", fixture.BatchTask("a", 1, "1")), by("second", fixture.BatchTask("b", 1, "1"))}, "second"},
		"one template names another":      {[]batch.TaskSpec{by("second", fixture.BatchTask("a", 1, "1")), fixture.BatchTask("b", 1, "1")}, "volcano"},
		"a later template names another":  {[]batch.TaskSpec{fixture.BatchTask("a", 1, "1"), by("second", fixture.BatchTask("b", 1, "1"))}, "volcano"},
		"each template names another one": {[]batch.TaskSpec{by("second", fixture.BatchTask("a", 1, "1")), by("third", fixture.BatchTask("b", 1, "1"))}, "volcano"},
	} {
		t.Run(name, func(t *testing.T) {
			job := fixture.BatchJob(test.tasks...)
			job.Annotations = map[string]string{scheduling.SchedulerNameKey: "what a user wrote on the Job"}
			if got := PodGroup(job, priority, FromTemplate).Annotations[scheduling.SchedulerNameKey]; got != test.want {
				t.Errorf("it belongs to %q, want %q", got, test.want)
			}
		})
	}
}

func TestMinResourcesAreThoseOfTheFirstPodsInPriorityOrder(t *testing.T) {
	for _, test := range []struct {
		name         string
		tasks        []batch.TaskSpec
		minAvailable int32
		cpu          string
	}{
		{"all pods", []batch.TaskSpec{fixture.BatchTask("a", 2, "1"), fixture.BatchTask("b", 3, "2")}, 0, "8"},
		{"the order of the spec among equals", []batch.TaskSpec{fixture.BatchTask("a", 2, "1"), fixture.BatchTask("b", 3, "2")}, 3, "4"},
		{"the higher priority first", []batch.TaskSpec{fixture.BatchTask("a", 2, "1"), withClass(fixture.BatchTask("b", 3, "2"), "high")}, 3, "6"},
		{"each task's minimum before more of the highest",
			[]batch.TaskSpec{fixture.WithMinAvailable(fixture.BatchTask("a", 2, "1"), 1), fixture.WithMinAvailable(withClass(fixture.BatchTask("b", 4, "2"), "high"), 1)}, 3, "5"},
		{"minimums that do not fit into minAvailable do not count",
			[]batch.TaskSpec{fixture.WithMinAvailable(fixture.BatchTask("a", 2, "1"), 2), fixture.WithMinAvailable(withClass(fixture.BatchTask("b", 4, "2"), "high"), 2)}, 3, "6"},
		{"a class that is not known ranks with no class",
			[]batch.TaskSpec{withClass(fixture.BatchTask("a", 1, "1"), "gone"), withClass(fixture.BatchTask("b", 1, "2"), "low")}, 1, "2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			job := fixture.BatchJob(test.tasks...)
			if test.minAvailable > 0 {
				job.Spec.MinAvailable = test.minAvailable
			}
			got := minResources(job, priority, FromTemplate)[corev1.ResourceCPU]
			if got.Cmp(resource.MustParse(test.cpu)) != 0 {
				t.Errorf("cpu is %s, want %s", got.String(), test.cpu)
			}
		})
	}
}
