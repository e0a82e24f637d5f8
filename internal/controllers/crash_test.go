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
	"sync/atomic"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"hekla.sh/hekla/internal/controllers"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// errDead is what a process hears of the API server that is killed: nothing.
var errDead = errors.New("the process was killed")

// mortal is the connection of a process that is killed with the first write that changes anything in a namespace. The
// write arrives; the process does not live to hear of it, and what it was about to write at the same time is never
// sent.
type mortal struct {
	next      http.RoundTripper
	namespace string
	die       context.CancelFunc

	mutex  sync.Mutex // one write at a time
	isDead atomic.Bool
	write  string // the one that killed it
}

func (m *mortal) RoundTrip(request *http.Request) (*http.Response, error) {
	_, what, isOurs := strings.Cut(request.URL.Path, "/namespaces/"+m.namespace+"/")
	isWrite := isOurs && request.Method != http.MethodGet && what != "events"
	if isWrite {
		m.mutex.Lock()
		defer m.mutex.Unlock()
	}
	if m.isDead.Load() {
		return nil, errDead
	}
	response, err := m.next.RoundTrip(request)
	if !isWrite || err != nil || response.StatusCode >= http.StatusMultipleChoices {
		return response, err
	}
	_ = response.Body.Close()
	m.write = fmt.Sprint(request.Method, " ", what, " ", response.StatusCode)
	m.isDead.Store(true)
	m.die()
	return nil, errDead
}

// live runs the controllers until the context ends or they are killed by their first write in the namespace, which it
// returns.
func live(ctx context.Context, namespace string, options controllers.Options) (write string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	restConfig := cluster.Config()
	restConfig.UserAgent = "hekla-controllers"
	m := &mortal{namespace: namespace, die: cancel}
	restConfig.Wrap(func(next http.RoundTripper) http.RoundTripper {
		m.next = next
		return m
	})
	skipNameValidation := true
	mgr, err := manager.New(restConfig, manager.Options{
		Scheme: api.Scheme(), Cache: controllers.CacheOptions(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skipNameValidation},
	})
	if err != nil {
		return "", err
	}
	if err := controllers.Add(mgr, options); err != nil {
		return "", err
	}
	err = mgr.Start(ctx)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.write, err
}

// mostLives bounds how often the controllers are started: a Job that each of them writes to without coming on is no
// progress.
const mostLives = 300

// keepDying kills the controllers at every single write in a namespace, one process after the other, until stop is
// called. It returns the writes that they died of.
func keepDying(t *testing.T, namespace string, options controllers.Options) (stop func() []string) {
	t.Helper()
	options.SchedulerNames = []string{"volcano"}
	if err := process.Stop(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var writes []string
	var failure error
	var ended sync.WaitGroup
	ended.Go(func() {
		for ctx.Err() == nil && failure == nil {
			write, err := live(ctx, namespace, options)
			switch {
			case write != "":
				writes = append(writes, write)
			case err != nil && ctx.Err() == nil:
				failure = err
			}
			if len(writes) > mostLives {
				failure = fmt.Errorf("%d lives were not enough; the last died of %v", mostLives, writes[mostLives-10:])
			}
		}
	})
	stop = sync.OnceValue(func() []string {
		cancel()
		ended.Wait()
		if failure != nil {
			t.Error(failure)
		}
		var err error
		if process, err = cluster.Run(context.Background(), program); err != nil {
			t.Fatal(err)
		}
		return writes
	})
	t.Cleanup(func() { stop() })
	return stop
}

// keepOpen admits every PodGroup of a namespace, in place of the scheduler.
func keepOpen(t *testing.T, namespace string) {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(poll) {
			groups := &scheduling.PodGroupList{}
			_ = api.List(ctx, groups, client.InNamespace(namespace))
			for i := range groups.Items {
				group := &groups.Items[i]
				if group.Status.Phase == "" || group.Status.Phase == scheduling.PodGroupPending {
					group.Status.Phase = scheduling.PodGroupInqueue
					_ = api.Status().Update(ctx, group) // tried again until it is so
				}
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		ended.Wait()
	})
}

// belongings describes what there is of a Job in its namespace, without what differs from Job to Job.
func belongings(ctx context.Context, job *batch.Job) ([]string, error) {
	var found []string
	for kind, list := range map[string]client.ObjectList{
		"Pod": &corev1.PodList{}, "PodGroup": &scheduling.PodGroupList{}, "PersistentVolumeClaim": &corev1.PersistentVolumeClaimList{},
		"ConfigMap": &corev1.ConfigMapList{}, "Secret": &corev1.SecretList{}, "Service": &corev1.ServiceList{},
		"NetworkPolicy": &networkingv1.NetworkPolicyList{}, "Command": &bus.CommandList{},
	} {
		if err := api.List(ctx, list, client.InNamespace(job.Namespace)); err != nil {
			return nil, err
		}
		for _, object := range objectsOf(list) {
			part, _, _ := strings.Cut(string(job.UID), "-")
			name := strings.ReplaceAll(strings.ReplaceAll(object.GetName(), string(job.UID), "UID"), part, "UID")
			if name == "kube-root-ca.crt" {
				continue
			}
			text := kind + " " + name
			if pod, isPod := object.(*corev1.Pod); isPod {
				text += fmt.Sprintf(" %s, version %s, %d volumes", pod.Status.Phase, pod.Annotations[batch.JobVersionKey], len(pod.Spec.Volumes))
			}
			if owners := object.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != job.UID {
				text += " of somebody else"
			}
			found = append(found, text)
		}
	}
	s := &job.Status
	var conditions []string
	for _, c := range s.Conditions {
		conditions = append(conditions, string(c.Status))
	}
	found = append(found, fmt.Sprintf("Job %s: pending %d, running %d, succeeded %d, failed %d, terminating %d, unknown %d, version %d, retries %d, has been %v",
		s.State.Phase, s.Pending, s.Running, s.Succeeded, s.Failed, s.Terminating, s.Unknown, s.Version, s.RetryCount, slices.Compact(conditions)))
	slices.Sort(found)
	return found, nil
}

func objectsOf(list client.ObjectList) []client.Object {
	var objects []client.Object
	_ = meta.EachListItem(list, func(object runtime.Object) error {
		objects = append(objects, object.(client.Object))
		return nil
	})
	return objects
}

// tellStory takes a Job with tasks, plugins and a volume through its life and returns what there is at the end of each
// chapter.
func tellStory(t *testing.T, namespace string) map[string][]string {
	t.Helper()
	keepOpen(t, namespace)
	names := []string{"sim-master-0", "sim-worker-0", "sim-worker-1"}
	job := newJob(namespace, "sim", task("master", 1), task("worker", 2))
	job.Spec.Plugins = map[string][]string{"svc": {}, "ssh": {}, "env": {}}
	job.Spec.Volumes = []batch.VolumeSpec{{MountPath: "/data", VolumeClaim: &corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}}
	chapters := map[string][]string{}
	end := func(chapter string, phase batch.JobPhase) {
		t.Helper()
		awaitPhase(t, job, phase)
		// What follows from the phase comes after it.
		var last []string
		apitest.Eventually(t, func(ctx context.Context) error {
			if err := api.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
				return err
			}
			now, err := belongings(ctx, job)
			if err == nil && !slices.Equal(now, last) {
				last, err = now, errors.New("it still changes")
			}
			if err != nil {
				time.Sleep(settling)
			}
			return err
		})
		chapters[chapter] = last
	}
	run := func(before map[string]*corev1.Pod) map[string]*corev1.Pod {
		t.Helper()
		var pods map[string]*corev1.Pod
		if before == nil {
			pods = awaitPods(t, namespace, names...)
		} else {
			pods = awaitReplaced(t, namespace, before, names...)
		}
		finish(t, corev1.PodRunning, slices.Collect(maps.Values(pods))...)
		return pods
	}

	create(t, job)
	pods := run(nil)
	end("1 it runs", batch.Running)
	awaitGone(t, command(t, job, bus.RestartJobAction))
	pods = run(pods)
	end("2 it runs again", batch.Running)
	awaitGone(t, command(t, job, bus.AbortJobAction))
	end("3 it is suspended", batch.Aborted)
	awaitGone(t, command(t, job, bus.ResumeJobAction))
	pods = run(pods)
	end("4 it is resumed", batch.Running)
	finish(t, corev1.PodSucceeded, slices.Collect(maps.Values(pods))...)
	end("5 it is done", batch.Completed)
	return chapters
}

// settling is how long nothing may change for a chapter to be over: a life takes less.
const settling = time.Second

func TestControllersThatAreKilledAtEveryWriteComeToTheSameEnd(t *testing.T) {
	want := tellStory(t, namespaceFor(t, "undisturbed"))
	namespace := namespaceFor(t, "killed")
	stop := keepDying(t, namespace, controllers.Options{JobWorkers: 1})
	got := tellStory(t, namespace)
	writes := stop()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("left alone (-), killed (+):\n%s\nThe controllers died of\n%s", diff, strings.Join(writes, "\n"))
	}
	// That they have died of what the story is about.
	for _, write := range []string{"POST podgroups 201", "POST persistentvolumeclaims 201", "POST configmaps 201", "POST services 201",
		"POST secrets 201", "POST networkpolicies 201", "POST pods 201", "PATCH jobs/sim/status 200", "DELETE pods/sim-worker-1 200",
		"DELETE commands/"} {
		if !slices.ContainsFunc(writes, func(w string) bool { return strings.HasPrefix(w, write) }) {
			t.Errorf("none died of %s, of\n%s", write, strings.Join(writes, "\n"))
		}
	}
}
