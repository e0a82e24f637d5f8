package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// provisionerName is that of the stand-in below.
const provisionerName = "disks.hekla.sh"

// provision plays a provisioner of volumes that can be used on one node each, as long as the test runs: it does what
// the external-provisioner of CSI does, but for the disk. Of the nodes in refused it says that it cannot.
func provision(t *testing.T, refused ...string) {
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	t.Cleanup(func() { cancel(); working.Wait() })
	working.Go(func() {
		for ctx.Err() == nil {
			claims, err := core.CoreV1().PersistentVolumeClaims(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
			if err == nil {
				for i := range claims.Items {
					err = errors.Join(err, provisionOne(ctx, &claims.Items[i], refused))
				}
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			time.Sleep(poll)
		}
	})
}

func provisionOne(ctx context.Context, claim *corev1.PersistentVolumeClaim, refused []string) error {
	const selected = "volume.kubernetes.io/selected-node"
	node := claim.Annotations[selected]
	if node == "" || claim.Spec.VolumeName != "" || claim.Annotations["volume.kubernetes.io/storage-provisioner"] != provisionerName {
		return nil
	}
	if slices.Contains(refused, node) {
		delete(claim.Annotations, selected)
		_, err := core.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, claim, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			return nil
		}
		return err
	}
	volume := volumeOn(string("pvc-"+claim.UID), *claim.Spec.StorageClassName, corev1.LabelHostname, node)
	volume.Spec.AccessModes = claim.Spec.AccessModes
	volume.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name,
		UID: claim.UID}
	_, err := core.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// volumeOn is a volume that can be used on the nodes with a label.
func volumeOn(name, class, key, value string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: class, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: provisionerName, VolumeHandle: name}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}}}},
	}}
}

// having creates an object, and removes it when the test ends.
func having[T metav1.Object](t *testing.T, client interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}, object T) T {
	t.Helper()
	created, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		background := metav1.DeletePropagationBackground // for a Job the API server would leave its pods otherwise
		if err := client.Delete(context.Background(), created.GetName(), metav1.DeleteOptions{PropagationPolicy: &background}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return created
}

// lateClass makes a StorageClass whose volumes wait for a pod.
func lateClass(t *testing.T, name, provisioner string) {
	t.Helper()
	t.Cleanup(func() {
		err := core.CoreV1().PersistentVolumes().DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	having(t, core.StorageV1().StorageClasses(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner,
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)})
}

func claimOf(class string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}
}

// gangJob is a Job of so many pods that must start together, each with CPUs and what an option gives it.
func gangJob(name string, size int32, cpu string, option func(*corev1.PodSpec)) *batchv1alpha1.Job {
	spec := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}}
	if option != nil {
		option(&spec)
	}
	return &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}, Spec: batchv1alpha1.JobSpec{SchedulerName: "volcano", MinAvailable: size,
		Tasks: []batchv1alpha1.TaskSpec{{Name: "worker", Replicas: size, Template: corev1.PodTemplateSpec{Spec: spec}}}}}
}

// withOwnClaim gives each pod a claim of its own.
func withOwnClaim(class string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimOf(class)}}}}}
	}
}

// nodesOf returns on how many pods of a Job are on which node.
func nodesOf(t *testing.T, job string) map[string]int {
	t.Helper()
	pods, err := podsOf(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]int{}
	for i := range pods {
		nodes[pods[i].Spec.NodeName]++
	}
	return nodes
}

// nodeNames returns the names of the nodes, sorted.
func nodeNames(t *testing.T) []string {
	t.Helper()
	names, err := cluster.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func TestEachMemberOfAGangGetsAVolumeOfItsOwnMadeForItsNode(t *testing.T) {
	haveNodes(t, 2)
	tidyUp(t)
	lateClass(t, "made", provisionerName)
	provision(t)
	create(t, gangJob("scratch", 3, "5", withOwnClaim("made")))
	// Three do not fit on two nodes of eight CPUs: no claim is given a node.
	awaitReason(t, "scratch", "GangShort", "2 of the 3 pods")
	claims, err := core.CoreV1().PersistentVolumeClaims(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(claims.Items) != 3 {
		t.Fatalf("there are %d claims, want 3: %v", len(claims.Items), err)
	}
	for i := range claims.Items {
		if node := claims.Items[i].Annotations["volume.kubernetes.io/selected-node"]; node != "" {
			t.Errorf("claim %s is to have its volume on %s, and the gang cannot start", claims.Items[i].Name, node)
		}
	}
	haveNodes(t, 3)
	awaitRunning(t, "scratch", 3)
	if nodes := nodesOf(t, "scratch"); len(nodes) != 3 {
		t.Errorf("the pods are on %v", nodes)
	}
	nothingWasForbidden(t)
}

func thePodsHaveTheirVolumes(t *testing.T) {
	haveNodes(t, 2)
	lateClass(t, "standard", provisionerName)
	provision(t)
	apply(t, "08-volumes.yaml")
	awaitRunning(t, "volumes", 3)
	claims, err := core.CoreV1().PersistentVolumeClaims(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bound := 0
	for i := range claims.Items {
		if strings.HasPrefix(claims.Items[i].Name, "volumes-") && claims.Items[i].Status.Phase == corev1.ClaimBound {
			bound++
		}
	}
	if bound != 4 {
		t.Errorf("%d claims are bound, want one of each pod and one of all", bound)
	}
}

func TestAPodIsPlacedAgainWhereItsVolumeCannotBeMade(t *testing.T) {
	haveNodes(t, 2)
	tidyUp(t)
	lateClass(t, "fickle", provisionerName)
	names := nodeNames(t)
	provision(t, names[0])
	// The first node takes the smaller pod, so that the second is tried once the first was refused.
	create(t, gangJob("fickle", 1, "1", withOwnClaim("fickle")))
	apitest.Eventually(t, func(ctx context.Context) error {
		events, err := core.EventsV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		pods, err := podsOf(ctx, "fickle")
		if err != nil || len(pods) != 1 {
			return fmt.Errorf("%d pods: %w", len(pods), err)
		}
		for i := range events.Items {
			if e := &events.Items[i]; e.Regarding.UID == pods[0].UID && strings.Contains(e.Note, "no volume could be made for PersistentVolumeClaim") {
				return nil
			}
		}
		if pods[0].Spec.NodeName == names[1] {
			return nil
		}
		return errors.New("nobody says that the volume could not be made")
	})
	if _, err := system.Kubectl(t.Context(), "cordon", names[0]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := system.Kubectl(context.Background(), "uncordon", names[0]); err != nil {
			t.Error(err)
		}
	})
	awaitRunning(t, "fickle", 1)
	if nodes := nodesOf(t, "fickle"); nodes[names[1]] != 1 {
		t.Errorf("the pod is on %v", nodes)
	}
	nothingWasForbidden(t)
}

func TestPodsGoToTheZonesOfVolumesThatExist(t *testing.T) {
	haveNodes(t, 2)
	tidyUp(t)
	lateClass(t, "zonal", "kubernetes.io/no-provisioner")
	names := nodeNames(t)
	for i, name := range names {
		zone := fmt.Sprint("zone-", i)
		kubectl(t, "label", "node", name, "--overwrite", corev1.LabelTopologyZone+"="+zone)
		t.Cleanup(func() {
			if _, err := system.Kubectl(context.Background(), "label", "node", name, corev1.LabelTopologyZone+"-"); err != nil {
				t.Error(err)
			}
		})
	}
	create(t, gangJob("zonal", 2, "1", withOwnClaim("zonal")))
	having(t, core.CoreV1().PersistentVolumes(), volumeOn("first", "zonal", corev1.LabelTopologyZone, "zone-1"))
	awaitReason(t, "zonal", "VolumeUnavailable", "1 of the 2 pods", "node(s) didn't find available persistent volumes to bind",
		"PersistentVolumeClaim default/zonal-worker-", "is not bound and no volume of StorageClass zonal fits")
	having(t, core.CoreV1().PersistentVolumes(), volumeOn("second", "zonal", corev1.LabelTopologyZone, "zone-0"))
	awaitRunning(t, "zonal", 2)
	if nodes := nodesOf(t, "zonal"); len(nodes) != 2 {
		t.Errorf("the pods are on %v", nodes)
	}
	nothingWasForbidden(t)
}

func TestTheVolumesOfAJobAreMadeWhereItsPodsAre(t *testing.T) {
	haveNodes(t, 2)
	tidyUp(t)
	lateClass(t, "shared", provisionerName)
	provision(t)
	job := gangJob("shared", 2, "1", nil)
	claim := claimOf("shared")
	job.Spec.Volumes = []batchv1alpha1.VolumeSpec{{MountPath: "/data", VolumeClaim: &claim}}
	create(t, job)
	awaitRunning(t, "shared", 2)
	if nodes := nodesOf(t, "shared"); len(nodes) != 1 {
		t.Errorf("the volume is on one node, the pods are on %v", nodes)
	}
	nothingWasForbidden(t)
}
