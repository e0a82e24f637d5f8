package queueing

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// kinds are the kinds of jobs that can be queued. No other place lists them, but for package settings, which the
// scheduler reads and which names no more than their groups.
var kinds = Kinds{BatchJobs, VolcanoJobs}

// Kind is a kind of jobs that can be queued.
type Kind struct {
	schema.GroupVersionKind

	// Controller is what the controller is called that keeps its jobs and their Workloads in step, after the name of
	// the controllers of Workloads.
	Controller string
	// New is an empty job of the kind.
	New func() Job
	// NewList is an empty list of its objects.
	NewList func() client.ObjectList
	// HoldsUnnamed says that its jobs are suspended which name no LocalQueue, where such jobs wait until they name one.
	HoldsUnnamed bool
	// KeepsPods says that its pods are never queued by themselves. Those of other kinds are if they name a LocalQueue
	// and their job does not.
	KeepsPods bool
}

// Kinds are kinds of jobs.
type Kinds []*Kind

// AllKinds are the kinds of jobs that Hekla queues.
func AllKinds() Kinds { return slices.Clone(kinds) }

// Of is the kind of this group, version and name, nil if it is not among them.
func (k Kinds) Of(kind schema.GroupVersionKind) *Kind {
	if at := slices.IndexFunc(k, func(k *Kind) bool { return k.GroupVersionKind == kind }); at >= 0 {
		return k[at]
	}
	return nil
}

// KindOfOwner is the kind of jobs that an owner is of, nil if there is no owner, or it is no job.
func KindOfOwner(owner *metav1.OwnerReference) *Kind {
	if owner == nil {
		return nil
	}
	return kinds.Of(KindOf(owner))
}

// WorkloadOf is the name of the Workload of a job of the kind: the one that the job names, or the one that is made for
// it.
func (k *Kind) WorkloadOf(job metav1.Object) string {
	return cmp.Or(job.GetLabels()[v1beta2.PrebuiltWorkloadLabel], WorkloadName(k.GroupVersionKind, job.GetName(), job.GetUID()))
}

const (
	hashLength = 5
	// maxPrefix is how much of kind and name there is room for in the name of a Workload.
	maxPrefix = 252 - hashLength
)

// WorkloadName is that of the Workload that is made for a job or pod. It is the one that Kueue gives, so Workloads that
// Kueue has made are found.
func WorkloadName(kind schema.GroupVersionKind, name string, uid types.UID) string {
	prefix := strings.ToLower(kind.Kind) + "-" + name
	if len(prefix) > maxPrefix {
		prefix = prefix[:maxPrefix]
	}
	hash := sha1.Sum([]byte(strings.Join([]string{kind.Kind, kind.Group, name, string(uid)}, "\n")))
	return prefix + "-" + hex.EncodeToString(hash[:])[:hashLength]
}
