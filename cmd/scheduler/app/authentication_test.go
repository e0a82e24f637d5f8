package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"testing"

	"hekla.sh/hekla/test/apitest"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMetricsAreForThoseWhomTheAPIServerPermits(t *testing.T) {
	w := onCluster(t)
	p := w.start("--leader-elect=false", "--scheduler-name=nobody", "--authenticate-metrics")
	w.ready(p)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // it signs for itself
	defer transport.CloseIdleConnections()
	account := func(name string) string {
		t.Helper()
		object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := w.core.CoreV1().ServiceAccounts(systemNamespace).Create(t.Context(), object, metav1.CreateOptions{})
		must(t, err)
		config, err := w.cluster.ServiceAccountConfig(t.Context(), systemNamespace, name)
		must(t, err)
		return config.BearerToken
	}
	reader := "metrics-" + w.suffix
	tokenOfReader, tokenOfAnother := account(reader), account("another-"+w.suffix)
	_, err := w.core.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: reader},
		Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = w.core.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: reader},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reader},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: systemNamespace, Name: reader}}}, metav1.CreateOptions{})
	must(t, err)
	answer := func(ctx context.Context, token string) (int, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.numbers+"/metrics", nil)
		if err != nil {
			return 0, err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	expect := func(token string, want int) {
		t.Helper()
		apitest.Eventually(w.t, func(ctx context.Context) error {
			got, err := answer(ctx, token)
			if err == nil && got != want {
				err = fmt.Errorf("the answer is %d, want %d", got, want)
			}
			return err
		})
	}
	expect("", http.StatusUnauthorized)
	if _, err := get(t.Context(), "http://"+p.numbers+"/metrics"); err == nil {
		t.Error("metrics are served in the clear, too")
	}
	expect(tokenOfAnother, http.StatusForbidden)
	expect(tokenOfReader, http.StatusOK)
}
