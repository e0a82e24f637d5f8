package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"hekla.sh/hekla/internal/controllers"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/apitest"
)

// shared is the connection of controllers while another client works: after each write in a namespace it has its
// turn, before the controllers hear of theirs.
type shared struct {
	next      http.RoundTripper
	namespace string

	mutex  sync.Mutex
	then   func(write string) // nil: the other client does nothing
	writes []string           // of the controllers
}

func (s *shared) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.next.RoundTrip(request)
	_, what, isOurs := strings.Cut(request.URL.Path, "/namespaces/"+s.namespace+"/")
	if !isOurs || err != nil || request.Method == http.MethodGet || strings.HasPrefix(what, "events") {
		return response, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	write := fmt.Sprint(request.Method, " ", what, " ", response.StatusCode)
	if s.writes = append(s.writes, write); s.then != nil {
		s.then(write)
	}
	return response, nil
}

// meddle makes another client act after each write of the controllers, from now on.
func (s *shared) meddle(then func(write string)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.then, s.writes = then, nil
}

func (s *shared) all() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.writes)
}

// withAnother runs the controllers of workloads in this process, together with another client, until the test ends.
func withAnother(t *testing.T, namespace string) *shared {
	t.Helper()
	s := &shared{namespace: namespace}
	through(t, controllers.Options{WorkloadWorkers: 1, SchedulerNames: []string{"volcano"},
		SchedulerConfigMap: client.ObjectKey{Namespace: system, Name: "volcano-scheduler-configmap"}}, func(next http.RoundTripper) http.RoundTripper {
		s.next = next
		return s
	})
	return s
}

// through runs some controllers in this process, with a connection of its own, until the test ends.
func through(t *testing.T, options controllers.Options, connection func(next http.RoundTripper) http.RoundTripper) {
	t.Helper()
	if err := process.Stop(); err != nil {
		t.Fatal(err)
	}
	restConfig := cluster.Config()
	restConfig.UserAgent = "hekla-controllers"
	restConfig.Wrap(connection)
	skipNameValidation := true
	mgr, err := manager.New(restConfig, manager.Options{Scheme: api.Scheme(), Cache: controllers.CacheOptions(),
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skipNameValidation}})
	if err == nil {
		err = controllers.Add(mgr, options)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := mgr.Start(ctx); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		ended.Wait()
		if process, err = cluster.Run(context.Background(), program); err != nil {
			t.Fatal(err)
		}
	})
}

// edit changes a Job as a client does that may change it: what the API server refuses does not happen.
func edit(job *batchv1.Job, change func(*batchv1.Job)) error {
	for {
		found := &batchv1.Job{}
		if err := api.Get(context.Background(), client.ObjectKeyFromObject(job), found); err != nil {
			return err
		}
		change(found)
		switch err := api.Update(context.Background(), found); {
		case apierrors.IsConflict(err):
		case apierrors.IsInvalid(err):
			return nil
		default:
			return err
		}
	}
}

func withoutKeys(of map[string]string) {
	maps.DeleteFunc(of, func(key, _ string) bool { return strings.HasPrefix(key, "kueue.x-k8s.io/") })
}

// hostilities are what another client does between any two writes of the controllers.
var hostilities = map[string]func(*batchv1.Job){
	"resumes": func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(false) },
	"removes annotations and labels of the template": func(j *batchv1.Job) {
		withoutKeys(j.Annotations)
		withoutKeys(j.Spec.Template.Annotations)
		withoutKeys(j.Spec.Template.Labels)
	},
	"takes the Job out of its queue": func(j *batchv1.Job) { withoutKeys(j.Labels) },
	"adds to the template": func(j *batchv1.Job) {
		metav1.SetMetaDataAnnotation(&j.Spec.Template.ObjectMeta, "other", "client")
		j.Spec.Template.Spec.NodeSelector["other"] = "client"
	},
	"says that a stop is under way":  func(j *batchv1.Job) { metav1.SetMetaDataAnnotation(&j.ObjectMeta, "kueue.x-k8s.io/stopping", "true") },
	"suspends":                       func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) },
	"changes how many pods it wants": func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To(int32(1)) },
}

// mostHostilities bounds what the other client does to one Job. It gives up then.
const mostHostilities = 10

func TestAStopSurvivesWhateverAnotherClientWritesInBetween(t *testing.T) {
	for name, change := range hostilities {
		t.Run(name, func(t *testing.T) {
			namespace := namespaceFor(t, "hostile")
			other := withAnother(t, namespace)
			quotaFor(t, namespace)
			job := queuedJob(namespace, "train", 2)
			create(t, job)
			w := awaitWorkload(t, job, exists)
			admitWorkload(t, w, 2)
			awaitBatchJob(t, job, func() bool { return !*job.Spec.Suspend && job.Status.Active == 2 })

			count := 0
			other.meddle(func(string) {
				if count++; count <= mostHostilities {
					if err := edit(job, change); err != nil {
						t.Error(err)
					}
				}
			})
			evictWorkload(t, w)
			hasStopped := func(ctx context.Context) error {
				if err := api.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
					return err
				}
				pods, err := podsIn(ctx, namespace)
				template := &job.Spec.Template
				if err != nil || !*job.Spec.Suspend || len(pods) > 0 || template.Spec.NodeSelector["kind"] != "" || template.Labels[v1beta2.PodSetLabel] != "" {
					return fmt.Errorf("%d pods, suspended %v, the template is %+v, %v", len(pods), *job.Spec.Suspend, template, err)
				}
				if err := api.Get(ctx, client.ObjectKeyFromObject(w), w); client.IgnoreNotFound(err) != nil || conditions.Is(w, v1beta2.QuotaReserved) && err == nil {
					return fmt.Errorf("the Workload holds its quota: %+v, %v", w.Status, err)
				}
				return nil
			}
			apitest.Eventually(t, hasStopped)
			stays(t, hasStopped)
			if writes := other.all(); count == 0 || len(writes) > 6*mostHostilities || slices.ContainsFunc(writes, func(w string) bool { return strings.HasSuffix(w, " 422") }) {
				t.Errorf("%d hostilities, and the controllers have written %d times, or what the API server refuses:\n%s", count, len(writes), strings.Join(writes, "\n"))
			}
		})
	}
}

func TestAJobThatIsResumedTenTimesInSecondsDoesNotRun(t *testing.T) {
	namespace := namespaceFor(t, "resumed")
	quotaFor(t, namespace)
	waits, runs := queuedJob(namespace, "waits", 2), queuedJob(namespace, "runs", 2)
	create(t, waits)
	create(t, runs)
	awaitWorkload(t, waits, exists)
	w := awaitWorkload(t, runs, exists)
	admitWorkload(t, w, 2)
	awaitBatchJob(t, runs, func() bool { return !*runs.Spec.Suspend && runs.Status.Active == 2 })
	evictWorkload(t, w)
	for range 10 {
		for _, job := range []*batchv1.Job{waits, runs} {
			if err := edit(job, hostilities["resumes"]); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
	before := requestsIn(t, namespace)
	isStill := func(ctx context.Context) error {
		pods, err := podsIn(ctx, namespace)
		if err != nil || len(pods) > 0 {
			return fmt.Errorf("%d pods, %v", len(pods), err)
		}
		for _, job := range []*batchv1.Job{waits, runs} {
			if err := api.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil || !*job.Spec.Suspend || len(job.Annotations) > 0 || job.Spec.Template.Spec.NodeSelector["kind"] != "" {
				return fmt.Errorf("the Job is %+v, %v", job, err)
			}
		}
		return nil
	}
	apitest.Eventually(t, isStill)
	stays(t, isStill)
	awaitWorkload(t, runs, saying(v1beta2.Requeued, metav1.ConditionTrue, v1beta2.ReasonPreempted, "Preempted to accommodate a workload"))
	if refused := before[request{"patch", "jobs", 422}] + before[request{"patch", "jobs/status", 422}]; refused > 0 {
		t.Errorf("%d writes that the API server refuses", refused)
	}
}

// The pods end one by one, and each is an event.
func TestTheTemplateIsRestoredWhenThePodsAreGone(t *testing.T) {
	namespace := namespaceFor(t, "restored")
	quotaFor(t, namespace)
	job := queuedJob(namespace, "train", 4)
	create(t, job)
	w := awaitWorkload(t, job, exists)
	admitWorkload(t, w, 4)
	awaitBatchJob(t, job, func() bool { return !*job.Spec.Suspend && job.Status.Active == 4 })
	evictWorkload(t, w)
	awaitWorkload(t, job, saying(v1beta2.Requeued, metav1.ConditionTrue, v1beta2.ReasonPreempted, "Preempted to accommodate a workload"))
	writes := requestsIn(t, namespace)
	if ok, refused := writes[request{"patch", "jobs", 200}], writes[request{"patch", "jobs", 422}]; ok > 4 || refused > 0 {
		t.Errorf("the Job was suspended, started, suspended and restored with %d writes, and %d that were refused", ok, refused)
	}
}

func TestAJobThatNamesNoQueueIsHeldWheneverItIsResumed(t *testing.T) {
	namespace := namespaceFor(t, "unnamed")
	holdUnnamedIn(t, namespace)
	job := queuedJob(namespace, "train", 2)
	job.Labels = nil
	create(t, job)
	isHeld := func() bool { return *job.Spec.Suspend && job.Status.Active == 0 }
	awaitBatchJob(t, job, isHeld)
	awaitEvent(t, job, "Stopped", "manageJobsWithoutQueueName")
	for range 3 {
		if err := edit(job, hostilities["resumes"]); err != nil {
			t.Fatal(err)
		}
		awaitBatchJob(t, job, isHeld)
	}
	other := queuedJob("default", "unnamed", 1)
	other.Labels = nil
	create(t, other)
	t.Cleanup(func() {
		_ = api.Delete(context.Background(), other, client.PropagationPolicy(metav1.DeletePropagationBackground))
	})
	awaitBatchJob(t, other, func() bool { return other.Status.Active == 1 })
	// One that names a queue is queued.
	quotaFor(t, namespace)
	change(t, job, func(j *batchv1.Job) { j.Labels = map[string]string{v1beta2.QueueNameLabel: "q"} })
	admitWorkload(t, awaitWorkload(t, job, exists), 2)
	awaitBatchJob(t, job, func() bool { return job.Status.Active == 2 })
}

// holdUnnamedIn labels a namespace as one in which Jobs without a queue are held; see admitWorkloads.
func holdUnnamedIn(t *testing.T, name string) {
	t.Helper()
	change(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(n *corev1.Namespace) {
		metav1.SetMetaDataLabel(&n.ObjectMeta, "unnamed", "held")
	})
}

func TestWhatRunsIsChargedUntilItEndsAlsoWithoutItsLabel(t *testing.T) {
	namespace := namespaceFor(t, "unlabelled")
	quotaFor(t, namespace)
	job := queuedJob(namespace, "train", 2)
	create(t, job)
	w := awaitWorkload(t, job, exists)
	admitWorkload(t, w, 2)
	awaitBatchJob(t, job, func() bool { return job.Status.Active == 2 })
	change(t, job, func(j *batchv1.Job) { j.Labels = nil })
	stays(t, func(ctx context.Context) error {
		if err := errors.Join(api.Get(ctx, client.ObjectKeyFromObject(job), job), api.Get(ctx, client.ObjectKeyFromObject(w), w)); err != nil {
			return err
		}
		if *job.Spec.Suspend || !conditions.Is(w, v1beta2.Admitted) {
			return fmt.Errorf("suspended %v, the Workload is %+v", *job.Spec.Suspend, w.Status)
		}
		return nil
	})
	evictWorkload(t, w)
	awaitBatchJob(t, job, func() bool {
		return *job.Spec.Suspend && job.Status.Active == 0 && job.Spec.Template.Spec.NodeSelector["kind"] == ""
	})
	gone(t, w)
}
