package placement_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/test/fixture"
)

// A stand-in's pod mounts a volume for which a claim is made with the pod.
func standInWith(w *setup, class string, index int) *cluster.Task {
	pod := fixture.Pod("form")
	pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: fixture.Claim("c", class).Spec}}}}}
	return w.Cluster.AddStandIn(w.Cluster.Job(cluster.JobID{Namespace: fixture.Namespace, Name: "g"}), &cluster.Podset{Name: "main", Count: 3, Template: pods.New(pod)}, index)
}

func TestStandInsAreAskedWithTheClaimsThatWillBeMade(t *testing.T) {
	w := newSetup(t).set(fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"), fixture.LateClass("local", ""), fixture.EarlyClass("early", fixture.Provisioner),
		fixture.Volume("v0", "local", "1Gi", corev1.LabelHostname, "n0"), fixture.Volume("v1", "local", "1Gi", corev1.LabelHostname, "n1"), fixture.Group("g", "default", 1))
	s := w.open()
	s.Outlook = w.Outlook
	x := s.Begin()
	defer x.Undo()
	taken := map[*cluster.Node]bool{}
	for i := range 2 {
		task := standInWith(w, "local", i)
		n := w.Engine.Best(task)
		if n == nil || taken[n] {
			t.Fatalf("stand-in %d gets %s", i, nameOf(n))
		}
		taken[n] = true
		x.Place(task, n)
	}
	if n := w.Engine.Best(standInWith(w, "local", 2)); n != nil {
		t.Errorf("a third one gets %s, and no volume is left", n.Name)
	}
	if w.Engine.Best(standInWith(w, "early", 3)) == nil {
		t.Error("one whose volume is bound when its claim is made finds no node")
	}
	if w.Engine.Best(standInWith(w, "missing", 4)) != nil {
		t.Error("one of a StorageClass that does not exist finds a node")
	}
}
