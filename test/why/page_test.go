package why

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/test/apitest"
	"hekla.sh/hekla/test/browser"
)

// pageAddress is where the scheduler serves its web page, and pageToken that of a reader who may only view the
// namespace of the examples.
var pageAddress, pageToken string

// page makes the reader of the page.
func page(ctx context.Context) (address, token string, err error) {
	port, err := localcluster.FreePort()
	if err != nil {
		return "", "", err
	}
	if err := cluster.Apply(ctx, []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "reader", "namespace": "default"}}},
		{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": map[string]any{"name": "reader", "namespace": "default"},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}},
		}},
	}); err != nil {
		return "", "", err
	}
	config, err := cluster.ServiceAccountConfig(ctx, "default", "reader")
	if err != nil {
		return "", "", err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), config.BearerToken, nil
}

// openPage opens the page. What a reader may see with a role the API server works out some time after the role was
// given, and while no job is there the reader sees nothing.
func openPage(t *testing.T, reader *browser.Browser) {
	t.Helper()
	if reader == nil {
		return
	}
	waiting := apitest.Object(t, "default", "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: other}, spec: {minMember: 1, queue: default}}")
	apitest.Eventually(t, func(ctx context.Context) error { return cluster.Apply(ctx, []*unstructured.Unstructured{waiting}) })
	t.Cleanup(func() { remove(t, waiting) })
	apitest.Eventually(t, func(context.Context) error {
		return reader.Do("open", browser.Arguments{"address": "http://" + pageAddress, "token": pageToken}, nil)
	})
}

// findInPage finds the cause with two clicks from the first page: the list of jobs, and the job.
func findInPage(t *testing.T, reader *browser.Browser, row, code string) {
	t.Helper()
	if reader == nil {
		return
	}
	var found struct {
		Clicks     int
		Code, Text string
	}
	apitest.Eventually(t, func(context.Context) error {
		if err := reader.Do("findCause", browser.Arguments{"job": row}, &found); err != nil {
			return err
		}
		if found.Code != code {
			return fmt.Errorf("the page says %s, want %s:\n%s", found.Code, code, found.Text)
		}
		return nil
	})
	if found.Clicks != 2 {
		t.Errorf("the cause was found with %d clicks", found.Clicks)
	}
	if code == "FailedCreate" && !strings.Contains(found.Text, "exceeded quota") {
		t.Errorf("the page does not name the quota:\n%s", found.Text)
	}
	for _, problem := range browser.Must[[]string](t, reader, "trouble", nil) {
		t.Error(problem)
	}
}
