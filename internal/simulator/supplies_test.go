package simulator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/simulator"
)

const storage = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: disks.example.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  storageClassName: local
  capacity: {storage: 5Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: /disk}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Exists}]}]}}
status: {phase: Available}
---
`

// jobOf is a Job of so many pods of a CPU, with a part of its spec and of the spec of its pods.
func jobOf(name string, pods int, spec, podSpec string) string {
	return fmt.Sprintf(`
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: %s, namespace: work, creationTimestamp: "2026-03-02T07:00:00Z"}
spec:
  schedulerName: volcano
  minAvailable: %d
  %s
  tasks:
  - name: worker
    replicas: %d
    template: {spec: {containers: [{name: main, resources: {requests: {cpu: '1'}}}], %s}}
---
`, name, pods, spec, pods, podSpec)
}

func placed(report *simulator.Report) []string {
	var all []string
	for _, b := range report.Binds {
		all = append(all, b.Pod+" "+b.Node)
	}
	slices.Sort(all)
	return all
}

func expectPlaced(t *testing.T, report *simulator.Report, want ...string) {
	t.Helper()
	if got := placed(report); !slices.Equal(got, want) {
		t.Errorf("placed is %q, want %q\n%s", got, want, printed(t, report))
	}
}

func TestTheVolumesOfAJobAreMade(t *testing.T) {
	// The claim that both pods use ties them to one node, and under binpack the first of them alone would go to the
	// smaller one.
	for name, class := range map[string]string{"of the default StorageClass": "", "of one that it names": "storageClassName: late, "} {
		t.Run(name, func(t *testing.T) {
			claim := "volumes: [{mountPath: /data, volumeClaim: {" + class + "accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]"
			report := mustSimulate(t, twoNodes+storage+jobOf("train", 2, claim, ""), untilStable)
			if len(report.Binds) != 2 {
				t.Errorf("placed is %q\n%s", placed(report), printed(t, report))
			}
		})
	}
}

func TestAVolumeIsTakenOnce(t *testing.T) {
	scratch := "volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: local, accessModes: [ReadWriteOnce], " +
		"resources: {requests: {storage: 1Gi}}}}}}]"
	nodes := strings.Replace(twoNodes, "{name: n2,", "{name: n2, labels: {disk: here},", 1)
	report := mustSimulate(t, nodes+storage+jobOf("first", 1, "", scratch)+jobOf("second", 1, "", scratch), untilStable)
	expectPlaced(t, report, "work/first-worker-0 n2")
	if said := printed(t, report); !strings.Contains(said, "PersistentVolumeClaim work/second-worker-0-scratch is not bound and no volume of StorageClass local fits") {
		t.Errorf("the second does not say why it waits:\n%s", said)
	}
}

func TestAClaimThatIsNotInTheInputDoesNotExist(t *testing.T) {
	missing := "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"
	report := mustSimulate(t, twoNodes+jobOf("train", 1, "", missing), untilStable)
	expectPlaced(t, report)
	if said := printed(t, report); !strings.Contains(said, "PersistentVolumeClaim work/data does not exist") {
		t.Errorf("it does not say why it waits:\n%s", said)
	}
}

func TestDevicesAreGivenOutOnce(t *testing.T) {
	const devices = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1-gpus}
spec: {driver: gpus.example.com, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu, namespace: work}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1}}]}}}
---
`
	const uses = "resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]"
	report := mustSimulate(t, twoNodes+devices+jobOf("first", 1, "", uses)+jobOf("second", 1, "", uses), untilStable)
	expectPlaced(t, report, "work/first-worker-0 n1")

	for name, request := range map[string]string{
		"also by a claim that names no mode":            "exactly: {deviceClassName: gpu}",
		"also by one that takes the first of some kind": "firstAvailable: [{name: any, deviceClassName: gpu}]",
	} {
		t.Run(name, func(t *testing.T) {
			claim := "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: own, namespace: work}\n" +
				"spec: {devices: {requests: [{name: gpu, " + request + "}]}}\n---\n"
			report := mustSimulate(t, twoNodes+devices+claim+jobOf("first", 1, "", "resourceClaims: [{name: gpu, resourceClaimName: own}]"), untilStable)
			expectPlaced(t, report, "work/first-worker-0 n1")
		})
	}
}

func TestClaimsAreBoundAsTheirControllerBindsThem(t *testing.T) {
	const volume = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: here}
spec: {storageClassName: local, capacity: {storage: 3Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /disk}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n2]}]}]}}}
---
`
	const claim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: work}
spec: {storageClassName: local, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
`
	const byPod = "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"
	immediate := strings.Replace(storage, "name: local}\nprovisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer", "name: local}\nprovisioner: kubernetes.io/no-provisioner", 1)
	nodes := strings.Replace(strings.Replace(twoNodes, "{name: n1", "{name: n1, labels: {kubernetes.io/hostname: n1}", 1),
		"{name: n2", "{name: n2, labels: {kubernetes.io/hostname: n2}", 1)
	for name, text := range map[string]string{
		"by its first pod, to a volume that says no phase": storage + volume + claim,
		"at once, to a volume that is there":               immediate + volume + claim,
		"to the volume that it names":                      storage + volume + strings.Replace(claim, "spec: {", "spec: {volumeName: here, ", 1),
		"to the volume that names it":                      storage + strings.Replace(volume, "spec: {", "spec: {claimRef: {namespace: work, name: data}, ", 1) + claim,
	} {
		t.Run(name, func(t *testing.T) {
			report := mustSimulate(t, nodes+text+jobOf("train", 1, "", byPod), untilStable)
			expectPlaced(t, report, "work/train-worker-0 n2")
		})
	}
}
