package admission

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/localcluster"
)

// bind gives an account a ClusterRole.
func bind(t *testing.T, account, role string) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account + "-" + strings.ReplaceAll(role, ":", "-")},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: system, Name: account}},
	}
	if err := api.Create(apitest.Context(t), binding); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Delete(context.Background(), binding) })
}

// tokenOf makes an account and returns a token of it.
func tokenOf(t *testing.T, account string) string {
	t.Helper()
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: account}}
	if err := api.Create(apitest.Context(t), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Delete(context.Background(), object) })
	config, err := cluster.ServiceAccountConfig(apitest.Context(t), system, account)
	if err != nil {
		t.Fatal(err)
	}
	return config.BearerToken
}

// runControllers runs the other server of this program, and returns where its metrics are.
func runControllers(t *testing.T) string {
	t.Helper()
	var addresses [2]string
	for i := range addresses {
		port, err := localcluster.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		addresses[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	kubeconfig, _, err := cluster.ServiceAccountKubeconfig(apitest.Context(t), system, "volcano-controllers")
	if err != nil {
		t.Fatal(err)
	}
	running, err := cluster.Run(apitest.Context(t), localcluster.Program{
		Name: "hekla-controllers", Path: program.Path,
		Args: []string{
			"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--controllers=gc-controller", "--scheduler-name=nobody",
			"--enable-healthz", "--healthz-address=" + addresses[0],
			"--enable-metrics", "--authenticate-metrics", "--listen-address=" + addresses[1],
		},
		ReadyURL: "http://" + addresses[0] + "/readyz",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = running.Stop() })
	return addresses[1]
}

// With --authenticate-metrics, and the rights that the chart gives with it, clients get the metrics only if the API
// server permits it, and only over TLS.
func TestMetricsAreForThoseWhomTheAPIServerPermits(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "metrics-reader"},
		Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
	if err := api.Create(apitest.Context(t), role); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Delete(context.Background(), role) })
	reader, another := tokenOf(t, "reader"), tokenOf(t, "another")
	bind(t, "reader", role.Name)
	bind(t, "volcano-admission", "system:auth-delegator")
	bind(t, "volcano-controllers", "system:auth-delegator")
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // they sign for themselves
	defer transport.CloseIdleConnections()
	for name, address := range map[string]string{"admission": metricsAddress, "controllers": runControllers(t)} {
		answer := func(ctx context.Context, scheme, token string) (int, string, error) {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+"/metrics", nil)
			if err != nil {
				return 0, "", err
			}
			if token != "" {
				request.Header.Set("Authorization", "Bearer "+token)
			}
			response, err := (&http.Client{Transport: transport}).Do(request)
			if err != nil {
				return 0, "", err
			}
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			return response.StatusCode, string(body), err
		}
		for _, test := range []struct {
			who, token string
			want       int
		}{{"nobody", "", http.StatusUnauthorized}, {"another", another, http.StatusForbidden}, {"the reader", reader, http.StatusOK}} {
			// Who may do what is seen by the API server a moment after it was written.
			apitest.Eventually(t, func(ctx context.Context) error {
				got, body, err := answer(ctx, "https", test.token)
				if err == nil && (got != test.want || (test.want == http.StatusOK) != strings.Contains(body, "go_goroutines")) {
					err = fmt.Errorf("%s: %s gets %d and %d bytes, want %d", name, test.who, got, len(body), test.want)
				}
				return err
			})
		}
		if got, _, err := answer(apitest.Context(t), "http", reader); err == nil && got == http.StatusOK {
			t.Errorf("%s: metrics are served in the clear, too", name)
		}
	}
}
