package controllers_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"hekla.sh/hekla/test/apitest"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/controllers"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func newLonePod(namespace, name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: podSpec()}
	pod.Spec.SchedulerName = "volcano"
	return pod
}

// awaitGroups waits until the namespace holds so many PodGroups and every pod in it names one of them.
func awaitGroups(t *testing.T, namespace string, groups, pods int) []scheduling.PodGroup {
	t.Helper()
	list := &scheduling.PodGroupList{}
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		names := map[string]bool{}
		for _, group := range list.Items {
			names[group.Name] = true
		}
		present, err := podsIn(ctx, namespace)
		if err != nil {
			return err
		}
		for _, pod := range present {
			if named := pod.Annotations[scheduling.KubeGroupNameAnnotationKey]; !names[named] {
				return fmt.Errorf("pod %s names PodGroup %q, there are %v", pod.Name, named, names)
			}
		}
		if len(names) != groups || len(present) != pods {
			return fmt.Errorf("%d PodGroups and %d pods, want %d and %d", len(names), len(present), groups, pods)
		}
		return nil
	})
	return list.Items
}

func TestALonePodGetsAPodGroupAndTakesItAlong(t *testing.T) {
	namespace := namespaceFor(t, "lone")
	change(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, func(namespace *corev1.Namespace) {
		namespace.Annotations = map[string]string{scheduling.QueueNameAnnotationKey: "research"}
	})
	pod := newLonePod(namespace, "one")
	pod.Annotations = map[string]string{scheduling.PreemptableKey: "true"}
	create(t, pod)
	group := awaitGroups(t, namespace, 1, 1)[0]
	if group.Name != "podgroup-"+string(pod.UID) || group.Spec.MinMember != 1 || group.Spec.Queue != "research" ||
		group.Spec.MinResources.Cpu().Value() != 1 || group.Annotations[scheduling.PreemptableKey] != "true" {
		t.Errorf("the PodGroup is %s, %+v", group.Name, group)
	}
	if err := api.Delete(apitest.Context(t), pod); err != nil {
		t.Fatal(err)
	}
	awaitGroups(t, namespace, 0, 0)
}

// webTemplate is a template of pods of a server.
func webTemplate() (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	labels := map[string]string{"app": "web"}
	spec := podSpec()
	spec.SchedulerName, spec.RestartPolicy = "volcano", corev1.RestartPolicyAlways
	atOnce := int64(0) // there is no kubelet that would let them end
	spec.TerminationGracePeriodSeconds = &atOnce
	return &metav1.LabelSelector{MatchLabels: labels}, corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}
}

func newDeployment(namespace string, replicas int32, annotations map[string]string) *appsv1.Deployment {
	selector, template := webTemplate()
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Annotations: annotations},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: template},
	}
}

func TestPodsOfADeploymentShareAPodGroup(t *testing.T) {
	namespace := namespaceFor(t, "deployment")
	deployment := newDeployment(namespace, 4, map[string]string{scheduling.GroupMinMemberAnnotationKey: "3"})
	create(t, deployment)
	group := awaitGroups(t, namespace, 1, 4)[0]
	owner := metav1.GetControllerOf(&group)
	if group.Spec.MinMember != 3 || group.Spec.Queue != "default" || owner == nil || owner.Kind != "ReplicaSet" {
		t.Errorf("the PodGroup is %+v owned by %+v", group.Spec, owner)
	}

	// A PodGroup that vanishes while its pods live comes back.
	if err := api.Delete(apitest.Context(t), &group); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, func(ctx context.Context) error {
		again := &scheduling.PodGroup{}
		err := api.Get(ctx, client.ObjectKeyFromObject(&group), again)
		if err == nil && again.UID == group.UID {
			err = fmt.Errorf("the old PodGroup is still there")
		}
		return err
	})

	// Scaled to nothing, the ReplicaSet stays and its PodGroup goes.
	change(t, deployment, func(deployment *appsv1.Deployment) { *deployment.Spec.Replicas = 0 })
	awaitGroups(t, namespace, 0, 0)
}

func TestAnAnnotationThatCannotBeReadIsToldOnThePod(t *testing.T) {
	namespace := namespaceFor(t, "annotation")
	pod := newLonePod(namespace, "one")
	pod.Annotations = map[string]string{scheduling.GroupMinMemberAnnotationKey: "many"}
	create(t, pod)
	awaitEvent(t, pod, "InvalidAnnotation", `scheduling.volcano.sh/group-min-member: "many"`)
	awaitGroups(t, namespace, 1, 1)
}

func TestPodsOfOthersAreLeftAlone(t *testing.T) {
	namespace := namespaceFor(t, "others")
	foreign := newLonePod(namespace, "foreign")
	foreign.Spec.SchedulerName = "default-scheduler"
	create(t, foreign)
	placed := newLonePod(namespace, "placed")
	placed.Annotations = map[string]string{scheduling.KubeGroupNameAnnotationKey: "mine"}
	create(t, placed)
	// When this later one has its PodGroup, the earlier ones have been looked at.
	create(t, newLonePod(namespace, "witness"))
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := podsIn(ctx, namespace)
		if err == nil && pods["witness"].Annotations[scheduling.KubeGroupNameAnnotationKey] == "" {
			err = fmt.Errorf("no PodGroup yet")
		}
		return err
	})
	pods, err := podsIn(apitest.Context(t), namespace)
	if err != nil {
		t.Fatal(err)
	}
	if got, found := pods["foreign"].Annotations[scheduling.KubeGroupNameAnnotationKey]; found {
		t.Errorf("the other scheduler's pod was put into %q", got)
	}
	if got := pods["placed"].Annotations[scheduling.KubeGroupNameAnnotationKey]; got != "mine" {
		t.Errorf("the pod was moved from mine to %q", got)
	}
	for _, name := range []string{"foreign", "placed"} {
		key := client.ObjectKey{Namespace: namespace, Name: "podgroup-" + string(pods[name].UID)}
		if err := api.Get(apitest.Context(t), key, &scheduling.PodGroup{}); !apierrors.IsNotFound(err) {
			t.Errorf("a PodGroup was made for %s (%v)", name, err)
		}
	}
}

// run plays the scheduler and the kubelets: it puts the pods that are not on a node on one, and makes them ready.
func run(t *testing.T, namespace string) {
	t.Helper()
	// Pods on a node that does not exist would be removed after a while.
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := api.Create(apitest.Context(t), node); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Delete(context.Background(), node) })
	pods, err := podsIn(apitest.Context(t), namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
			continue
		}
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}}
		if err := api.SubResource("binding").Create(apitest.Context(t), pod, binding); err != nil {
			t.Fatal(err)
		}
		changeStatus(t, pod, func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		})
	}
}

// awaitMinimums waits until there is a PodGroup of each of these minimums, and no other, and returns them so.
func awaitMinimums(t *testing.T, namespace string, minimums ...int32) []scheduling.PodGroup {
	t.Helper()
	slices.Sort(minimums)
	list := &scheduling.PodGroupList{}
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		slices.SortFunc(list.Items, func(a, b scheduling.PodGroup) int { return cmp.Compare(a.Spec.MinMember, b.Spec.MinMember) })
		var got []int32
		for _, group := range list.Items {
			got = append(got, group.Spec.MinMember)
		}
		if !slices.Equal(got, minimums) {
			return fmt.Errorf("the minimums are %v, want %v", got, minimums)
		}
		return nil
	})
	return list.Items
}

func TestAMinimumIsAskedOfAllReplicaSetsOfADeploymentTogether(t *testing.T) {
	namespace := namespaceFor(t, "rollout")
	deployment := newDeployment(namespace, 2, map[string]string{scheduling.GroupMinMemberAnnotationKey: "2"})
	deployment.Spec.Template.Annotations = map[string]string{scheduling.QueueNameAnnotationKey: "a"}
	surge, none := intstr.FromInt32(1), intstr.FromInt32(0)
	deployment.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &none}
	create(t, deployment)
	awaitGroups(t, namespace, 1, 2)
	old := awaitMinimums(t, namespace, 2)[0]
	run(t, namespace)

	change(t, deployment, func(deployment *appsv1.Deployment) {
		deployment.Spec.Template.Annotations = map[string]string{scheduling.QueueNameAnnotationKey: "b"}
	})
	awaitGroups(t, namespace, 2, 3)
	groups := awaitMinimums(t, namespace, 1, 2)
	if groups[1].UID != old.UID || groups[1].Spec.Queue != "a" || groups[0].Spec.Queue != "b" || groups[0].Spec.MinResources.Cpu().Value() != 1 {
		t.Errorf("with the first new pod the PodGroups are %+v", groups)
	}

	// In the middle of it the controllers die. When the new pod runs, one of the old ones goes, and its PodGroup needs
	// one.
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	run(t, namespace)
	var err error
	if process, err = cluster.Run(context.Background(), program); err != nil {
		t.Fatal(err)
	}
	awaitGroups(t, namespace, 2, 3)
	awaitMinimums(t, namespace, 1, 1)
	run(t, namespace)
	awaitGroups(t, namespace, 1, 2)
	if last := awaitMinimums(t, namespace, 2)[0]; last.UID == old.UID || last.Spec.MinResources.Cpu().Value() != 2 {
		t.Errorf("in the end the PodGroup is %+v", last)
	}
}

func TestAStatefulSetThatMakesOnePodAfterTheOtherIsNotHeldUp(t *testing.T) {
	namespace := namespaceFor(t, "ordered")
	selector, template := webTemplate()
	replicas := int32(3)
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Annotations: map[string]string{scheduling.GroupMinMemberAnnotationKey: "3"}},
		Spec:       appsv1.StatefulSetSpec{Replicas: &replicas, Selector: selector, Template: template, ServiceName: "web"},
	}
	create(t, set)
	for i := range replicas {
		awaitGroups(t, namespace, 1, int(i)+1)
		awaitMinimums(t, namespace, i+1)
		run(t, namespace)
	}
	pods, err := podsIn(apitest.Context(t), namespace)
	if err != nil {
		t.Fatal(err)
	}
	awaitEvent(t, pods["web-0"], "InvalidAnnotation", "3 pods cannot start together, because StatefulSet web makes one after the other")

	parallel := set.DeepCopy()
	parallel.ObjectMeta = metav1.ObjectMeta{Namespace: namespaceFor(t, "parallel"), Name: "web", Annotations: set.Annotations}
	parallel.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	create(t, parallel)
	awaitGroups(t, parallel.Namespace, 1, 3)
	awaitMinimums(t, parallel.Namespace, 3)
}

func TestAnyOwnerThatMayBeReadHasASay(t *testing.T) {
	namespace := namespaceFor(t, "owners")
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "readable", Annotations: map[string]string{
			scheduling.GroupMinMemberAnnotationKey: "2", scheduling.GroupMinResourcesAnnotationKey: `{"cpu": "7"}`,
			scheduling.QueueNameAnnotationKey: "research", scheduling.NetworkTopologyModeKey: "soft", scheduling.PreemptableKey: "true",
		}},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 1}}},
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "unreadable", Annotations: service.Annotations}}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job", Annotations: service.Annotations},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: podSpec()}},
	}
	two, deadline := int32(2), int64(3600)
	job.Spec.Parallelism, job.Spec.Template.Spec.SchedulerName, job.Spec.ActiveDeadlineSeconds = &two, "volcano", &deadline
	for _, object := range []client.Object{service, account, job} {
		create(t, object)
	}
	owned := func(name string, owner *metav1.OwnerReference) *corev1.Pod {
		pod := newLonePod(namespace, name)
		pod.OwnerReferences = []metav1.OwnerReference{*owner}
		create(t, pod)
		return pod
	}
	owned("a", metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service")))
	forbidden := owned("b", metav1.NewControllerRef(account, corev1.SchemeGroupVersion.WithKind("ServiceAccount")))
	unknown := owned("c", metav1.NewControllerRef(&metav1.ObjectMeta{Name: "x", UID: "u-1"},
		schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Elsewhere"}))
	awaitEvent(t, forbidden, "OwnerNotRead", "serviceaccounts")
	awaitEvent(t, unknown, "OwnerNotRead", "Elsewhere")
	for _, group := range awaitGroups(t, namespace, 4, 5) {
		owner := metav1.GetControllerOf(&group)
		if isRead := owner.Kind == "Service" || owner.Kind == "Job"; isRead != (group.Spec.MinMember == 2 && group.Spec.Queue == "research" &&
			group.Spec.MinResources.Cpu().Value() == 7 && group.Spec.NetworkTopology != nil && group.Annotations[scheduling.PreemptableKey] == "true") {
			t.Errorf("the PodGroup of a %s is %+v", owner.Kind, group)
		}
		if got := group.Annotations[scheduling.ActiveDeadlineKey]; (got == "1h0m0s") != (owner.Kind == "Job") {
			t.Errorf("the PodGroup of a %s has the deadline %q", owner.Kind, got)
		}
	}
}

// A Service stands for a JobSet: the Jobs that it controls make the pods.
func TestTheTopmostOwnerWithAMinimumMakesThePodGroup(t *testing.T) {
	namespace := namespaceFor(t, "above")
	set := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "set", Annotations: map[string]string{
			scheduling.GroupMinMemberAnnotationKey: "4", scheduling.QueueNameAnnotationKey: "research"}},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 1}}},
	}
	create(t, set)
	jobOf := func(name string, parallelism int32, annotations map[string]string) {
		job := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, corev1.SchemeGroupVersion.WithKind("Service"))}},
			Spec: batchv1.JobSpec{Parallelism: &parallelism, Completions: &parallelism, Template: corev1.PodTemplateSpec{Spec: podSpec()}},
		}
		job.Spec.Template.Spec.SchedulerName = "volcano"
		cpu := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(parallelism), resource.DecimalSI)}
		job.Spec.Template.Spec.Containers[0].Resources.Requests = cpu
		create(t, job)
	}
	jobOf("driver", 1, nil)
	jobOf("worker", 3, map[string]string{scheduling.GroupMinMemberAnnotationKey: "3", scheduling.PreemptableKey: "true"})
	groups := awaitGroups(t, namespace, 1, 4)
	apitest.Eventually(t, func(ctx context.Context) error {
		group := &scheduling.PodGroup{}
		if err := api.Get(ctx, client.ObjectKeyFromObject(&groups[0]), group); err != nil {
			return err
		}
		owner := metav1.GetControllerOf(group)
		if owner == nil || owner.Name != "set" || group.Name != scheduling.PodGroupNamePrefix+string(set.UID) || group.Spec.MinMember != 4 || group.Spec.Queue != "research" ||
			group.Spec.MinResources.Cpu().Value() != 1+3*3 {
			return fmt.Errorf("the PodGroup is %+v", group)
		}
		return nil
	})
	apitest.Eventually(t, func(ctx context.Context) error {
		list := &corev1.EventList{}
		err := api.List(ctx, list, client.InNamespace(namespace))
		if err == nil && !slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
			return e.Reason == "InvalidAnnotation" && strings.Contains(e.Message, `"3" of Job worker does not count: Service set makes the PodGroup`)
		}) {
			err = fmt.Errorf("no Event names the annotation of the Job: %+v", list.Items)
		}
		return err
	})

	// The PodGroup is made again when it vanishes, and goes with its last pod.
	if err := api.Delete(t.Context(), &groups[0]); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, func(ctx context.Context) error {
		again := &scheduling.PodGroup{}
		if err := api.Get(ctx, client.ObjectKeyFromObject(&groups[0]), again); err != nil {
			return err
		}
		if again.UID == groups[0].UID || again.Spec.MinMember != 4 {
			return fmt.Errorf("it is not made again: %+v", again)
		}
		return nil
	})
	for _, name := range []string{"driver", "worker"} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := api.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatal(err)
		}
	}
	awaitGroups(t, namespace, 0, 0)
}

// givesUp answers one patch of a pod as a server does that has tried it in vain among the writes of others.
type givesUp struct {
	next      http.RoundTripper
	namespace string
	isNext    atomic.Bool // the next one is answered so
}

func (g *givesUp) RoundTrip(request *http.Request) (*http.Response, error) {
	isOfPod := request.Method == http.MethodPatch && strings.HasPrefix(request.URL.Path, "/api/v1/namespaces/"+g.namespace+"/pods/")
	if !isOfPod || !g.isNext.Swap(false) {
		return g.next.RoundTrip(request)
	}
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`
	return &http.Response{StatusCode: http.StatusConflict, Status: "409 Conflict", Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: request}, nil
}

func TestAPodJoinsItsPodGroupAfterAConflictOfWhichNoEventTells(t *testing.T) {
	namespace := namespaceFor(t, "conflict")
	g := &givesUp{namespace: namespace}
	through(t, controllers.Options{PodGroupWorkers: 1, SchedulerNames: []string{"volcano"}}, func(next http.RoundTripper) http.RoundTripper {
		g.next = next
		return g
	})
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owner"}}
	create(t, owner)
	for i := range 2 {
		g.isNext.Store(i == 1) // the first makes the PodGroup, whose event would wake the controller
		pod := newLonePod(namespace, fmt.Sprintf("pod-%d", i))
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
		create(t, pod)
		awaitGroups(t, namespace, 1, i+1)
	}
	if g.isNext.Load() {
		t.Error("nothing was refused")
	}
}
