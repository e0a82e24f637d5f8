package podgroup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	groupbuilder "hekla.sh/hekla/pkg/apis/scheduling/builder"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func TestAMinimumFollowsARollout(t *testing.T) {
	t.Run("it is lowered to what can be met", func(t *testing.T) {
		for _, test := range []struct {
			name                      string
			wanted, living, elsewhere int32
			want                      int32
		}{
			{"all are here", 4, 4, 0, 4},
			{"more are here", 4, 9, 0, 4},
			{"the first of a new ReplicaSet, all others run", 4, 1, 4, 1},
			{"two of a new ReplicaSet, one must start at least", 4, 2, 3, 1},
			{"two of a new ReplicaSet, no other runs", 4, 2, 0, 2},
			{"what is left of the old ReplicaSet keeps what the new one has not", 4, 3, 1, 3},
			{"nobody is here", 4, 0, 0, 1},
		} {
			if got := lowered(test.wanted, test.living, test.elsewhere); got != test.want {
				t.Errorf("%s: %d, want %d", test.name, got, test.want)
			}
		}
	})
	t.Run("it holds up no rollout that would end without it", func(t *testing.T) {
		ended := 0
		rapid.Check(t, func(t *rapid.T) {
			number := func(low, high int32, name string) int32 { return rapid.Int32Range(low, high).Draw(t, name) }
			r := rollout{replicas: number(1, 12, "replicas"), surge: number(0, 12, "surge"), unavailable: number(0, 12, "unavailable")}
			if r.surge == 0 {
				r.unavailable = max(1, r.unavailable)
			}
			r.unavailable = min(r.unavailable, r.replicas)
			r.minimum = number(1, r.replicas, "minimum")
			r.room = number(0, r.replicas+r.surge, "room")
			r.living[0] = number(0, r.replicas, "old")
			r.placed[0] = min(number(0, r.living[0], "placed"), r.room)
			without := r
			without.minimum = 1
			if !without.ends() {
				return
			}
			ended++
			if !r.ends() {
				t.Fatalf("%+v does not end", r)
			}
		})
		if ended == 0 {
			t.Error("no rollout would have come to its end")
		}
	})
}

// rollout is a Deployment in the middle of replacing its pods, on a cluster of its own.
type rollout struct {
	replicas, surge, unavailable, room, minimum int32

	// Of each ReplicaSet, the old one and the new one, how many pods are there and how many of them are on nodes.
	living, placed [2]int32
}

// control does what the Deployment controller does once.
func (r *rollout) control() {
	const old, new = 0, 1
	total := r.living[old] + r.living[new]
	r.living[new] += max(0, min(r.replicas-r.living[new], r.replicas+r.surge-total))
	total = r.living[old] + r.living[new]
	atLeast := r.replicas - r.unavailable
	// Those that are not ready go first, and only as far as the new ones that are not ready would not be missed.
	drop := max(0, total-atLeast-(r.living[new]-r.placed[new]))
	idle := min(drop, r.living[old]-r.placed[old])
	r.living[old] -= idle
	ready := min(drop-idle, max(0, r.placed[old]+r.placed[new]-atLeast), r.placed[old])
	r.living[old] -= ready
	r.placed[old] -= ready
}

// schedule does what a gang scheduler does once with one of the PodGroups.
func (r *rollout) schedule(set int) {
	minimum, other := r.minimum, 1-set
	if r.living[other] > 0 {
		minimum = lowered(r.minimum, r.living[set], r.placed[other])
	}
	more := min(r.living[set]-r.placed[set], r.room-r.placed[0]-r.placed[1])
	if r.placed[set]+more >= minimum {
		r.placed[set] += more
	}
}

// ends says whether all pods are replaced in the end.
func (r rollout) ends() bool {
	for range 8 * (r.replicas + 1) {
		r.control()
		r.schedule(0)
		r.schedule(1)
	}
	return r.living[0] == 0 && r.placed[1] == r.replicas
}

func TestRelativesAreFoundByTheDeploymentOrTheController(t *testing.T) {
	of := func(apiVersion, kind, name string) *corev1.Pod {
		pod := controlled(lonePod(nil), apiVersion, kind)
		pod.OwnerReferences[1].Name = name
		return pod
	}
	for want, pod := range map[string]*corev1.Pod{
		"web":     of("apps/v1", "ReplicaSet", "web-5d4f8c"),
		"web-api": of("apps/v1", "ReplicaSet", "web-api-5d4f8c"),
		"plain":   of("apps/v1", "ReplicaSet", "plain"),
		"r-1":     of("apps/v1", "StatefulSet", "web-5d4f8c"),
		"":        lonePod(nil),
	} {
		if got := relation(pod); got != want {
			t.Errorf("%+v: %q, want %q", pod.OwnerReferences, got, want)
		}
	}
}

func TestAPodGroupIsBroughtUpToDateAndKeepsWhatOthersPutThere(t *testing.T) {
	pod := controlled(lonePod(map[string]string{scheduling.QueueNameAnnotationKey: "a", "volcano.sh/preemptable": "true"}), "apps/v1", "StatefulSet")
	current, _ := groupbuilder.PodGroup(pod, groupbuilder.Surroundings{})
	current.Annotations[scheduling.JobAllocatedHyperNodeKey] = "rack-1"
	current.Annotations[scheduling.GroupMinMemberAnnotationKey] = "3"
	current.Status.Phase = scheduling.PodGroupRunning
	current.Spec.SubGroupPolicy = []scheduling.SubGroupPolicySpec{{Name: "mine"}}
	pod.Annotations = map[string]string{
		scheduling.QueueNameAnnotationKey: "b", "volcano.sh/preemptable": "false", scheduling.NetworkTopologyModeKey: "soft",
	}
	wanted, _ := groupbuilder.PodGroup(pod, groupbuilder.Surroundings{})
	updated := groupbuilder.Renew(current, wanted)
	if updated.Spec.Queue != "b" || updated.Spec.NetworkTopology.Mode != "soft" || updated.Annotations["volcano.sh/preemptable"] != "false" {
		t.Errorf("not up to date: %+v", updated)
	}
	if updated.Annotations[scheduling.JobAllocatedHyperNodeKey] != "rack-1" || updated.Status.Phase != scheduling.PodGroupRunning ||
		len(updated.Spec.SubGroupPolicy) != 1 {
		t.Errorf("lost what others put there: %+v", updated)
	}
	if hasMinimum(updated) || !hasMinimum(current) {
		t.Error("the minimum that is wanted no more is still told")
	}
	if current.Spec.Queue != "a" || metav1.GetControllerOf(updated).UID != "r-1" {
		t.Error("what is in the cache was changed")
	}
}
