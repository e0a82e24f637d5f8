package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/apitest"
)

func TestAJobIsRunFromTheFlagsOfVcctl(t *testing.T) {
	n := namespace(t)
	mustSay(t, "vcctl job run -n "+n+" -N train -i trainer:1 -r 4 -m 3 -R cpu=2,memory=1Gi -L cpu=3 -S mine", "run job train successfully")
	var job batch.Job
	get(t, n, "train", &job)
	if job.Spec.MinAvailable != 3 || job.Spec.SchedulerName != "mine" || job.Spec.Queue != "default" || job.Spec.Tasks[0].Replicas != 4 {
		t.Errorf("the job is %+v", job.Spec)
	}
	pod := job.Spec.Tasks[0].Template
	if pod.Spec.RestartPolicy != corev1.RestartPolicyNever || pod.Labels["job.volcano.sh"] != "train" {
		t.Errorf("its pods are %+v", pod)
	}
	container := pod.Spec.Containers[0]
	want := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi")},
		Limits:   corev1.ResourceList{"cpu": resource.MustParse("3")},
	}
	if difference := cmp.Diff(want, container.Resources); container.Image != "trainer:1" || difference != "" {
		t.Errorf("its container has image %s, resources (-want +got)\n%s", container.Image, difference)
	}
}

func TestVsubTakesDefaultsFromTheEnvironmentAndSwapsTheLetters(t *testing.T) {
	n := namespace(t)
	t.Setenv("VOLCANO_DEFAULT_IMAGE", "house:1")
	t.Setenv("VOLCANO_SCHEDULER_NAME", "mine")
	t.Setenv("VOLCANO_DEFAULT_JOB_NAMESPACE", n)
	if got := run(t, `vsub -n first -c sh~-c~'sleep~1'`); got.err != nil || got.out != "run job first successfully\n" {
		t.Fatalf("%+v", got)
	}
	var job batch.Job
	get(t, n, "first", &job)
	container := job.Spec.Tasks[0].Template.Spec.Containers[0]
	if container.Image != "house:1" || job.Spec.SchedulerName != "mine" {
		t.Errorf("image %s, scheduler %s", container.Image, job.Spec.SchedulerName)
	}
	if difference := cmp.Diff([]string{"sh", "-c", "sleep 1"}, container.Command); difference != "" {
		t.Errorf("the command (-want +got)\n%s", difference)
	}
	mustSay(t, "vsub -N "+n+" -n second", "run job second successfully")
	get(t, n, "second", &job)
}

func TestAJobIsRunFromAFile(t *testing.T) {
	n, other := namespace(t), namespace(t)
	text := `apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: one}
spec: {tasks: [{replicas: 1, template: {spec: {containers: [{name: c, image: i}]}}}]}
---
# nothing here
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: two, namespace: ` + other + `}
spec: {tasks: [{replicas: 1, template: {spec: {containers: [{name: c, image: i}]}}}]}
`
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	mustFail(t, "hekla job run -n "+n+" -f "+path, "document 2", `"two" is of namespace `+other, n)
	text = strings.Replace(text, other, n, 1)
	if got := runWithInput(t, "hekla job run -n "+n+" -f -", text); got.err != nil || got.out != "run job one successfully\nrun job two successfully\n" {
		t.Errorf("%+v", got)
	}
	got := runWithInput(t, "vcctl job run -N three -r 2 -n "+n+" -f -", strings.Replace(strings.Split(text, "---")[0], "one", "three", 1))
	if got.err != nil || got.out != "run job three successfully\n" || got.errOut != "Warning: --replicas has no effect, the file says it all\n" {
		t.Errorf("%+v", got)
	}
	got = runWithInput(t, "vcctl job run --dry-run=server -o yaml -f -", strings.ReplaceAll(text, n, "default"))
	if got.err != nil || strings.Count(got.out, "\n---\n") != 1 || strings.Count(got.out, "\nkind: Job\n") != 2 {
		t.Errorf("two objects as YAML: %+v", got)
	}
	got = runWithInput(t, "vcctl job run -f -", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: k}\n")
	if got.err == nil || !strings.Contains(got.err.Error(), "a Job of batch/v1, and a Job of batch.volcano.sh/v1alpha1 is needed") {
		t.Errorf("%+v", got)
	}
	got = runWithInput(t, "hekla job run -n "+n+" -f -", strings.Replace(text, "replicas", "replicaz", 1))
	if got.err == nil || !strings.Contains(got.err.Error(), "replicaz") {
		t.Errorf("a field that nobody reads: %+v", got)
	}
}

func TestADryRunKeepsNothing(t *testing.T) {
	n := namespace(t)
	got := run(t, "hekla job run ghost -n "+n+" --dry-run=client -o yaml")
	if got.err != nil || !strings.Contains(got.out, "kind: Job\n") || !strings.Contains(got.out, "name: ghost\n") {
		t.Errorf("%+v", got)
	}
	mustSay(t, "hekla job run ghost -n "+n+" --dry-run=server", "run job ghost successfully (server dry run)")
	mustSay(t, "hekla job run ghost -n "+n+" --dry-run=server -o jsonpath={.spec.maxRetry}", "3")
	mustFail(t, "hekla job run ghost -n "+n+" --dry-run=server -q WrongName", "spec.queue", "correct it")
	mustFail(t, "hekla job run ghost -n "+n+" --dry-run=some", "none, client or server")
	var jobs batch.JobList
	if err := api.List(t.Context(), &jobs, client.InNamespace(n)); err != nil || len(jobs.Items) != 0 {
		t.Errorf("%v: %d jobs are there", err, len(jobs.Items))
	}
}

func TestWrongFlagsAreToldInSentences(t *testing.T) {
	mustFail(t, "vcctl job run", "needs a name")
	mustFail(t, "vcctl job run -N a b", "both name a job")
	mustFail(t, "hekla job run a -R cpu", `"cpu" is not of the form`)
	mustFail(t, "hekla job run a -L cpu=lots", `"lots" is not an amount`)
	mustFail(t, "hekla job run a -R cpu=-1", "negative")
	mustFail(t, "hekla job run a -R cpu=1,cpu=2", "twice")
	mustFail(t, "hekla job run a -m 2", "--min=2", "--replicas=1")
	mustFail(t, `hekla job run a -c "b`, "not closed")
	mustFail(t, "hekla job run a -f ../../example/01-gang-job.yaml", "has other jobs", "leave out the name")
	mustFail(t, "hekla job run -f /nowhere/at/all.yaml", "/nowhere/at/all.yaml")
	mustFail(t, "hekla job list -o yamml", "yamml", "jsonpath")
	mustFail(t, "hekla job list -l ==", "-l ==")
	mustFail(t, "vcctl job view", "which job?", "vcctl job list")
	mustFail(t, "vcctl job view -N nobody", `there is no job "nobody" in namespace default`, "vcctl job list -n default")
	mustFail(t, "hekla job list --context nobody", "nobody")
	mustFail(t, "hekla job list --kubeconfig /nowhere/config", "/nowhere/config")
	mustFail(t, "hekla job list -s http://127.0.0.1:1", "cannot be reached", "--context")
}

// runningJob is a job with a status that says something in every column.
func runningJob(t *testing.T, namespace, name, queue string) *batch.Job {
	t.Helper()
	one := int32(1)
	job := &batch.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"team": "red"}},
		Spec: batch.JobSpec{
			Queue: queue, SchedulerName: "volcano", PriorityClassName: "high",
			Plugins: map[string][]string{"svc": {"--publish-not-ready-addresses=true"}},
			Tasks: []batch.TaskSpec{
				{Name: "main", Replicas: 1, Template: podTemplate("1")},
				{Name: "worker", Replicas: 3, MinAvailable: &one, Template: podTemplate("2")},
			},
		},
	}
	create(t, job)
	job.Status = batch.JobStatus{
		State: batch.JobState{Phase: batch.Running, LastTransitionTime: metav1.Now()}, MinAvailable: 2, Pending: 1, Running: 2, Succeeded: 1, Failed: 3,
		Unknown: 4, RetryCount: 1, ControlledResources: map[string]string{"plugin-svc": "svc"},
	}
	updateStatus(t, job)
	return job
}

func podTemplate(cpu string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "busybox", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
	}}}}
}

func TestJobsAreListedAsVcctlListsThem(t *testing.T) {
	n := namespace(t)
	runningJob(t, n, "train", "research")
	create(t, &batch.Job{ObjectMeta: metav1.ObjectMeta{Namespace: n, Name: "new", Labels: map[string]string{batch.JobTypeKey: "Ray"}},
		Spec: batch.JobSpec{SchedulerName: "alone", Tasks: []batch.TaskSpec{{Replicas: 1, Template: podTemplate("1")}}}})
	const titles = "Name Creation Phase JobType Replicas Min Pending Running Succeeded Failed Unknown RetryCount"
	const train = "\ntrain DATE Running Batch 4 2 1 2 1 3 4 1"
	const fresh = "\nnew DATE - Ray 1 0 0 0 0 0 0 0"
	for line, want := range map[string]string{
		"vcctl job list -n " + n:                      titles + fresh + train,
		"vjobs -N " + n:                               titles + fresh + train,
		"hekla job list -n " + n + " --selector rai":  titles + train,
		"hekla job list -n " + n + " -q research":     titles + train,
		"hekla job list -n " + n + " -S alone":        titles + fresh,
		"hekla job list -n " + n + " -l team=red":     titles + train,
		"hekla job list -n " + n + " -l team=blue":    "No jobs found in namespace " + n,
		"vcctl job list -n " + n + " -q nowhere":      "No resources found",
		"hekla job list -A --no-headers -l team -S x": "No jobs found",
		"hekla job list -n " + n + " -q research -o wide": titles + " Queue PriorityClass Scheduler Age Reason" + train +
			" research high volcano AGE -",
		"hekla job list -n " + n + " -o name":                            "job.batch.volcano.sh/new\njob.batch.volcano.sh/train",
		"hekla job list -n " + n + " -q research -o name":                "job.batch.volcano.sh/train",
		"hekla job list -n " + n + " -o jsonpath={.items[*].spec.queue}": "default research",
		"hekla job list -A --no-headers -S alone":                        n + " " + fresh[1:],
	} {
		t.Run(line, func(t *testing.T) { mustSay(t, line, want) })
	}
}

func TestTheColumnsOfATableStandUnderTheirTitles(t *testing.T) {
	n := namespace(t)
	runningJob(t, n, "a-job-with-a-rather-long-name", "research")
	rows := strings.Split(run(t, "hekla job list -n "+n).out, "\n")
	if at := strings.Index(rows[0], "Phase"); strings.Index(rows[1], "Running") != at {
		t.Errorf("the columns are not aligned:\n%s\n%s", rows[0], rows[1])
	}
}

func TestJobsAreSuspendedAndResumedByCommand(t *testing.T) {
	n := namespace(t)
	job := runningJob(t, n, "train", "research")
	mustSay(t, "vcctl job suspend -n "+n+" -N train --dry-run=server", "suspend job train successfully (server dry run)")
	mustSay(t, "vcctl job suspend -n "+n+" -N train", "suspend job train successfully")
	mustSay(t, "vresume -N "+n+" -n train", "resume job train successfully")
	var commands bus.CommandList
	if err := api.List(t.Context(), &commands, client.InNamespace(n)); err != nil {
		t.Fatal(err)
	}
	if len(commands.Items) != 2 {
		t.Fatalf("%d commands were issued", len(commands.Items))
	}
	for i, want := range []bus.Action{bus.AbortJobAction, bus.ResumeJobAction} {
		c := commands.Items[i]
		target := c.TargetObject
		if c.Action != string(want) || target == nil || target.UID != job.UID || target.Kind != "Job" || target.APIVersion != "batch.volcano.sh/v1alpha1" {
			t.Errorf("the command is %s of %+v", c.Action, target)
		}
		if !metav1.IsControlledBy(&c, job) {
			t.Errorf("%s does not go with the job", c.Name)
		}
	}
	job.Status.State.Phase = batch.Completed
	updateStatus(t, job)
	mustFail(t, "vsuspend -N "+n+" -n train", "train", "Completed", "cannot be suspended")
	mustFail(t, "hekla job resume -n "+n+" train", "Completed", "cannot be resumed")
}

func TestJobsAreDeleted(t *testing.T) {
	n := namespace(t)
	for _, name := range []string{"a", "b", "c"} {
		runningJob(t, n, name, "research")
	}
	mustSay(t, "vcctl job delete -n "+n+" -N a", "delete job a successfully")
	mustSay(t, "vcancel -N "+n+" -n b", "cancel job b successfully")
	got := run(t, "hekla job delete -n "+n+" missing c")
	if got.out != "delete job c successfully\n" || got.err == nil || !strings.Contains(got.err.Error(), `"missing"`) {
		t.Errorf("one that is not there: %+v", got)
	}
	for _, name := range []string{"a", "b", "c"} {
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: n, Name: name}, &batch.Job{}); !apierrors.IsNotFound(err) {
			t.Errorf("job %s: %v", name, err)
		}
	}
}

func TestAViewSaysWhyAJobWaitsAndWhoWasEvictedForIt(t *testing.T) {
	n, other := namespace(t), namespace(t)
	job := runningJob(t, n, "train", "research")
	job.Status = batch.JobStatus{State: batch.JobState{Phase: batch.Pending, Reason: "Preempting", Message: "1 of 2 pods have left"}, MinAvailable: 2}
	updateStatus(t, job)
	group := &scheduling.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: n, Name: "train-" + string(job.UID)}}
	create(t, group)
	group.Status = scheduling.PodGroupStatus{Phase: scheduling.PodGroupInqueue, Conditions: []scheduling.PodGroupCondition{
		{Type: scheduling.PodGroupUnschedulableType, Status: corev1.ConditionTrue, Reason: "Preempting", Message: "1 of 2 pods have left", LastTransitionTime: metav1.Now()},
		{Type: scheduling.PodGroupNominatedType, Status: corev1.ConditionTrue, Reason: "reclaim", Message: "the nodes are chosen", LastTransitionTime: metav1.Now()},
		{Type: scheduling.PodGroupScheduledType, Status: corev1.ConditionFalse, Reason: "not shown"},
	}}
	updateStatus(t, group)
	event := func(namespace, name string, about corev1.ObjectReference, reason, text string, related *corev1.ObjectReference) {
		create(t, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, InvolvedObject: about, Reason: reason, Message: text,
			Type: "Normal", EventTime: metav1.NewMicroTime(time.Now()), Related: related, ReportingController: "volcano", ReportingInstance: "i", Action: "Preempting"})
	}
	preemptor := &corev1.ObjectReference{Kind: "PodGroup", Namespace: n, Name: group.Name}
	event(other, "victim", corev1.ObjectReference{Kind: "Pod", Namespace: other, Name: "old-main-0"}, "Preempted", "by rule Q1", preemptor)
	event(n, "loss", corev1.ObjectReference{Kind: "Pod", Namespace: n, Name: "train-worker-2"}, "Preempted", "by rule J1",
		&corev1.ObjectReference{Kind: "PodGroup", Namespace: n, Name: "another"})
	event(n, "foreign", corev1.ObjectReference{Kind: "Pod", Namespace: n, Name: "train-worker-x-2"}, "Preempted", "of another job", nil)
	event(n, "own", corev1.ObjectReference{Kind: "Job", Namespace: n, Name: "train", UID: job.UID}, "ExecuteAction", "started", nil)
	mustSay(t, "vcctl job view -n "+n+" -N train", `
Name: train
Namespace: `+n+`
Labels: team=red
Annotations: <none>
API Version: batch.volcano.sh/v1alpha1
Kind: Job
Created: DATE (AGE ago)
Spec:
  Queue: research
  Priority Class: high
  Min Available: 2
  Scheduler Name: volcano
  Plugin svc: --publish-not-ready-addresses=true
Tasks:
  Name Replicas Min Images Requests
  main 1 1 busybox cpu=1
  worker 3 1 busybox cpu=2
Status:
  Phase: Pending
  Reason: Preempting
  Message: 1 of 2 pods have left
Scheduling:
  PodGroup: train-UID
  Phase: Inqueue
  Unschedulable: Preempting: 1 of 2 pods have left (for AGE)
  Nominated: reclaim: the nodes are chosen (for AGE)
Evicted for it:
  by rule Q1
    `+other+`/old-main-0 AGE ago
Evicted from it:
  by rule J1
    `+n+`/train-worker-2 AGE ago
Events:
  Type Reason Age From Message
  Normal ExecuteAction AGE volcano started
`)
	mustSay(t, "vjobs -N "+n+" -n train -o jsonpath={.status.state.reason}", "Preempting")
	mustFail(t, "vjobs -N "+n+" -n train -q research", "leave out the name")
}

// What a person may not read in addition is left out of a view; what it cannot be without is refused.
func TestRightsThatLackAreTold(t *testing.T) {
	n := namespace(t)
	runningJob(t, n, "train", "research")
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: n, Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"batch.volcano.sh"}, Resources: []string{"jobs"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"list"}},
	}}
	create(t, role, &rbacv1.RoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "jane"}}})
	var got result
	apitest.Eventually(t, func(context.Context) error {
		got = run(t, "hekla job view train --as jane -n "+n)
		return got.err
	})
	for _, want := range []string{"Phase:", "Not shown:", "its PodGroup: podgroups", "you may not list Events there"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("no %q in %+v", want, got)
		}
	}
	mustFail(t, "hekla job list --as jane -n "+n, `User "jane" cannot list`, "ask an administrator")
}
