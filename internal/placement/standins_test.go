package placement_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

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

// Each pod of the gang gets a device by a claim that is made with it.
func TestStandInsTakeTheDevicesOfClaimsThatWillBeMade(t *testing.T) {
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: fixture.DeviceClaim("one-gpu", "gpu", 1).ObjectMeta,
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: fixture.DeviceClaim("c", "gpu", 1).Spec}}
	w := newSetup(t).set(fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"), fixture.Devices("gpu"), fixture.Slice("n0", 1), fixture.Slice("n1", 1), fixture.Group("g", "default", 1))
	standIn := func(index int) *cluster.Task {
		pod, name := fixture.Pod("form"), "one-gpu"
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &name}}
		return w.Cluster.AddStandIn(w.Cluster.Job(cluster.JobID{Namespace: fixture.Namespace, Name: "g"}), &cluster.Podset{Name: "main", Count: 3, Template: pods.New(pod)}, index)
	}
	s := w.open()
	s.Outlook = w.Outlook
	before := s.Begin()
	if n := w.Engine.Best(standIn(0)); n != nil {
		t.Errorf("a stand-in gets %s, and the template does not exist", n.Name)
	}
	before.Undo()
	w.set(template)
	s = w.open()
	s.Outlook = w.Outlook
	x := s.Begin()
	defer x.Undo()
	taken := map[*cluster.Node]bool{}
	for i := range 2 {
		task := standIn(i)
		n := w.Engine.Best(task)
		if n == nil || taken[n] {
			t.Fatalf("stand-in %d gets %s", i, nameOf(n))
		}
		taken[n] = true
		x.Place(task, n)
	}
	if n := w.Engine.Best(standIn(2)); n != nil {
		t.Errorf("a third one gets %s, and no device is left", n.Name)
	}
}
