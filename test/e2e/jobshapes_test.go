package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/apitest"
	"hekla.sh/hekla/test/fixture"
)

// jobShape is a Job of pods with one CPU each that run for a second, in a queue of its own. The pods of one with
// changes run until the test ends them, so that no change comes after the Job's end, however slow the machine is.
type jobShape struct {
	name  string
	spec  string // a YAML mapping on one line, in addition to the template
	quota int
	end   batchv1.JobConditionType
	// code is the code with which its pods exit.
	code int
	// whenEnded is how many pods have to have ended before change happens; the change is a merge patch of the Job.
	whenEnded int32
	change    []string
}

// runFor ends a pod so long after it runs.
const runFor = "hekla.sh/run-for"

// jobShapes are all that a Job of batch/v1 can be.
var jobShapes = []jobShape{
	{name: "plain", spec: "{parallelism: 3, completions: 3}", quota: 3, end: batchv1.JobComplete},
	{name: "waves", spec: "{parallelism: 2, completions: 5}", quota: 2, end: batchv1.JobComplete},
	{name: "work-queue", spec: "{parallelism: 3}", quota: 3, end: batchv1.JobComplete},
	{name: "indexed", spec: "{parallelism: 2, completions: 4, completionMode: Indexed}", quota: 2, end: batchv1.JobComplete},
	{name: "backoff-per-index", spec: "{parallelism: 2, completions: 4, completionMode: Indexed, backoffLimitPerIndex: 0}", quota: 2, code: 1, end: batchv1.JobFailed},
	{name: "success-policy", spec: "{parallelism: 1, completions: 4, completionMode: Indexed, successPolicy: {rules: [{succeededIndexes: '0-1'}]}}", quota: 1, end: batchv1.JobComplete},
	{name: "replaced-when-failed", spec: "{parallelism: 2, completions: 4, podReplacementPolicy: Failed}", quota: 2, end: batchv1.JobComplete},
	{name: "elastic", spec: "{parallelism: 3, completions: 3, completionMode: Indexed}", quota: 3, end: batchv1.JobComplete,
		change: []string{`{"spec": {"parallelism": 2, "completions": 2}}`, `{"spec": {"parallelism": 3, "completions": 3}}`}},
	{name: "slower-and-faster", spec: "{parallelism: 3, completions: 7}", quota: 3, end: batchv1.JobComplete, whenEnded: 1,
		change: []string{`{"spec": {"parallelism": 1}}`, `{"spec": {"parallelism": 3}}`}},
	{name: "suspended", spec: "{parallelism: 2, completions: 5}", quota: 2, end: batchv1.JobComplete, whenEnded: 1,
		change: []string{`{"spec": {"suspend": true}}`}},
}

// objects are the queues of the Job, and the Job.
func (s *jobShape) objects(t *testing.T) string {
	spec := map[string]any{}
	if err := yaml.Unmarshal([]byte(s.spec), &spec); err != nil {
		t.Fatal(err)
	}
	spec["suspend"] = true
	annotations := map[string]string{}
	if len(s.change) == 0 {
		annotations[runFor] = "1s"
	}
	if s.code != 0 {
		annotations["hekla.sh/exit-code"] = fmt.Sprint(s.code)
	}
	spec["template"] = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: queuedTemplate()}
	text, err := yaml.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	queue := strings.NewReplacer("name: all", "name: "+s.name, "clusterQueue: all", "clusterQueue: "+s.name, "nominalQuota: 4", fmt.Sprint("nominalQuota: ", s.quota)).Replace(oneQueue)
	return fmt.Sprintf("%sapiVersion: batch/v1\nkind: Job\nmetadata: {name: %s, namespace: default, labels: {kueue.x-k8s.io/queue-name: %s}}\nspec:\n  %s\n---\n",
		queue, s.name, s.name, strings.ReplaceAll(string(text), "\n", "\n  "))
}

func queuedTemplate() corev1.PodSpec {
	grace := int64(1)
	return corev1.PodSpec{SchedulerName: "volcano", RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
		Containers: []corev1.Container{{Name: "main", Image: "busybox", Resources: corev1.ResourceRequirements{Requests: fixture.List("cpu=1")}}}}
}

// places are how many places the Workload of a Job holds, and the pods that stand on nodes. A pod is seen after the
// places, so there are never more of it.
func places(ctx context.Context, job string) (w *v1beta2.Workload, left int32, placed []*corev1.Pod, err error) {
	if w, err = workloadOf(ctx, job); err != nil {
		return nil, 0, nil, err
	}
	if w.Status.Admission != nil {
		_, left = settings.PodsLeft(w, &w.Status.Admission.PodSetAssignments[0])
	}
	pods, err := core.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "job-name=" + job})
	if err != nil {
		return nil, 0, nil, err
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Spec.NodeName != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			placed = append(placed, p)
		}
	}
	return w, left, placed, nil
}

// endPods has n of the pods end.
func endPods(ctx context.Context, pods []*corev1.Pod, n int) error {
	for _, p := range pods[:min(n, len(pods))] {
		_, err := core.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType,
			[]byte(`{"metadata": {"annotations": {"`+runFor+`": "1s"}}}`), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func TestJobsOfAllShapesRunToTheirEnd(t *testing.T) {
	haveQuotas(t)
	haveNodes(t, 3)
	var text strings.Builder
	for i := range jobShapes {
		text.WriteString(jobShapes[i].objects(t))
	}
	applyText(t, text.String())
	changes, ended, beyond := map[string]int{}, map[string]bool{}, map[string]int{}
	isAt := map[string]time.Time{}
	apitest.Eventually(t, func(ctx context.Context) error {
		for i := range jobShapes {
			s := &jobShapes[i]
			w, left, placed, err := places(ctx, s.name)
			if err != nil {
				return err
			}
			if n := int32(len(placed)); n > left || n > int32(s.quota) {
				beyond[s.name]++ // what is read one after the other may be of two times
			} else {
				beyond[s.name] = 0
			}
			if beyond[s.name] > 3 {
				t.Errorf("Job %s has %d pods on nodes, and its Workload %d places", s.name, len(placed), left)
			}
			job, err := core.BatchV1().Jobs(metav1.NamespaceDefault).Get(ctx, s.name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			switch at := changes[s.name]; {
			case len(s.change) == 0:
			case at == len(s.change):
				if err := endPods(ctx, placed, len(placed)); err != nil {
					return err
				}
			case job.Status.Succeeded < s.whenEnded:
				if err := endPods(ctx, placed, int(s.whenEnded)); err != nil {
					return err
				}
			case job.Status.Active > 0 && time.Since(isAt[s.name]) > 700*time.Millisecond:
				if _, err := core.BatchV1().Jobs(metav1.NamespaceDefault).Patch(ctx, s.name, types.MergePatchType, []byte(s.change[at]), metav1.PatchOptions{}); err != nil {
					return err
				}
				changes[s.name], isAt[s.name] = at+1, time.Now()
			}
			for _, c := range job.Status.Conditions {
				ended[s.name] = ended[s.name] || c.Type == s.end && c.Status == corev1.ConditionTrue && meta.IsStatusConditionTrue(w.Status.Conditions, v1beta2.Finished)
			}
		}
		var waits []string
		for i := range jobShapes {
			if name := jobShapes[i].name; !ended[name] {
				waits = append(waits, name)
			}
		}
		if len(waits) > 0 {
			return fmt.Errorf("of these Jobs the end has not come: %s", strings.Join(waits, ", "))
		}
		return nil
	})
	for i := range jobShapes {
		s := &jobShapes[i]
		if changes[s.name] < len(s.change) {
			t.Errorf("Job %s has ended after %d of %d changes", s.name, changes[s.name], len(s.change))
		}
		apitest.Eventually(t, func(ctx context.Context) error {
			q, err := batch.KueueV1beta2().ClusterQueues().Get(ctx, s.name, metav1.GetOptions{})
			if err == nil && (q.Status.AdmittedWorkloads != 0 || q.Status.ReservingWorkloads != 0) {
				err = fmt.Errorf("ClusterQueue %s says %+v", s.name, q.Status)
			}
			return err
		})
	}
	nothingWasForbidden(t)
}

// A template that says only what the pod is limited to counts with that: the API server has the pod request it.
func TestLimitsOfThePodCount(t *testing.T) {
	haveQuotas(t)
	haveNodes(t, 2)
	limited := func(name string, pods int) string {
		return strings.Replace(queuedJob(name, "all", pods, ""), "resources: {requests: {cpu: 1}}}]", "}]\n      resources: {limits: {cpu: 2}}", 1)
	}
	applyText(t, oneQueue+limited("two", 2))
	w := awaitCondition(t, "two", v1beta2.Admitted, metav1.ConditionTrue, "")
	if used := w.Status.Admission.PodSetAssignments[0].ResourceUsage["cpu"]; used.String() != "4" {
		t.Errorf("two pods use %s CPUs", used.String())
	}
	awaitPods(t, "two", 2)
	applyText(t, limited("one", 1))
	awaitCondition(t, "one", v1beta2.QuotaReserved, metav1.ConditionFalse, "insufficient unused quota for cpu in flavor any, 2 more needed")
	applyText(t, limited("three", 3))
	awaitCondition(t, "three", v1beta2.QuotaReserved, metav1.ConditionFalse, "insufficient quota for cpu in flavor any")
	nothingWasForbidden(t)
}
