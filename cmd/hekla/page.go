package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hekla.sh/hekla/internal/localcluster"
)

// pageReader is the ServiceAccount with whose token the web page of a local cluster is opened. It may read what the
// page shows, of all namespaces, and nothing else. Its role and binding have the same name.
const pageReader = "hekla-page"

// pageFile has the address of the page, in the folder of the cluster.
func pageFile(cluster *localcluster.Cluster) string { return filepath.Join(cluster.Dir(), "page") }

// choosePage returns where the page is served: on a port that was asked for, else where it was before, else on a port
// that is free. A port that was asked for and is taken is an error; a browser may have the address.
func choosePage(cluster *localcluster.Cluster, port int) (address string, err error) {
	before, err := os.ReadFile(pageFile(cluster))
	switch {
	case port != 0:
		if err := localcluster.TryPort(port); err != nil {
			return "", fmt.Errorf("--page-port=%d is not free: %w; choose another, or leave it out", port, err)
		}
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
	case err == nil:
		_, text, _ := net.SplitHostPort(strings.TrimSpace(string(before)))
		if kept, err := strconv.Atoi(text); err == nil && localcluster.TryPort(kept) == nil {
			return strings.TrimSpace(string(before)), nil
		}
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	return freeAddress()
}

// preparePage makes the reader of the page, and returns the flag of the scheduler that serves it.
func preparePage(ctx context.Context, cluster *localcluster.Cluster, port int) (flag string, err error) {
	address, err := choosePage(cluster, port)
	if err != nil {
		return "", err
	}
	if err := cluster.Apply(ctx, []*unstructured.Unstructured{
		{Object: map[string]any{
			"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": pageReader, "namespace": systemNamespace},
			"automountServiceAccountToken": false,
		}},
		{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": pageReader},
			"rules": []any{map[string]any{"apiGroups": []any{"answers.hekla.sh"}, "resources": []any{"jobs", "pods", "queues", "workloads", "nodes", "overviews"}, "verbs": []any{"get"}}},
		}},
		{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": pageReader},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": pageReader},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": pageReader, "namespace": systemNamespace}},
		}},
	}); err != nil {
		return "", fmt.Errorf("make the reader of the web page: %w", err)
	}
	return "--web-address=" + address, os.WriteFile(pageFile(cluster), []byte(address), 0o600)
}

// pageAddress returns the address of the page with a token in its fragment, which browsers send to no server; "" if the
// scheduler of the cluster does not run, or serves none.
func pageAddress(ctx context.Context, cluster *localcluster.Cluster) (string, error) {
	isServed := false
	for _, process := range cluster.Processes() {
		isServed = isServed || process.Name == "hekla-scheduler" && process.IsAlive()
	}
	address, err := os.ReadFile(pageFile(cluster))
	if !isServed || errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	config, err := cluster.ServiceAccountConfig(ctx, systemNamespace, pageReader)
	if err != nil {
		return "", err
	}
	return "http://" + strings.TrimSpace(string(address)) + "/#token=" + config.BearerToken, nil
}
