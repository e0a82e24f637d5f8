package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"
	"hekla.sh/hekla/test/installed"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"hekla.sh/hekla/internal/localcluster"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
)

// examples are the tests of the files of example, by file.
var examples = map[string]func(*testing.T){
	"01-gang-job.yaml":            theGangWaitsForItsThirdNode,
	"02-several-tasks.yaml":       theTasksStartTogether,
	"03-two-queues.yaml":          theQueuesShareThreeToOne,
	"04-hierarchical-queues.yaml": theParentQueueHoldsItsCapability,
	"05-cron-job.yaml":            theCronJobStartsJobs,
	"06-rolling-update.yaml":      theMinimumHoldsUpNoRollout,
	"07-job-flow.yaml":            theFlowRunsStepByStep,
	"08-volumes.yaml":             thePodsHaveTheirVolumes,
	"09-network-topology.yaml":    theGangStaysInItsRack,
	"10-queue-access.yaml":        theQueueIsForItsNamespacesOnly,
	"scheduler-configmap.yaml":    theFullConfigurationIsTheDefault,
}

func TestExamplesRunToTheirEnd(t *testing.T) {
	files, err := os.ReadDir(filepath.Join(root, "example"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if file.IsDir() {
			continue // of a page, whose walk-through is a test of its own
		}
		test, isThere := examples[file.Name()]
		if !isThere {
			t.Errorf("no test runs %s", file.Name())
			continue
		}
		t.Run(file.Name(), func(t *testing.T) {
			test(t)
			nothingWasForbidden(t)
		})
	}
}

// apply applies an example, and removes what it made when the test ends.
func apply(t *testing.T, file string) {
	t.Helper()
	tidyUp(t)
	kubectl(t, "apply", "-f", filepath.Join(root, "example", file))
}

// tidyUp removes what the test makes, when it ends.
func tidyUp(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.Background()
		for _, arguments := range [][]string{
			{"delete", "jobflows,jobtemplates", "--all"},
			{"delete", "cronjobs.batch.volcano.sh,jobs.batch.volcano.sh,poddisruptionbudgets", "--all"},
			// As long as they are there, room is kept for them.
			{"delete", "podgroups.scheduling.volcano.sh", "--all"},
			{"delete", "queues", "--field-selector=metadata.name!=root,metadata.name!=default"},
			{"delete", "priorityclasses", "--field-selector=metadata.name!=system-node-critical,metadata.name!=system-cluster-critical"},
			{"apply", "-f", filepath.Join(root, "installer/configuration.yaml")},
		} {
			if _, err := system.Kubectl(ctx, arguments...); err != nil {
				t.Error(err)
			}
		}
		// The garbage collector would find them, too; of kinds that are new to a cluster it hears after half a minute.
		if err := core.CoreV1().Pods(metav1.NamespaceDefault).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := system.Kubectl(ctx, "wait", "pods", "--all", "--for=delete", "--timeout=60s"); err != nil {
			t.Error(err)
		}
	})
}

func theQueueIsForItsNamespacesOnly(t *testing.T) {
	haveNodes(t, 1)
	apply(t, "10-queue-access.yaml")
	awaitPhase(t, "fit", batchv1alpha1.Running)
	manifest := filepath.Join(root, "example", "10-queue-access.yaml")
	content, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere.yaml")
	if err := os.WriteFile(elsewhere, []byte(strings.Replace(string(content), "namespace: default", "namespace: kube-public", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = system.Kubectl(t.Context(), "apply", "-f", elsewhere)
	if want := "queue lab is for some namespaces only, and kube-public is not one of them"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func jobOf(ctx context.Context, name string) (*batchv1alpha1.Job, error) {
	return batch.BatchV1alpha1().Jobs(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
}

// awaitPhase waits until a Job is in a phase, and returns it.
func awaitPhase(t *testing.T, name string, phase batchv1alpha1.JobPhase) *batchv1alpha1.Job {
	t.Helper()
	var last *batchv1alpha1.Job
	apitest.Eventually(t, func(ctx context.Context) error {
		job, err := jobOf(ctx, name)
		if err != nil {
			return err
		}
		if last = job; job.Status.State.Phase != phase {
			return fmt.Errorf("Job %s is %s (%s: %s), want %s", name, job.Status.State.Phase, job.Status.State.Reason, job.Status.State.Message, phase)
		}
		return nil
	})
	return last
}

// awaitReason waits until a pending Job says why it waits.
func awaitReason(t *testing.T, name, reason string, numbers ...string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		job, err := jobOf(ctx, name)
		if err != nil {
			return err
		}
		state := job.Status.State
		isMissing := func(number string) bool { return !strings.Contains(state.Message, number) }
		if state.Phase != batchv1alpha1.Pending || state.Reason != reason || slices.ContainsFunc(numbers, isMissing) {
			return fmt.Errorf("Job %s is %s (%s: %s), want %s (%s: …%s…)", name, state.Phase, state.Reason, state.Message,
				batchv1alpha1.Pending, reason, strings.Join(numbers, "…"))
		}
		return nil
	})
}

func podsOf(ctx context.Context, job string) ([]corev1.Pod, error) {
	pods, err := core.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{batchv1alpha1.JobNameKey: job}.String(),
	})
	if err != nil {
		return nil, err
	}
	return pods.Items, nil
}

// awaitRunning waits until that many pods of a Job run.
func awaitRunning(t *testing.T, job string, count int) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := podsOf(ctx, job)
		if err != nil {
			return err
		}
		running := 0
		for i := range pods {
			if pods[i].Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if running != count {
			return fmt.Errorf("%d pods of %s run, want %d", running, job, count)
		}
		return nil
	})
}

func theGangWaitsForItsThirdNode(t *testing.T) {
	haveNodes(t, 2)
	apply(t, "01-gang-job.yaml")
	awaitReason(t, "gang", "GangShort", "2 of the 3 pods", "cpu: needs 5, has 3, short by 2")
	pods, err := podsOf(t.Context(), "gang")
	if err != nil {
		t.Fatal(err)
	}
	if len(pods) != 3 {
		t.Errorf("the gang has %d pods, want 3", len(pods))
	}
	for i := range pods {
		if pods[i].Spec.NodeName != "" {
			t.Errorf("%s is bound, and the gang cannot start", pods[i].Name)
		}
	}
	began := time.Now()
	haveNodes(t, 3)
	awaitRunning(t, "gang", 3)
	took := time.Since(began)
	t.Logf("all three pods ran %s after the node was asked for", took.Round(time.Millisecond))
	if took > 5*time.Second {
		t.Errorf("the gang started %s after there was room for it", took)
	}
	job := awaitPhase(t, "gang", batchv1alpha1.Running)
	if job.Status.State.Message != "" {
		t.Errorf("a Job that runs says %q", job.Status.State.Message)
	}
	awaitPhase(t, "gang", batchv1alpha1.Completed)
}

func theTasksStartTogether(t *testing.T) {
	// Of a node with 2 CPUs the launcher takes 200m and each worker 400m: four of the six have a place.
	haveNodes(t, 0)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	if _, err := cluster.AddNodes(t.Context(), 1, localcluster.NodeTemplate{Prefix: "small-", Capacity: capacity}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.RemoveNode(context.Background(), "small-1"); err != nil {
			t.Error(err)
		}
	})
	apply(t, "02-several-tasks.yaml")
	awaitRunning(t, "several-tasks", 5)
	// Three workers are enough for the Job to be Running; its status may count the launcher a moment later.
	apitest.Eventually(t, func(ctx context.Context) error {
		job, err := jobOf(ctx, "several-tasks")
		if err != nil {
			return err
		}
		if got := job.Status.TaskStatusCount["launcher"].Phase[corev1.PodRunning]; got != 1 || job.Status.State.Phase != batchv1alpha1.Running {
			return fmt.Errorf("%d launchers run, want 1; the Job is %s", got, job.Status.State.Phase)
		}
		return nil
	})
	job := awaitPhase(t, "several-tasks", batchv1alpha1.Completed)
	if job.Status.Succeeded != 7 {
		t.Errorf("%d pods succeeded, want 7", job.Status.Succeeded)
	}
}

func theQueuesShareThreeToOne(t *testing.T) {
	haveNodes(t, 3)
	apply(t, "03-two-queues.yaml")
	want := map[string]int64{"production": 18, "research": 6}
	apitest.Eventually(t, func(ctx context.Context) error {
		for name, cpus := range want {
			queue, err := batch.SchedulingV1beta1().Queues().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			allocated := queue.Status.Allocated[corev1.ResourceCPU]
			if allocated.Value() != cpus {
				return fmt.Errorf("queue %s holds %s CPUs, want %d", name, allocated.String(), cpus)
			}
		}
		return nil
	})
	for _, name := range []string{"nightly-report", "experiment"} {
		awaitPhase(t, name, batchv1alpha1.Completed)
	}
}

func theParentQueueHoldsItsCapability(t *testing.T) {
	haveNodes(t, 3)
	apply(t, "04-hierarchical-queues.yaml")
	jobs := []string{"train", "serve", "more"}
	// Jobs of one second have no order that the API shows, so any of them may be the one that waits.
	apitest.Eventually(t, func(ctx context.Context) error {
		var running, waiting int
		for _, name := range jobs {
			job, err := jobOf(ctx, name)
			if err != nil {
				return err
			}
			switch state := job.Status.State; {
			case state.Phase == batchv1alpha1.Running:
				running++
			case state.Reason == "OverCapability" && strings.Contains(state.Message, "queue company is at its capability: cpu: needs"):
				waiting++
			}
		}
		if running != 2 || waiting != 1 {
			return fmt.Errorf("%d jobs run and %d wait for the capability of company, want 2 and 1", running, waiting)
		}
		return nil
	})
	for _, name := range jobs {
		awaitPhase(t, name, batchv1alpha1.Completed)
	}
}

func theCronJobStartsJobs(t *testing.T) {
	haveNodes(t, 1)
	apply(t, "05-cron-job.yaml")
	for arguments, want := range map[string][]string{
		"get cronvj nightly":                  {"NAME", "AGE"},
		"get cronvcjob nightly --output=wide": {"NAME", "SCHEDULE", "TIMEZONE", "SUSPEND", "LAST", "SCHEDULE", "AGE"},
	} {
		header, _, _ := strings.Cut(kubectl(t, strings.Fields(arguments)...), "\n")
		if !slices.Equal(strings.Fields(header), want) {
			t.Errorf("kubectl %s shows %q", arguments, header)
		}
	}
	kubectl(t, "patch", "cronvj", "nightly", "--type=merge", "-p", `{"spec":{"schedule":"@every 1s","successfulJobsHistoryLimit":1}}`)
	var last *metav1.Time
	for range 2 { // the second one waits for the end of the first
		apitest.Eventually(t, func(ctx context.Context) error {
			cronJob, err := batch.BatchV1alpha1().CronJobs(metav1.NamespaceDefault).Get(ctx, "nightly", metav1.GetOptions{})
			if err != nil {
				return err
			}
			ended := cronJob.Status.LastSuccessfulTime
			if len(cronJob.Status.Active) > 1 || ended == nil || ended.Equal(last) {
				return fmt.Errorf("no Job has ended: %+v", cronJob.Status)
			}
			last = ended
			return nil
		})
	}
	kubectl(t, "patch", "cronvj", "nightly", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	apitest.Eventually(t, func(ctx context.Context) error {
		jobs, err := batch.BatchV1alpha1().Jobs(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err == nil && len(jobs.Items) != 1 {
			err = fmt.Errorf("%d Jobs are there, want the last one", len(jobs.Items))
		}
		return err
	})
}

func theMinimumHoldsUpNoRollout(t *testing.T) {
	// There is room for three of the four, then for the four, and never for one more.
	haveNodes(t, 0)
	for i, cpu := range []string{"3", "1"} {
		prefix := fmt.Sprintf("room-for-%s-", cpu)
		capacity := corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("9"),
		}
		if _, err := cluster.AddNodes(t.Context(), 1, localcluster.NodeTemplate{Prefix: prefix, Capacity: capacity}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := cluster.RemoveNode(context.Background(), prefix+"1"); err != nil {
				t.Error(err)
			}
		})
		if i > 0 {
			break
		}
		apply(t, "06-rolling-update.yaml")
		apitest.Eventually(t, func(ctx context.Context) error {
			groups, err := batch.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, group := range groups.Items {
				if len(group.Status.Conditions) > 0 && group.Spec.MinMember == 4 {
					return nil
				}
			}
			return fmt.Errorf("no gang of four waits: %+v", groups.Items)
		})
		pods, err := core.CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods.Items {
			if pod.Spec.NodeName != "" {
				t.Errorf("%s was placed without the others", pod.Name)
			}
		}
	}
	t.Cleanup(func() { // with its pods, while the nodes are there to let them go
		if _, err := system.Kubectl(context.Background(), "delete", "deployment", "web", "--cascade=foreground"); err != nil {
			t.Error(err)
		}
	})
	kubectl(t, "rollout", "status", "deployment", "web", "--timeout=60s")
	kubectl(t, "rollout", "restart", "deployment", "web")
	kubectl(t, "rollout", "status", "deployment", "web", "--timeout=60s")
}

func theFullConfigurationIsTheDefault(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "example/scheduler-configmap.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	apply(t, "scheduler-configmap.yaml")
	configMaps := core.CoreV1().ConfigMaps(installed.Namespace)
	object, err := configMaps.Get(t.Context(), "volcano-scheduler-configmap", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// That all of it is said, nothing to no effect, and nothing but defaults.
	catalogue := scheduler.NewRegistry().Catalogue()
	configuration, err := conf.Parse([]byte(object.Data["volcano-scheduler.conf"]), catalogue)
	if err != nil {
		t.Fatal(err)
	}
	if len(configuration.Notices) > 0 {
		t.Errorf("the example says something to no effect: %v", configuration.Notices)
	}
	if !configuration.Equal(conf.Default(catalogue)) {
		t.Errorf("the example differs from the default:\n%s", configuration)
	}
	for name, spec := range catalogue.Plugins {
		if spec.AliasOf != "" || spec.NoEffect != "" || spec.Unsupported != "" {
			continue
		}
		if !strings.Contains(string(content), "name: "+name) {
			t.Errorf("the example does not mention the plugin %s", name)
		}
		for _, argument := range spec.Arguments {
			if argument.NoEffect != "" || argument.Unsupported != "" {
				continue
			}
			key, _, _ := strings.Cut(argument.Name, "<")
			if !strings.Contains(string(content), key) {
				t.Errorf("the example does not mention the argument %s of the plugin %s", argument.Name, name)
			}
		}
	}
}

// What docs/configuration.md says of a mistake.
func TestAMistakeInTheConfigurationIsToldAndChangesNothing(t *testing.T) {
	refused := func(ctx context.Context) float64 { return metric(ctx, t, "hekla_configuration_reload_failures_total") }
	before := refused(t.Context())
	configMaps := core.CoreV1().ConfigMaps(installed.Namespace)
	object, err := configMaps.Get(t.Context(), "volcano-scheduler-configmap", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	good := object.Data["volcano-scheduler.conf"]
	object.Data["volcano-scheduler.conf"] = strings.Replace(good, "name: gang", "name: gnag", 1)
	if _, err := configMaps.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, func(ctx context.Context) error {
		if refused(ctx) == before {
			return fmt.Errorf("the metric is still %v", before)
		}
		events, err := core.EventsV1().Events(installed.Namespace).List(ctx, metav1.ListOptions{
			FieldSelector: "regarding.name=volcano-scheduler-configmap",
		})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Type == corev1.EventTypeWarning && strings.Contains(event.Note, "line 5") && strings.Contains(event.Note, "gnag") {
				return nil
			}
		}
		return fmt.Errorf("%d Events with the ConfigMap, none that names the line", len(events.Items))
	})
	// The configuration before is still in force.
	haveNodes(t, 3)
	apply(t, "01-gang-job.yaml")
	awaitRunning(t, "gang", 3)
	nothingWasForbidden(t)
}

// metric reads a metric of the scheduler that has no labels.
func metric(ctx context.Context, t *testing.T, name string) float64 {
	t.Helper()
	text, err := scrape(ctx, metricsURL)
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	family := families[name]
	if family == nil || len(family.Metric) != 1 {
		t.Fatalf("the scheduler has no metric %s", name)
	}
	return family.Metric[0].GetCounter().GetValue()
}

// The real admission controller judges the pods of the Deployments, not only the evaluator that test/installer asks.
func TestThePodsOfTheInstallerAreAdmitted(t *testing.T) {
	apitest.Eventually(t, func(ctx context.Context) error {
		for _, name := range []string{"volcano-scheduler", "volcano-controllers"} {
			pods, err := core.CoreV1().Pods(installed.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
			if err != nil {
				return err
			}
			if len(pods.Items) != 2 {
				return fmt.Errorf("%s has %d pods, want 2", name, len(pods.Items))
			}
		}
		return nil
	})
}

func TestWhoMayEditANamespaceMaySubmitJobsInIt(t *testing.T) {
	for role, want := range map[string]map[string]bool{
		"view": {"get": true, "list": true, "create": false, "delete": false},
		"edit": {"get": true, "list": true, "create": true, "delete": true},
	} {
		user := role + "er"
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
			RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", APIGroup: rbacv1.GroupName, Name: role},
		}
		bindings := core.RbacV1().RoleBindings(metav1.NamespaceDefault)
		if _, err := bindings.Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := bindings.Delete(context.Background(), user, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
		for verb, isAllowed := range want {
			apitest.Eventually(t, func(ctx context.Context) error {
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
						Namespace: metav1.NamespaceDefault, Verb: verb, Group: "batch.volcano.sh", Resource: "jobs",
					},
				}}
				review, err := core.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
				if err == nil && review.Status.Allowed != isAllowed {
					err = fmt.Errorf("whoever may %s may %s Jobs: %t, want %t", role, verb, review.Status.Allowed, isAllowed)
				}
				return err
			})
		}
	}
}
