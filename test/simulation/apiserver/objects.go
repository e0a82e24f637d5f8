package apiserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Create makes objects, definitions and namespaces before all others. Objects of kinds that are not served are an
// error.
func (s *Server) Create(objects ...*unstructured.Unstructured) error {
	ordered := slices.Clone(objects)
	slices.SortStableFunc(ordered, func(a, b *unstructured.Unstructured) int { return cmp.Compare(rank(a), rank(b)) })
	for _, object := range ordered {
		path, err := s.Path(object)
		if err != nil {
			return err
		}
		s.begin()
		made := s.own(http.MethodPost, path, object)
		s.finish()
		if made.Code != http.StatusCreated {
			return fmt.Errorf("create %s %s: %d %s", object.GetKind(), object.GetName(), made.Code, made.Body)
		}
	}
	return nil
}

// rank says what is made first.
func rank(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "Namespace":
		return 0
	case "CustomResourceDefinition":
		return 1
	}
	return 2
}

// Path returns the path of the collection that an object belongs to.
func (s *Server) Path(object *unstructured.Unstructured) (string, error) {
	kind := object.GroupVersionKind()
	base := "/apis/" + kind.Group + "/" + kind.Version
	if kind.Group == "" {
		base = "/api/" + kind.Version
	}
	var served metav1.APIResourceList
	if err := json.Unmarshal(s.own(http.MethodGet, base, nil).Body, &served); err != nil {
		return "", fmt.Errorf("kind %s is not served", kind)
	}
	for _, resource := range served.APIResources {
		if resource.Kind != kind.Kind || strings.Contains(resource.Name, "/") {
			continue
		}
		if resource.Namespaced {
			base += "/namespaces/" + cmp.Or(object.GetNamespace(), metav1.NamespaceDefault)
		}
		return base + "/" + resource.Name, nil
	}
	return "", fmt.Errorf("kind %s is not served", kind)
}

// kindOf returns the kind of a resource.
func (s *Server) kindOf(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	base := "/apis/" + resource.Group + "/" + resource.Version
	if resource.Group == "" {
		base = "/api/" + resource.Version
	}
	var served metav1.APIResourceList
	if err := json.Unmarshal(s.own(http.MethodGet, base, nil).Body, &served); err != nil {
		return schema.GroupVersionKind{}, err
	}
	for _, one := range served.APIResources {
		if one.Name == resource.Resource {
			return resource.GroupVersion().WithKind(one.Kind), nil
		}
	}
	return schema.GroupVersionKind{}, fmt.Errorf("resource %s is not served", resource)
}
