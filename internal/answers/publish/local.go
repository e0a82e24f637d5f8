package publish

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hekla.sh/hekla/internal/answers/api"
)

// Service is the name of the Service by which the API server passes questions on.
const Service = "volcano-scheduler-answers"

// APIService is the name of the APIService.
var APIService = api.GroupVersion.Version + "." + api.GroupVersion.Group

// Local returns what lets an API server pass questions on to a process on its own host: a Service that names the host,
// and the APIService. The process adds its port and its authority.
func Local(namespace string) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": Service, "namespace": namespace},
			"spec": map[string]any{"type": "ExternalName", "externalName": "localhost"},
		}},
		{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": APIService},
			"spec": map[string]any{
				"group": api.GroupVersion.Group, "version": api.GroupVersion.Version, "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
				"service": map[string]any{"name": Service, "namespace": namespace},
			},
		}},
	}
}
