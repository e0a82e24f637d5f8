package held

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Known is what is known of the workloads of a cluster. The zero value has nothing held back.
type Known struct {
	// IsOn says that the scheduler admits workloads, by its configuration.
	IsOn bool
	// KueueRuns says that Kueue itself runs, and the objects are its own.
	KueueRuns bool
	// HoldsUnnamed says that Jobs which name no LocalQueue are suspended, in namespaces that Managed selects: the text of a selector.
	HoldsUnnamed bool
	Managed      string
	// HaveDefaultQueue says that a namespace has a LocalQueue for jobs that name none.
	HaveDefaultQueue bool
}

// AreAdmitted reports whether our scheduler would admit what is held back.
func (k Known) AreAdmitted() bool { return k.IsOn && !k.KueueRuns }

// Jobs are the conditions under which a Job is looked at: it names a LocalQueue, or there may be one for those that name none. Those
// that a queued job has made are left out.
func (k Known) Jobs() []admissionregistrationv1.MatchCondition {
	if k.HaveDefaultQueue || k.HoldsUnnamed {
		return []admissionregistrationv1.MatchCondition{hasNoManagedOwner()}
	}
	return Pods()
}

// Pods are the conditions under which a pod is looked at: it names a LocalQueue, and its owner is not queued in its place.
func Pods() []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{{
		Name: "is-queued", Expression: fmt.Sprintf("object.metadata.?labels[%q].orValue('') != ''", v1beta2.QueueNameLabel),
	}, hasNoManagedOwner()}
}

// managedOwners are the kinds whose pods are not queued by themselves: their owner is.
var managedOwners = []metav1.TypeMeta{
	{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
	{APIVersion: batch.GroupVersion.String(), Kind: "Job"},
}

// IsByItsOwner reports whether the owner of an object is queued in its place.
func IsByItsOwner(object metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(object)
	return owner != nil && slices.ContainsFunc(managedOwners, func(m metav1.TypeMeta) bool { return m.Kind == owner.Kind && m.APIVersion == owner.APIVersion })
}

// hasNoManagedOwner is [IsByItsOwner], as the API server asks it.
func hasNoManagedOwner() admissionregistrationv1.MatchCondition {
	versions := make([]string, len(managedOwners))
	for i := range managedOwners {
		versions[i] = strconv.Quote(managedOwners[i].APIVersion)
	}
	return admissionregistrationv1.MatchCondition{Name: "has-no-managed-owner", Expression: fmt.Sprintf(
		"!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && o.kind == 'Job' && o.apiVersion in [%s])",
		strings.Join(versions, ", "))}
}
