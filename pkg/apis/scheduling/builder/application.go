package builder

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
)

// applicationPrefix starts the name of the PodGroup of an application.
const applicationPrefix = scheduling.PodGroupNamePrefix + "app-"

// ApplicationGroupName is the name of the PodGroup that all pods of an application of YuniKorn share in their
// namespace. It is empty if the pod names no application.
func ApplicationGroupName(pod *corev1.Pod) string {
	id := yunikorn.ApplicationID(pod.Labels, pod.Annotations)
	if id == "" {
		return ""
	}
	return groupNameOf(id)
}

// longestID leaves room for the prefix and the hash in the name of an object.
const longestID = validation.DNS1123SubdomainMaxLength - len(applicationPrefix) - 1 - 2*hashLength

// hashLength is how many bytes of the hash of an id are in a name, enough that two ids of a namespace do not meet.
const hashLength = 5

// groupNameOf makes a name of an id. An id that cannot stand in it as it is gets its hash, so that two ids never share
// a PodGroup.
func groupNameOf(id string) string {
	if len(id) <= longestID && len(validation.IsDNS1123Subdomain(applicationPrefix+id)) == 0 {
		return applicationPrefix + id
	}
	readable := strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(id))
	readable = strings.Trim(readable[:min(len(readable), longestID)], "-")
	hash := sha256.Sum256([]byte(id))
	return applicationPrefix + strings.TrimPrefix(readable+"-", "-") + hex.EncodeToString(hash[:hashLength])
}

// IsApplicationGroup reports whether a PodGroup was made for an application.
func IsApplicationGroup(group *scheduling.PodGroup) bool {
	id := group.Annotations[yunikorn.AppIDKey]
	return id != "" && group.Name == groupNameOf(id)
}

// ApplicationGroup makes the PodGroup of an application by its first pod, and sentences about annotations that could
// not be read. Task groups of the pod make it a gang, otherwise each pod is scheduled by itself. No object owns it,
// because its pods come and go independently of each other.
func ApplicationGroup(first *corev1.Pod, around Surroundings) (*scheduling.PodGroup, []string) {
	group, problems := PodGroup(first, around)
	group.Name, group.OwnerReferences = ApplicationGroupName(first), nil
	group.Annotations[yunikorn.AppIDKey] = yunikorn.ApplicationID(first.Labels, first.Annotations)
	delete(group.Annotations, scheduling.GroupMinMemberAnnotationKey)
	group.Spec.MinMember = 1
	needed := corev1.ResourceList{}
	AddUsage(needed, &first.Spec, 1)
	group.Spec.MinResources = &needed
	return group, append(problems, addTaskGroups(group, first)...)
}

// CompareMembers orders the pods of an application by creation, and of those that are created in one second the one
// with task groups comes first. By the first that is alive the PodGroup is made.
func CompareMembers(a, b *corev1.Pod) int {
	plain := func(pod *corev1.Pod) int {
		if pod.Annotations[yunikorn.TaskGroupsKey] != "" {
			return 0
		}
		return 1
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(plain(a), plain(b)),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Renew returns a copy of a PodGroup that has what is wanted now. Labels and annotations that others have added stay.
func Renew(current, wanted *scheduling.PodGroup) *scheduling.PodGroup {
	updated := current.DeepCopy()
	if updated.Labels == nil {
		updated.Labels = map[string]string{}
	}
	if updated.Annotations == nil {
		updated.Annotations = map[string]string{}
	}
	// These are told from their absence.
	for _, key := range [...]string{scheduling.GroupMinMemberAnnotationKey, yunikorn.TaskGroupsKey, yunikorn.GangParametersKey} {
		delete(updated.Annotations, key)
	}
	maps.Copy(updated.Labels, wanted.Labels)
	maps.Copy(updated.Annotations, wanted.Annotations)
	subGroups := updated.Spec.SubGroupPolicy
	updated.Spec = wanted.Spec
	updated.Spec.SubGroupPolicy = subGroups
	return updated
}

// FindQueue returns the Queue that a path of YuniKorn names: that whose annotation has the path, else that of this
// name, else with root in front of it or taken off. If there is none, it is the name that the import would give it, so
// that the PodGroup waits for it. The sentence says why the path names no queue at all.
func FindQueue(path string, byPath func(path string) string, exists func(name string) bool) (name, problem string) {
	const root = yunikorn.RootQueue + "."
	lower := strings.ToLower(path)
	for _, spelled := range []string{lower, root + lower} {
		if name := byPath(spelled); name != "" {
			return name, ""
		}
	}
	for _, name := range []string{lower, root + lower, strings.TrimPrefix(lower, root)} {
		if len(validation.IsDNS1123Subdomain(name)) == 0 && exists(name) {
			return name, ""
		}
	}
	if name := yunikorn.QueueName(path); len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name, ""
	}
	return "", fmt.Sprintf("queue %q is no path of a queue, such as root.a.b", path)
}
