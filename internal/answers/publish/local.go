package publish

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hekla.sh/hekla/internal/answers/api"
)

// Service is the name of the Service by which the API server passes questions on.
const Service = "volcano-scheduler-answers"

// APIService is the name of the APIService.
var APIService = api.GroupVersion.Version + "." + api.GroupVersion.Group

// Visibility are the names of the APIServices of Kueue's group for the places of Workloads.
func Visibility() (names []string) {
	for _, version := range api.VisibilityVersions {
		names = append(names, version+"."+api.VisibilityGroup)
	}
	return names
}

// Local returns what lets an API server pass questions on to a process on its own host: a Service that names the host,
// [APIService], and further APIServices by their names. The process adds its port and its authority.
func Local(namespace string, further ...string) []*unstructured.Unstructured {
	objects := []*unstructured.Unstructured{
		{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": Service, "namespace": namespace},
			"spec": map[string]any{"type": "ExternalName", "externalName": "localhost"},
		}},
	}
	for i, name := range append([]string{APIService}, further...) {
		version, group, _ := strings.Cut(name, ".")
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"group": group, "version": version, "groupPriorityMinimum": int64(100), "versionPriority": int64(100 - i),
				"service": map[string]any{"name": Service, "namespace": namespace},
			},
		}})
	}
	return objects
}
