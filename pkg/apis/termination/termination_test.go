package termination_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/apis/termination"
)

func TestAPodThatDoesNotEndSaysWhy(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const node = "pod team/p should have ended by 2026-01-02T03:04:00Z, and node n has not removed it"
	const finalizer = "pod team/p is being deleted and has the finalizer example.com/hold"
	for name, test := range map[string]struct {
		end        time.Duration // of the grace period, from now; 0 if the pod is not being deleted
		grace      int64
		finalizers []string
		node       string
		why        string
		left       time.Duration
	}{
		"it is not being deleted":           {0, 30, []string{"example.com/hold"}, "n", "", 0},
		"within its grace period":           {20 * time.Second, 30, nil, "n", "", 25 * time.Second},
		"a moment after it":                 {-2 * time.Second, 30, nil, "n", "", 3 * time.Second},
		"the node does not answer":          {-5 * time.Second, 30, nil, "n", node, 0},
		"a finalizer at once":               {28 * time.Second, 30, []string{"example.com/hold"}, "n", "", 3 * time.Second},
		"a finalizer within the period":     {20 * time.Second, 30, []string{"example.com/hold"}, "n", finalizer, 0},
		"a finalizer after the kubelet":     {-5 * time.Second, 0, []string{"example.com/hold"}, "n", finalizer, 0},
		"a finalizer and no node":           {-5 * time.Second, 0, []string{"example.com/hold"}, "", finalizer, 0},
		"a finalizer and a node that hangs": {-5 * time.Second, 30, []string{"example.com/hold"}, "n", finalizer, 0},
		"it is about to go":                 {-time.Second, 0, nil, "n", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &metav1.ObjectMeta{Namespace: "team", Name: "p", Finalizers: test.finalizers}
			if test.end != 0 {
				pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(now.Add(test.end))), ptr.To(test.grace)
			}
			if why, left := termination.Overdue(pod, test.node, now); why != test.why || left != test.left {
				t.Errorf("%q, %v left; want %q, %v", why, left, test.why, test.left)
			}
		})
	}
}
