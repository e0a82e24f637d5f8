package apiserver

import (
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingv1 "k8s.io/kubernetes/pkg/apis/scheduling/v1"
)

// bootstrap makes what kube-apiserver makes when it starts.
func (s *Server) bootstrap() error {
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := s.make("/api/v1/namespaces", namespace); err != nil {
			return err
		}
	}
	for _, class := range schedulingv1.SystemPriorityClasses() {
		made := class.DeepCopy()
		made.APIVersion, made.Kind = "scheduling.k8s.io/v1", "PriorityClass"
		if err := s.make("/apis/scheduling.k8s.io/v1/priorityclasses", made); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) make(path string, object metav1.Object) error {
	if made := s.own(http.MethodPost, path, object); made.Code != http.StatusCreated {
		return fmt.Errorf("make %s at %s: %d %s", object.GetName(), path, made.Code, made.Body)
	}
	return nil
}
