package controllers_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/batch/builder"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	"hekla.sh/hekla/test/apitest"
)

func TestObjectsOfAJobThatExpiredDuringARestartGoWithIt(t *testing.T) {
	namespace := namespaceFor(t, "garbage")
	expiring := newJob(namespace, "sim", task("a", 1))
	expiring.Spec.Plugins = map[string][]string{"svc": {}, "ssh": {}}
	expiring.Spec.Volumes = []batch.VolumeSpec{{MountPath: "/data", VolumeClaim: &corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}}
	pods := start(t, expiring, "sim-a-0")
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: builder.ClaimName(expiring, 0)}}
	belongings := []client.Object{pods["sim-a-0"], podGroupOf(expiring), claim}
	for _, object := range append(belongings, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sim"}}) {
		if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		if !metav1.IsControlledBy(object, expiring) {
			t.Errorf("%T %s is not the Job's", object, object.GetName())
		}
	}
	finish(t, corev1.PodSucceeded, pods["sim-a-0"])
	awaitPhase(t, expiring, batch.Completed)

	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	seconds := int32(1)
	change(t, expiring, func(job *batch.Job) { job.Spec.TTLSecondsAfterFinished = &seconds })
	// No controller has carried it out, and none will.
	belongings = append(belongings, command(t, expiring, bus.RestartJobAction))
	time.Sleep(time.Second)
	if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(expiring), expiring); err != nil || expiring.DeletionTimestamp != nil {
		t.Fatalf("without a controller the Job is deleted at %s (%v)", expiring.DeletionTimestamp, err)
	}
	var err error
	if process, err = cluster.Run(context.Background(), program); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, append(belongings, expiring)...)
}
