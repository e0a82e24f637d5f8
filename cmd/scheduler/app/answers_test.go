package app

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/answers/diagnosis"
	"hekla.sh/hekla/internal/answers/publish"
	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/explain/survey"
	"hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/apitest"
)

// register makes what the installer makes, for a process on the machine of the API server.
func (w *testCluster) register(further ...string) {
	w.t.Helper()
	must(w.t, w.cluster.Apply(w.t.Context(), publish.Local(systemNamespace, further...)))
	w.t.Cleanup(func() {
		for _, name := range append(further, publish.APIService) {
			err := w.core.Discovery().RESTClient().Delete().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices/" + name).
				Do(context.WithoutCancel(w.t.Context())).Error()
			if err != nil {
				w.t.Error(err)
			}
		}
	})
}

// user returns a client of an account that may view a namespace.
func (w *testCluster) user(name, namespace string) kubernetes.Interface {
	w.t.Helper()
	ctx := w.t.Context()
	_, err := w.core.CoreV1().ServiceAccounts(systemNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(w.t, err)
	_, err = w.core.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{api.GroupVersion.Group}, Resources: []string{"jobs", "queues", "pods"}, Verbs: []string{"get"}}}}, metav1.CreateOptions{})
	must(w.t, err)
	_, err = w.core.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: systemNamespace, Name: name}}}, metav1.CreateOptions{})
	must(w.t, err)
	config, err := w.cluster.ServiceAccountConfig(ctx, systemNamespace, name)
	must(w.t, err)
	client, err := kubernetes.NewForConfig(config)
	must(w.t, err)
	return client
}

func askThrough(ctx context.Context, client kubernetes.Interface, path string, into any) error {
	body, err := client.Discovery().RESTClient().Get().RequestURI(path).SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

func TestQuestionsAreAnsweredThroughTheAPIServer(t *testing.T) {
	w := onCluster(t)
	w.register()
	name, other := "asked-"+w.suffix, "other-"+w.suffix
	scheduler := "answers-" + w.suffix
	p := w.start("--leader-elect=false", "--scheduler-name="+scheduler, "--answers-address="+freeAddress(t), "--answers-service="+systemNamespace+"/"+publish.Service)
	w.ready(p)
	ctx := t.Context()
	for _, namespace := range []string{name, other} {
		_, err := w.core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		must(t, err)
	}
	_, err := w.batch.SchedulingV1beta1().Queues().Create(ctx, &v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.QueueSpec{DequeueStrategy: v1beta1.DequeueStrategyFIFO}}, metav1.CreateOptions{})
	must(t, err)
	// The first job of the queue is of another namespace, and too large for any node. That of the user waits behind it.
	w.waits(other, "secret", name, scheduler, "900")
	time.Sleep(1100 * time.Millisecond) // the age of objects has seconds
	w.waits(name, "mine", name, scheduler, "1")
	var answer api.Reply[api.Job]
	user := w.user("user-"+w.suffix, name)
	waitsBehind := func(client kubernetes.Interface, want string) func(context.Context) error {
		return func(ctx context.Context) error {
			answer = api.Reply[api.Job]{}
			if err := askThrough(ctx, client, api.Jobs.Path(name, "mine"), &answer); err != nil {
				return err
			}
			if answer.Answer.Cause.Code != "HeldUp" || len(answer.Answer.Ahead) != 1 || answer.Answer.Ahead[0].Job != want {
				return fmt.Errorf("the answer is %+v", answer.Answer.Cause)
			}
			return nil
		}
	}
	// The administrator has a client certificate, the user a token.
	apitest.Eventually(t, waitsBehind(w.core, other+"/secret"))
	if answer.Kind != "JobAnswer" || answer.Metadata.Name != "mine" {
		t.Errorf("the answer is a %s about %+v", answer.Kind, answer.Metadata)
	}
	apitest.Eventually(t, waitsBehind(user, "(another namespace)"))
	if text, _ := json.Marshal(answer); strings.Contains(string(text), "secret") {
		t.Errorf("a name of a namespace that the user may not see is in %s", text)
	}
	if err := askThrough(ctx, user, api.Jobs.Path(other, "secret"), &answer); !apierrors.IsForbidden(err) {
		t.Errorf("a job of another namespace: %v, want Forbidden", err)
	}
	if err := askThrough(ctx, user, api.Nodes.Path("", "node-1"), &answer); !apierrors.IsForbidden(err) {
		t.Errorf("a node: %v, want Forbidden", err)
	}
	if err := askThrough(ctx, user, api.Jobs.Path(name, "nothing"), &answer); !apierrors.IsNotFound(err) {
		t.Errorf("a job that is not there: %v, want NotFound", err)
	}
	var first api.Reply[api.Job]
	must(t, askThrough(ctx, w.core, api.Jobs.Path(other, "secret"), &first))
	if first.Answer.Cause.Code != string(verdict.TooLargeForAnyNode) || !first.Answer.Cause.Never {
		t.Errorf("the job that is too large: %+v", first.Answer.Cause)
	}
	var queue api.Reply[api.Queue]
	must(t, askThrough(ctx, user, api.Queues.Path(name, name), &queue))
	if queue.Answer.Jobs.Pending+queue.Answer.Jobs.Admitted != 2 || len(queue.Answer.Jobs.Waiting) != 1 {
		t.Errorf("the queue shows the user %+v, want two jobs and one name", queue.Answer.Jobs)
	}
	if list, err := w.core.Discovery().ServerResourcesForGroupVersion(api.GroupVersion.String()); err != nil || len(list.APIResources) != len(api.Resources) {
		t.Errorf("discovery: %v, %v", list, err)
	}
	var state api.Reply[diagnosis.Diagnosis]
	must(t, askThrough(ctx, w.core, api.Diagnoses.Path("", "scheduler")+"?gang=2xcpu=1", &state))
	d := &state.Answer
	if line := d.Queues[slices.IndexFunc(d.Queues, func(l survey.Line) bool { return l.Queue == name })]; line.Jobs != 2 || line.Oldest.Job != other+"/secret" {
		t.Errorf("the diagnosis says of the queue %+v", line)
	}
	if len(d.Room.Asked) != 1 || d.Cycles.Count == 0 || d.Configuration.Text == "" || d.Scheduler.Names[0] != scheduler || d.Health.RightsUnknown != "" ||
		!slices.ContainsFunc(d.Requests, func(l apiserver.Latency) bool { return strings.HasPrefix(l.Request, "patch podgroups") }) {
		t.Errorf("the diagnosis is %+v", d)
	}
	if err := askThrough(ctx, user, api.Diagnoses.Path("", "scheduler"), &state); !apierrors.IsForbidden(err) {
		t.Errorf("a diagnosis: %v, want Forbidden", err)
	}
	if err := askThrough(ctx, w.core, api.Diagnoses.Path("", "scheduler")+"?gang=cpu", &state); !apierrors.IsBadRequest(err) {
		t.Errorf("a gang that cannot be read: %v, want a bad request", err)
	}
	if _, err := get(ctx, "http://"+p.numbers+api.Jobs.Path(name, "mine")); err == nil {
		t.Error("the server of metrics answers questions, too")
	}
}

func TestQuestionsWithoutCredentialsAreRefused(t *testing.T) {
	w := onCluster(t)
	address := freeAddress(t)
	p := w.start("--leader-elect=false", "--scheduler-name=nobody", "--answers-address="+address)
	w.ready(p)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // it signs for itself
	defer transport.CloseIdleConnections()
	for name, headers := range map[string]map[string]string{
		"nothing":            nil,
		"a wrong token":      {"Authorization": "Bearer nonsense"},
		"headers of a proxy": {"X-Remote-User": "system:admin", "X-Remote-Group": "system:masters"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+api.Jobs.Path("default", "x"), nil)
		must(t, err)
		for key, value := range headers {
			request.Header.Set(key, value)
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		must(t, err)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s, want 401", name, response.Status)
		}
	}
}

// waits makes a PodGroup of one pod, which requests some CPUs.
func (w *testCluster) waits(namespace, name, queue, scheduler, cpu string) {
	w.t.Helper()
	ctx := w.t.Context()
	_, err := w.batch.SchedulingV1beta1().PodGroups(namespace).Create(ctx, &v1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1beta1.SchedulerNameKey: scheduler}},
		Spec:       v1beta1.PodGroupSpec{MinMember: 1, Queue: queue}}, metav1.CreateOptions{})
	must(w.t, err)
	_, err = w.core.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-0", Annotations: map[string]string{v1beta1.KubeGroupNameAnnotationKey: name}},
		Spec: corev1.PodSpec{SchedulerName: scheduler, AutomountServiceAccountToken: new(bool), Containers: []corev1.Container{{Name: "c", Image: "i",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}},
	}, metav1.CreateOptions{})
	must(w.t, err)
}

// TestAnAddressInUseEndsTheScheduler makes another process listen where questions are to be asked. That is found out
// during the start.
func TestAnAddressInUseEndsTheScheduler(t *testing.T) {
	w := onCluster(t)
	other, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = other.Close() }()
	for _, election := range []string{"--leader-elect=false", "--leader-elect-resource-name=in-use-" + w.suffix} {
		for _, flag := range []string{"--answers-address=", "--web-address="} {
			p := w.start(election, "--scheduler-name=in-use-"+w.suffix, flag+other.Addr().String())
			if err := w.ends(p); err == nil || !strings.Contains(err.Error(), "address already in use") {
				t.Errorf("%s %s: ended with %v", election, flag, err)
			}
		}
	}
}
