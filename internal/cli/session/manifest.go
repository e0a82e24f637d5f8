package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hekla.sh/hekla/pkg/apis/bounds"
)

// CreateAll creates objects. What one of them lacks does not stop the others.
func (s *Session) CreateAll(ctx context.Context, objects []*unstructured.Unstructured, done func(*unstructured.Unstructured) string) error {
	var problems []error
	for _, object := range objects {
		problems = append(problems, s.Create(ctx, object, done(object)))
	}
	return errors.Join(problems...)
}

// ReadObjects reads a file of objects of a kind, or of one of several. Those of namespaces that name none are put into
// the one that is meant.
func (s *Session) ReadObjects(path string, kinds ...schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	file := s.In
	if path != "-" {
		opened, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("%w; give the path of a file, or - for the standard input", err)
		}
		defer func() { _ = opened.Close() }()
		file = opened
	}
	var objects []*unstructured.Unstructured
	for document, err := range bounds.Documents(file) {
		if err != nil {
			return nil, fmt.Errorf("%s, %w", path, err)
		}
		object, err := s.readObject(document.JSON, kinds)
		if err != nil {
			return nil, fmt.Errorf("%s, %w", path, document.Problem(err))
		}
		if object != nil {
			objects = append(objects, object)
		}
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s has no %s", path, kinds[0].Kind)
	}
	return objects, nil
}

// readObject reads one document, nil if it holds nothing.
func (s *Session) readObject(text []byte, kinds []schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	var fields map[string]any
	if err := bounds.UnmarshalKubernetesJSON(text, &fields); err != nil {
		return nil, fmt.Errorf("this is no object: %w", err)
	}
	if len(fields) == 0 {
		return nil, nil
	}
	object := &unstructured.Unstructured{Object: fields}
	return object, s.adopt(object, kinds)
}

// clusterKinds are of no namespace.
var clusterKinds = []string{QueueKind.Kind, "ClusterQueue", "Cohort", "ResourceFlavor"}

// adopt checks that an object of a file is of a kind that is meant, and has the namespace that is meant.
func (s *Session) adopt(object *unstructured.Unstructured, kinds []schema.GroupVersionKind) error {
	found, kind := object.GroupVersionKind(), kinds[0]
	if found.Kind == "" || found.Version == "" {
		return fmt.Errorf("this has no apiVersion or no kind, and a %s of %s is needed", kind.Kind, kind.GroupVersion())
	}
	if !slices.Contains(kinds, found) {
		return fmt.Errorf("this is a %s of %s, and a %s of %s is needed; kubectl apply -f takes any kind",
			found.Kind, found.GroupVersion(), kind.Kind, kind.GroupVersion())
	}
	if slices.Contains(clusterKinds, found.Kind) {
		return nil
	}
	switch written := object.GetNamespace(); {
	case written == "":
		namespace, err := s.Namespace()
		if err != nil {
			return err
		}
		object.SetNamespace(namespace)
	case s.namespaceFlag != "" && s.namespaceFlag != written:
		return fmt.Errorf("%s %q is of namespace %s, and --namespace is %s; leave out one of them", found.Kind, object.GetName(), written, s.namespaceFlag)
	}
	return nil
}
