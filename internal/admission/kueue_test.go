package admission

import (
	"context"
	"hekla.sh/hekla/internal/admission/held"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// withDefaultQueue is a shelf that has a LocalQueue default in one namespace.
type withDefaultQueue struct{ shelf }

func (s *withDefaultQueue) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, is := object.(*v1beta2.LocalQueue); !is {
		return s.shelf.Get(ctx, key, object, options...)
	}
	if key.Namespace != "team" || key.Name != "default" {
		return apierrors.NewNotFound(v1beta2.Resource("localqueues"), key.Name)
	}
	return nil
}

func TestAJobThatNamesALocalQueueWaitsForItsWorkload(t *testing.T) {
	s, handler := newServer(t, &shelf{}, nil)
	s.cached = &withDefaultQueue{}
	for name, test := range map[string]struct {
		namespace, object string
		queue, scheduler  string
		suspended         bool
	}{
		"that is labelled": {namespace: "other", object: "metadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}}\nspec: {template: {spec: {containers: []}}}",
			queue: "q", scheduler: "volcano", suspended: true},
		"that was to run at once": {namespace: "other", object: "metadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}}\nspec: {suspend: false, template: {spec: {schedulerName: default-scheduler}}}",
			queue: "q", scheduler: "volcano", suspended: true},
		"that has chosen its scheduler": {namespace: "other", object: "metadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}}\nspec: {template: {spec: {schedulerName: mine}}}",
			queue: "q", scheduler: "mine", suspended: true},
		"that names none, with a LocalQueue default": {namespace: "team", object: "metadata: {name: a}\nspec: {template: {spec: {containers: []}}}",
			queue: "default", scheduler: "volcano", suspended: true},
		"that names none": {namespace: "other", object: "metadata: {name: a}\nspec: {template: {spec: {containers: []}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			a := asked{path: "/kueue/jobs/mutate", operation: "CREATE", namespace: test.namespace, object: test.object}
			job := patched[batchv1.Job](t, a, ask(t, handler, a))
			suspended := job.Spec.Suspend != nil && *job.Spec.Suspend
			if got := job.Labels[v1beta2.QueueNameLabel]; got != test.queue || suspended != test.suspended || job.Spec.Template.Spec.SchedulerName != test.scheduler {
				t.Errorf("it is in queue %q, suspended %v, its pods are of %q", got, suspended, job.Spec.Template.Spec.SchedulerName)
			}
		})
	}
}

func TestAJobThatNamesNoLocalQueueWaitsWhereItIsManaged(t *testing.T) {
	const managed = "kubernetes.io/metadata.name notin (kube-system)"
	named := &shelf{}
	for name, test := range map[string]struct {
		known     held.Known
		namespace string
		queue     string
		suspended bool
	}{
		"until it names one":                      {held.Known{HoldsUnnamed: true, Managed: managed}, "other", "", true},
		"not if they run as they are":             {held.Known{Managed: managed}, "other", "", false},
		"in the LocalQueue default":               {held.Known{HoldsUnnamed: true, Managed: managed}, "team", "default", true},
		"not in a namespace that is not selected": {held.Known{HoldsUnnamed: true, Managed: "red"}, "other", "", false},
		"not even with a LocalQueue default":      {held.Known{HoldsUnnamed: true, Managed: "red"}, "team", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s, handler := newServer(t, named, nil)
			s.cached = &withDefaultQueue{}
			known := *s.settings.Load()
			known.workloads = test.known
			s.settings.Store(&known)
			a := asked{path: "/kueue/jobs/mutate", operation: "CREATE", namespace: test.namespace, object: "metadata: {name: a}\nspec: {template: {spec: {containers: []}}}"}
			job := patched[batchv1.Job](t, a, ask(t, handler, a))
			suspended := job.Spec.Suspend != nil && *job.Spec.Suspend
			if got := job.Labels[v1beta2.QueueNameLabel]; got != test.queue || suspended != test.suspended {
				t.Errorf("it is in queue %q, suspended %v", got, suspended)
			}
		})
	}
}

func TestAPodThatNamesALocalQueueIsGatedOnce(t *testing.T) {
	_, handler := newServer(t, &shelf{}, nil)
	for name, test := range map[string]struct {
		object string
		gated  bool
	}{
		"that stands alone":        {"metadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}}\nspec: {containers: []}", true},
		"that is gated already":    {"metadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}}\nspec: {schedulingGates: [{name: kueue.x-k8s.io/admission}], containers: []}", true},
		"of a Deployment":          {"metadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: '1', controller: true}]}\nspec: {containers: []}", true},
		"of a Job that is queued":  {"metadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: '1', controller: true}]}\nspec: {containers: []}", false},
		"of another scheduler":     {"metadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}}\nspec: {schedulerName: theirs, containers: []}", true},
		"that has a node already":  {"metadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}}\nspec: {nodeName: n1, containers: []}", false},
		"of a Job of Volcano, too": {"metadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}, ownerReferences: [{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: j, uid: '1', controller: true}]}\nspec: {containers: []}", false},
	} {
		t.Run(name, func(t *testing.T) {
			a := asked{path: "/kueue/pods/mutate", operation: "CREATE", namespace: "team", object: test.object}
			pod := patched[corev1.Pod](t, a, ask(t, handler, a))
			want := 0
			if test.gated {
				want = 1
			}
			if strings.Contains(test.object, "schedulerName") {
				if gates := pod.Spec.SchedulingGates; len(gates) != 2 || gates[1].Name != v1beta2.TopologyGate || pod.Spec.SchedulerName != "theirs" {
					t.Errorf("the pod is %+v", pod.Spec)
				}
				return
			}
			// The controller of a pod may wait until it is gone.
			if keeps := test.gated && !strings.Contains(test.object, "ownerReferences"); slices.Equal(pod.Finalizers, []string{v1beta2.PodFinalizer}) != keeps {
				t.Errorf("its finalizers are %v", pod.Finalizers)
			}
			if len(pod.Spec.SchedulingGates) != want || (pod.Labels[v1beta2.ManagedLabel] == "true") != test.gated || (pod.Spec.SchedulerName == "volcano") != test.gated {
				t.Errorf("the pod is %+v with labels %v", pod.Spec, pod.Labels)
			}
		})
	}
}

func TestObjectsOfKueueThatCannotBeMeantAreRefused(t *testing.T) {
	_, handler := newServer(t, &shelf{}, nil)
	const reserved = "\nstatus: {conditions: [{type: QuotaReserved, status: 'True', reason: QuotaReserved, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}"
	for name, test := range map[string]struct {
		kind, before, object, want string
	}{
		"a quota below nothing": {"clusterqueues", "", "metadata: {name: a}\nspec: {resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: -1}]}]}]}",
			"spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: Invalid value: \"-1\""},
		"a field that is not served": {"clusterqueues", "", "metadata: {name: a}\nspec: {admissionScope: {admissionMode: a}}", ""},
		"a cohort below itself":      {"cohorts", "", "metadata: {name: a}\nspec: {parentName: a}", "a cohort cannot be its own parent"},
		"a weight below nothing":     {"localqueues", "", "metadata: {name: a}\nspec: {fairSharing: {weight: -1}}", "spec.fairSharing.weight: Invalid value"},
		"a taint that is none":       {"resourceflavors", "", "metadata: {name: a}\nspec: {nodeTaints: [{key: 'a b', effect: NoSchedule}]}", "spec.nodeTaints[0].key"},
		"a workload without pods":    {"workloads", "", "metadata: {name: a}\nspec: {}", "spec.podSets: Required value"},
		"other pods than were admitted": {"workloads", "metadata: {name: a}\nspec: {podSets: [{name: main, count: 1, template: {}}]}" + reserved,
			"metadata: {name: a}\nspec: {podSets: [{name: main, count: 2, template: {}}]}" + reserved, "spec.podSets: Forbidden: field is immutable while quota is reserved"},
		"other pods than were queued": {"workloads", "metadata: {name: a}\nspec: {podSets: [{name: main, count: 1, template: {}}]}",
			"metadata: {name: a}\nspec: {podSets: [{name: main, count: 2, template: {}}]}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := asked{path: "/kueue/" + test.kind + "/validate", operation: "CREATE", object: test.object, before: test.before}
			if test.before != "" {
				a.operation = "UPDATE"
			}
			if got := refusal(ask(t, handler, a)); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// registered are the paths for kueue.x-k8s.io that an API server is told of, and whether Jobs without a label are sent.
func registered(w held.Known) (paths []string, sendsAllJobs bool) {
	options := validOptions()
	mutating, validating := options.webhooks(services(), options.settings(nil, w), []byte("bundle"))
	for i := range mutating {
		if strings.HasPrefix(*mutating[i].ClientConfig.Service.Path, "/kueue/") {
			paths = append(paths, *mutating[i].ClientConfig.Service.Path)
		}
		if mutating[i].Rules[0].Resources[0] == "jobs" && mutating[i].Rules[0].APIGroups[0] == "batch" {
			sendsAllJobs = !slices.ContainsFunc(mutating[i].MatchConditions, func(c admissionregistrationv1.MatchCondition) bool { return c.Name == "is-queued" })
		}
	}
	for i := range validating {
		if path := *validating[i].ClientConfig.Service.Path; strings.HasPrefix(path, "/kueue/") {
			paths = append(paths, path)
		}
	}
	return paths, sendsAllJobs
}

func TestJobsAndPodsAreHeldBackOnlyWhereTheyWouldBeAdmitted(t *testing.T) {
	holds, checks := []string{"/kueue/jobs/mutate", "/kueue/pods/mutate"}, []string{"/kueue/clusterqueues/validate", "/kueue/cohorts/validate",
		"/kueue/localqueues/validate", "/kueue/resourceflavors/validate", "/kueue/workloads/validate"}
	all := slices.Concat(holds, checks, []string{"/kueue/jobs/validate", "/kueue/volcanojobs/validate", "/kueue/pods/validate"})
	for name, test := range map[string]struct {
		known        held.Known
		want         []string
		sendsAllJobs bool
	}{
		"by no scheduler":           {held.Known{}, checks, false},
		"by ours":                   {held.Known{IsOn: true}, all, false},
		"with a LocalQueue default": {held.Known{IsOn: true, HaveDefaultQueue: true}, all, true},
		"with Jobs that wait until they name a LocalQueue": {held.Known{IsOn: true, HoldsUnnamed: true}, all, true},
		"by Kueue itself":                    {held.Known{IsOn: true, KueueRuns: true, HaveDefaultQueue: true}, nil, false},
		"by Kueue, and ours is switched off": {held.Known{KueueRuns: true}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, sendsAll := registered(test.known); !slices.Equal(got, test.want) || sendsAll != test.sendsAllJobs {
				t.Errorf("registered are %v, all Jobs are sent: %v", got, sendsAll)
			}
		})
	}
}
