package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
)

// Explained is a sentence about what went wrong, with what caused it.
type Explained struct {
	Sentence string
	Cause    error
}

// Error is the sentence.
func (e *Explained) Error() string { return e.Sentence }

// Unwrap is the cause.
func (e *Explained) Unwrap() error { return e.Cause }

// Explain says of an error of the API server, or on the way there, what it means for the person and what to do next.
func (s *Session) Explain(err error) error {
	var known *Explained
	var network *net.OpError
	var noHost *net.DNSError
	var late net.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, context.Canceled):
		return &Explained{"interrupted", err}
	case apierrors.IsNotFound(err):
		return &Explained{s.notFound(err), err}
	case apierrors.IsAlreadyExists(err):
		return &Explained{fmt.Sprintf("%s; choose another name, or delete it first", Message(err)), err}
	case apierrors.IsForbidden(err):
		return &Explained{Message(err) + "; ask an administrator of the cluster for the right, or use another --context or --namespace", err}
	case apierrors.IsUnauthorized(err):
		return &Explained{"the API server does not know who you are: log in again, or use another --context or --kubeconfig", err}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &Explained{Message(err) + "; correct it and try again", err}
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return &Explained{"the API server has forgotten where this list was; start the command again", err}
	case meta.IsNoMatchError(err):
		return &Explained{s.noMatch(err), err}
	case errors.Is(err, clientcmd.ErrEmptyConfig), clientcmd.IsEmptyConfig(err):
		return &Explained{"no cluster is known: set KUBECONFIG, or give --kubeconfig or --master", err}
	case errors.Is(err, os.ErrNotExist):
		return &Explained{fmt.Sprintf("%v; check --kubeconfig and KUBECONFIG", err), err}
	case errors.As(err, &late) && late.Timeout():
		return &Explained{fmt.Sprintf("the API server does not answer in time: %v; try again, with a longer --request-timeout if you gave one", err), err}
	case errors.As(err, &noHost), errors.As(err, &network):
		return &Explained{fmt.Sprintf("the API server cannot be reached: %v; does the cluster run, and is it the one you mean (--context, --kubeconfig, --master)?", err), err}
	}
	return err
}

// Message is what the API server says, without what wraps it.
func Message(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return strings.TrimSuffix(status.Status().Message, ".")
	}
	return err.Error()
}

// verbs are how the kinds are called that can be listed.
var verbs = map[string]string{"jobs": "job", "queues": "queue", "jobflows": "jobflow", "jobtemplates": "jobtemplate"}

// quotaKinds are how the kinds of kueue.x-k8s.io are called, and whether they are in a namespace.
var quotaKinds = map[string]struct {
	name         string
	isNamespaced bool
}{"clusterqueues": {"clusterqueue", false}, "localqueues": {"localqueue", true}, "workloads": {"workload", true}, "resourceflavors": {"resourceflavor", false}}

func (s *Session) notFound(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		details := status.Status().Details
		verb, ok := verbs[details.Kind]
		quota, isQuota := quotaKinds[details.Kind]
		if !ok && !isQuota || details.Name == "" {
			return Message(err)
		}
		where, list, isNamespaced := "", s.Program+" "+verb+" list", verb != "queue"
		if isQuota {
			verb, list, isNamespaced = quota.name, s.Program+" list "+quota.name, quota.isNamespaced
		}
		if namespace, problem := s.Namespace(); isNamespaced && problem == nil {
			where, list = " in namespace "+namespace, list+" -n "+namespace
		}
		return fmt.Sprintf("there is no %s %q%s; %q lists those there are", verb, details.Name, where, list)
	}
	return Message(err)
}

func (s *Session) noMatch(err error) string {
	kind, group := "the kind", "hekla"
	var noKind *meta.NoKindMatchError
	var noResource *meta.NoResourceMatchError
	switch {
	case errors.As(err, &noKind):
		kind, group = noKind.GroupKind.Kind, noKind.GroupKind.Group
	case errors.As(err, &noResource):
		kind, group = noResource.PartialResource.Resource, noResource.PartialResource.Group
	}
	return fmt.Sprintf("this cluster does not know %s of %s: its CustomResourceDefinition is not installed; install it, or use another --context", kind, group)
}

// statusError is the error that a watch brings.
func statusError(object runtime.Object) error {
	if status, ok := object.(*metav1.Status); ok {
		return &apierrors.StatusError{ErrStatus: *status}
	}
	return fmt.Errorf("unexpected %T", object)
}
