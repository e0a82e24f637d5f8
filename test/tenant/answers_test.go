package tenant

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/localcluster"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/apitest"
)

// asker asks the scheduler with a token.
type asker struct{ address, token string }

// accountOf makes an account in a namespace with a role there, none if it is "", and returns an asker with its token.
func accountOf(t *testing.T, address, namespace, name, role string) asker {
	t.Helper()
	if err := admin.Create(apitest.Context(t), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	if role != "" {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}}
		if err := admin.Create(apitest.Context(t), binding); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	config, err := cluster.ServiceAccountConfig(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return asker{address, config.BearerToken}
}

// request sends a request; the caller closes the body of the response.
func (a asker) request(ctx context.Context, method, path, body, accept string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+a.address+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if r.Header.Set("Accept", accept); a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	return http.DefaultClient.Do(r)
}

// ask returns the code of the response and its text.
func (a asker) ask(ctx context.Context, method, path, body string) (int, string, error) {
	response, err := a.request(ctx, method, path, body, "application/json")
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// waitingGroup makes a PodGroup with a pod that fits on no node.
func waitingGroup(t *testing.T, namespace, name string) {
	t.Helper()
	create(t, admin, namespace, fmt.Sprintf("apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: %s}\nspec: {minMember: 1}", name))
	create(t, admin, namespace, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s-0, annotations: {scheduling.k8s.io/group-name: %s}}
spec: {schedulerName: volcano, containers: [{name: a, image: b, resources: {requests: {cpu: 64}}}]}`, name, name))
}

// question is what an account may ask about a namespace, or the cluster.
type question struct {
	what, method, path, body string
}

// questionsAbout are the questions about a namespace with a PodGroup. Of a Workload that does not exist the answer is
// that there is none.
func questionsAbout(t *testing.T, namespace, group string) []question {
	t.Helper()
	body, err := json.Marshal(api.Submission{PodGroup: &scheduling.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "new"},
		Spec: scheduling.PodGroupSpec{MinMember: 1, Queue: "default"}}})
	if err != nil {
		t.Fatal(err)
	}
	return []question{
		{"why a job waits", http.MethodGet, api.Jobs.Path(namespace, group), ""},
		{"why a pod waits", http.MethodGet, api.Pods.Path(namespace, group+"-0"), ""},
		{"a queue", http.MethodGet, api.Queues.Path(namespace, "default"), ""},
		{"a Workload", http.MethodGet, api.Workloads.Path(namespace, "none"), ""},
		{"what would happen", http.MethodPost, api.Submissions.Path(namespace, ""), string(body)},
	}
}

// ofCluster are the questions about the whole cluster.
var ofCluster = []question{
	{"a node", http.MethodGet, api.Nodes.Path("", "only"), ""},
	{"the diagnosis", http.MethodGet, api.Diagnoses.Path("", "scheduler"), ""},
	{"a snapshot", http.MethodGet, api.Snapshots.Path("", "scheduler"), ""},
}

// lists are the parts of the web page.
var lists = []string{"summary", "jobs", "queues", "nodes", "evictions", "cycles"}

// TestATenantMayAskOnlyAboutWhatTheTenantMaySee makes two tenants' jobs wait in one queue. The scheduler is asked
// directly, as the web page does, and the API server says who may.
func TestATenantMayAskOnlyAboutWhatTheTenantMaySee(t *testing.T) {
	port, err := localcluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	schedule(t, "--web-address="+address)
	for _, namespace := range []string{"asks", "asked"} {
		tenantOf(t, namespace)
	}
	waitingGroup(t, "asks", "mine")
	waitingGroup(t, "asked", "confidential")
	tenant, outsider := accountOf(t, address, "asks", "tenant", "edit"), accountOf(t, address, "asks", "outsider", "")
	allowed := func(code int) bool { return code == http.StatusOK || code == http.StatusNotFound }
	expect := func(who asker, name string, all []question, want func(code int) bool) {
		t.Helper()
		for _, q := range all {
			apitest.Eventually(t, func(ctx context.Context) error { // rights and objects show a moment later
				code, text, err := who.ask(ctx, q.method, q.path, q.body)
				if err == nil && !want(code) {
					err = fmt.Errorf("%s asks %s: %d %s", name, q.what, code, text)
				}
				if err == nil && (strings.Contains(text, "confidential") && code == http.StatusOK) {
					err = fmt.Errorf("%s asks %s and is told of another namespace: %s", name, q.what, text)
				}
				return err
			})
		}
	}
	is := func(code int) func(int) bool { return func(got int) bool { return got == code } }
	mine, other := questionsAbout(t, "asks", "mine"), questionsAbout(t, "asked", "confidential")
	expect(tenant, "a tenant", mine, allowed)
	expect(tenant, "a tenant", other, is(http.StatusForbidden))
	expect(tenant, "a tenant", ofCluster, is(http.StatusForbidden))
	for _, all := range [][]question{mine, other, ofCluster} {
		expect(outsider, "an account without a role", all, is(http.StatusForbidden))
		expect(asker{address, ""}, "a client without a token", all, is(http.StatusUnauthorized))
		expect(asker{address, "nonsense"}, "a client with a wrong token", all, is(http.StatusUnauthorized))
	}
	t.Run("the page", func(t *testing.T) { mayReadThePage(t, tenant, outsider) })
	t.Run("its events", func(t *testing.T) { mayFollowThePage(t, tenant, outsider) })
}

// mayReadThePage expects that a tenant reads the own rows of each list, and a outsider none.
func mayReadThePage(t *testing.T, tenant, outsider asker) {
	for _, list := range lists {
		path := api.Overviews.Path("", list)
		apitest.Eventually(t, func(ctx context.Context) error {
			code, text, err := tenant.ask(ctx, http.MethodGet, path, "")
			if err == nil && (code != http.StatusOK || list == "jobs" && !strings.Contains(text, "asks/mine")) {
				err = fmt.Errorf("a tenant reads %s: %d %s", list, code, text)
			}
			if strings.Contains(text, "confidential") {
				t.Errorf("%s shows a job of another namespace: %s", list, text)
			}
			return err
		})
		for want, who := range map[int]asker{http.StatusForbidden: outsider, http.StatusUnauthorized: {address: tenant.address}} {
			if code, text, err := who.ask(apitest.Context(t), http.MethodGet, path, ""); err != nil || code != want {
				t.Errorf("%s is read with %d %s %v, want %d", list, code, text, err, want)
			}
		}
	}
	// The files of the page say nothing of the cluster.
	if code, _, err := (asker{address: tenant.address}).ask(apitest.Context(t), http.MethodGet, "/", ""); err != nil || code != http.StatusOK {
		t.Errorf("the page itself is served with %d %v", code, err)
	}
}

// mayFollowThePage expects that a tenant gets server-sent events, and a outsider none.
func mayFollowThePage(t *testing.T, tenant, outsider asker) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for want, who := range map[int]asker{http.StatusOK: tenant, http.StatusForbidden: outsider, http.StatusUnauthorized: {address: tenant.address}} {
		response, err := who.request(ctx, http.MethodGet, api.Overviews.Path("", ""), "", "text/event-stream")
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(response.Body).ReadString('\n')
		if response.StatusCode != want || err != nil || want == http.StatusOK && line != "event: change\n" {
			t.Errorf("events come with %d %q %v, want %d", response.StatusCode, line, err, want)
		}
		_ = response.Body.Close()
	}
}
