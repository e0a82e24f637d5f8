package admission

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"hekla.sh/hekla/internal/admission"
	"hekla.sh/hekla/internal/admission/certificates"
)

// withoutServer kills the server for the rest of the test.
func withoutServer(t *testing.T) {
	t.Helper()
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The last of a process that is killed may go a moment after the process has.
	apitest.Eventually(t, func(ctx context.Context) error {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		return errors.Join(err, closed(listener))
	})
	t.Cleanup(func() {
		if err := startProgram(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}

func closed(listener net.Listener) error {
	if listener == nil {
		return nil
	}
	return listener.Close()
}

func TestWithoutAnAnswerOnlyJobsAndQueuesWait(t *testing.T) {
	haveBuiltInQueues(t)
	namespace := namespaceFor(t, "down", nil)
	held := apitest.Object(t, namespace, gang("held", ""))
	held.SetFinalizers([]string{"example.com/held"})
	if err := api.Create(apitest.Context(t), held); err != nil {
		t.Fatal(err)
	}
	withoutServer(t)

	create(t, namespace, pod("theirs", "{}", ""))
	create(t, namespace, pod("ours", `{volcano.sh/jdb-min-available: "50%", volcano.sh/resource-group: silver}`, "schedulerName: volcano"))
	create(t, namespace, podGroup("{minMember: 1}"))
	create(t, namespace, "apiVersion: bus.volcano.sh/v1alpha1\nkind: Command\nmetadata: {name: a}\naction: AbortJob\n"+
		"target: {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: held, uid: b}")
	deployment := create(t, namespace, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: a, image: b}]}
`)
	apitest.Eventually(t, func(ctx context.Context) error {
		made := &appsv1.Deployment{}
		if err := api.Get(ctx, client.ObjectKeyFromObject(deployment), made); err != nil {
			return err
		}
		if made.Status.Replicas != 2 {
			return fmt.Errorf("%d pods were made", made.Status.Replicas)
		}
		return nil
	})

	expect(t, api.Create(apitest.Context(t), apitest.Object(t, namespace, gang("late", ""))), `failed calling webhook "mutatejob.volcano.sh"`)
	expect(t, api.Create(apitest.Context(t), apitest.Object(t, "", queue("late", "{}"))), `failed calling webhook "mutatequeue.volcano.sh"`)
	expect(t, api.Delete(apitest.Context(t), apitest.Object(t, "", queue("default", "{}")), client.DryRunAll), "`default` queue can not be deleted")

	// What is already there may change in all but its spec, and go.
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"a": "b"}}}`))
	release := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))
	for _, err := range []error{
		api.Patch(apitest.Context(t), held, label),
		api.Patch(apitest.Context(t), apitest.Object(t, "", queue("default", "{}")), label),
		api.Status().Patch(apitest.Context(t), held, client.RawPatch(types.MergePatchType, []byte(`{"status": {"running": 1}}`))),
		api.Delete(apitest.Context(t), held),
		api.Patch(apitest.Context(t), held, release),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestWhatAUserBreaksIsMended(t *testing.T) {
	name := client.ObjectKey{Name: admission.ConfigurationName}
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := api.Get(apitest.Context(t), name, configuration); err != nil {
		t.Fatal(err)
	}
	count := len(configuration.Webhooks)
	configuration.Webhooks = configuration.Webhooks[:1]
	configuration.Webhooks[0].ClientConfig.CABundle = nil
	if err := api.Update(apitest.Context(t), configuration); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := api.Get(ctx, name, configuration); err != nil {
			return err
		}
		if len(configuration.Webhooks) != count || len(configuration.Webhooks[0].ClientConfig.CABundle) == 0 {
			return fmt.Errorf("%d webhooks are registered, want %d", len(configuration.Webhooks), count)
		}
		return nil
	})
}

// The certificates live for seconds here. Whatever is renewed, and whatever an API server has heard of it, no request
// may fail.
func TestNoRequestFailsWhileCertificatesAreRenewed(t *testing.T) {
	haveBuiltInQueues(t)
	namespace := namespaceFor(t, "rotation", nil)
	withoutServer(t)
	life := certificates.Life{Authority: 9 * time.Second, Serving: 6 * time.Second, Settle: 1500 * time.Millisecond}
	secret := client.ObjectKey{Namespace: system, Name: "volcano-admission-secret"}
	clear := &corev1.Secret{}
	if err := api.Get(apitest.Context(t), secret, clear); err != nil {
		t.Fatal(err)
	}
	clear.Data = nil
	if err := api.Update(apitest.Context(t), clear); err != nil {
		t.Fatal(err)
	}
	serve(t, address, life)
	serve(t, "127.0.0.1:0", life) // a second replica, which is not called but renews as well
	apitest.Eventually(t, isAsked)

	var asked, failed atomic.Int64
	ctx, stop := context.WithTimeout(apitest.Context(t), 15*time.Second)
	defer stop()
	var work sync.WaitGroup
	for worker := range 3 {
		work.Go(func() {
			for ctx.Err() == nil {
				err := api.Create(ctx, apitest.Object(t, namespace, gang(fmt.Sprintf("load-%d", worker), "")), client.DryRunAll)
				asked.Add(1)
				if err != nil && ctx.Err() == nil {
					failed.Add(1)
					t.Error(err)
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	authorities, servers := map[string]bool{}, map[string]bool{}
	for ctx.Err() == nil {
		stored := &corev1.Secret{}
		if err := api.Get(ctx, secret, stored); err == nil {
			authorities[string(stored.Data[certificates.AuthorityKey])] = true
			servers[string(stored.Data[certificates.ServingKey])] = true
		}
		time.Sleep(50 * time.Millisecond)
	}
	work.Wait()
	if len(authorities) < 3 || len(servers) < 3 || asked.Load() < 100 {
		t.Errorf("%d authorities and %d certificates during %d requests prove nothing", len(authorities), len(servers), asked.Load())
	}
	if failed.Load() > 0 {
		t.Errorf("%d of %d requests failed", failed.Load(), asked.Load())
	}
}

// serve runs a server in this process until the test ends. All say that they are to be found at the address of the
// program.
func serve(t *testing.T, at string, life certificates.Life) {
	t.Helper()
	mgr, err := manager.New(cluster.Config(), manager.Options{Scheme: api.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = admission.Add(mgr, admission.Options{
		Enabled: admission.DefaultEnabled(), SchedulerNames: []string{"volcano"}, MaxQueueDepth: 5,
		Namespace: system, URL: "https://" + address, Address: at, SecretName: "volcano-admission-secret",
		Life: life, Interval: 200 * time.Millisecond, ShutdownTimeout: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestABodyThatIsTooLargeIsRefusedAndTheNextIsAnswered(t *testing.T) {
	stored := &corev1.Secret{}
	if err := api.Get(apitest.Context(t), client.ObjectKey{Namespace: system, Name: "volcano-admission-secret"}, stored); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(stored.Data[certificates.BundleKey])
	caller := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	post := func(path string, body []byte) (int, error) {
		answer, err := caller.Post("https://"+address+path, "application/json", bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		review := &admissionv1.AdmissionReview{}
		err = json.NewDecoder(answer.Body).Decode(review)
		if answer.StatusCode == http.StatusOK && (err != nil || review.Response == nil) {
			return 0, fmt.Errorf("200, and no answer: %w", errors.Join(err))
		}
		return answer.StatusCode, answer.Body.Close()
	}
	for _, path := range admission.Paths() {
		// A server that refuses a body before it has read it may well close the stream.
		code, err := post(path, bytes.Repeat([]byte(" "), 8<<20))
		var broken *url.Error
		if code != http.StatusRequestEntityTooLarge && !errors.As(err, &broken) {
			t.Errorf("%s answers 8 MiB with %d, %v", path, code, err)
		}
		if code, err := post(path, []byte("{}")); code != http.StatusOK || err != nil {
			t.Errorf("%s answers the next request with %d, %v", path, code, err)
		}
	}
	// A Job nearly as large as an API server stores is judged like any other.
	namespace := namespaceFor(t, "large", nil)
	large := strings.Replace(gang("large", "queue: nowhere"), "image: b", "image: b, args: ["+strings.Repeat("x", 1<<20)+"]", 1)
	expect(t, api.Create(apitest.Context(t), apitest.Object(t, namespace, large)), `spec.queue: Not found: "nowhere"`)
}
