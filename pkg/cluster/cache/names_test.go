package cache

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
)

// made is a job for which a Volcano Job was made at some second.
func made(uid string, second int64) *cluster.Job {
	isController := true
	j := &cluster.Job{ID: cluster.JobID{Namespace: "work", Name: "train-" + uid}}
	j.Group = &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: j.ID.Name, CreationTimestamp: metav1.Unix(second, 0),
		OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "train", UID: types.UID(uid), Controller: &isController}}}}
	return j
}

func TestAJobIsFoundByTheNameOfItsOwner(t *testing.T) {
	var x Names
	name := types.NamespacedName{Namespace: "work", Name: "train"}
	old, young := made("1", 100), made("2", 200)
	found := func(want *cluster.Job, when string) {
		t.Helper()
		if got := x.Youngest(name); got != want {
			t.Errorf("%s %v is found", when, got)
		}
	}
	found(nil, "at first")
	x.follow(young)
	x.follow(old)
	x.follow(young)
	found(young, "of two")
	young.Group = nil
	x.follow(young)
	found(old, "once the PodGroup of the youngest is gone,")
	old.Group.OwnerReferences = nil // it has the name of its PodGroup now
	x.follow(old)
	found(nil, "without an owner")
	if own := x.Youngest(types.NamespacedName{Namespace: "work", Name: old.ID.Name}); own != nil {
		t.Errorf("a job with the name of its PodGroup is found: %v", own)
	}
}
