package simulation

import (
	"fmt"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	resourceClaims = "/apis/resource.k8s.io/v1/resourceclaims"
	resourceSlices = "/apis/resource.k8s.io/v1/resourceslices"
	claimTemplates = "/apis/resource.k8s.io/v1/resourceclaimtemplates"
	volumeClaims   = "/api/v1/persistentvolumeclaims"
	volumes        = "/api/v1/persistentvolumes"
	storageClasses = "/apis/storage.k8s.io/v1/storageclasses"

	// driverName is the driver of the devices, and the provisioner of the volumes.
	driverName = "simulation.hekla.sh"
	// devicesOfNode is how many devices each node has.
	devicesOfNode = 2
)

// defineDevices makes the classes of devices and volumes.
func (d *driver) defineDevices() {
	must(d.create("admin", "/apis/resource.k8s.io/v1/deviceclasses", map[string]any{"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
		"metadata": map[string]any{"name": "simulated"}, "spec": map[string]any{"selectors": []any{map[string]any{"cel": map[string]any{
			"expression": "device.driver == '" + driverName + "'"}}}}}), "device class")
	must(d.create("admin", storageClasses, map[string]any{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": map[string]any{"name": "simulated"},
		"provisioner": driverName, "volumeBindingMode": "WaitForFirstConsumer"}), "storage class")
}

// addClaimTemplate makes the template by which pods of a namespace get a device.
func (d *driver) addClaimTemplate(namespace string) bool {
	return d.create("admin", pathOf(claimTemplates, namespace, ""), map[string]any{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
		"metadata": map[string]any{"name": "device", "namespace": namespace}, "spec": map[string]any{"spec": map[string]any{"devices": map[string]any{
			"requests": []any{map[string]any{"name": "device", "exactly": map[string]any{"deviceClassName": "simulated"}}}}}}})
}

// addDevices publishes the devices of a node.
func (d *driver) addDevices(node *object) bool {
	var devices []any
	for i := range devicesOfNode {
		devices = append(devices, map[string]any{"name": fmt.Sprintf("device-%d", i)})
	}
	return d.create("kubelet", resourceSlices, map[string]any{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
		"metadata": map[string]any{"name": node.GetName(), "ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Node",
			"name": node.GetName(), "uid": string(node.GetUID()), "controller": true}}},
		"spec": map[string]any{"driver": driverName, "nodeName": node.GetName(), "devices": devices,
			"pool": map[string]any{"name": node.GetName(), "generation": 1, "resourceSliceCount": 1}}})
}

// withDevice gives the pods of a template a device each.
func withDevice(pod map[string]any) {
	pod["resourceClaims"] = []any{map[string]any{"name": "device", "resourceClaimTemplateName": "device"}}
	container := pod["containers"].([]any)[0].(map[string]any)
	container["resources"].(map[string]any)["claims"] = []any{map[string]any{"name": "device"}}
}

// withVolume gives the pods of a template a volume each, for as long as they live.
func withVolume(pod map[string]any) {
	pod["volumes"] = []any{map[string]any{"name": "scratch", "ephemeral": map[string]any{"volumeClaimTemplate": map[string]any{"spec": map[string]any{
		"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "simulated", "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}}}}}
}

// sometimes gives the pods of a template devices or volumes.
func sometimes(random *rand.Rand, pod map[string]any) {
	switch random.IntN(12) {
	case 0:
		withDevice(pod)
	case 1:
		withVolume(pod)
	}
}

// devices is the rule that no device is given out twice.
type devices struct {
	driver *driver
	of     map[string]string // the id of the claim that has a device
}

// seen looks at a change.
func (s *devices) seen(before, now *object) {
	if now == nil && before.collection != resourceClaims || now != nil && now.collection != resourceClaims {
		return
	}
	if before != nil {
		for _, name := range devicesOf(before) {
			if s.of[name] == before.id() {
				delete(s.of, name)
			}
		}
	}
	if now == nil {
		return
	}
	for _, name := range devicesOf(now) {
		if other := s.of[name]; other != "" {
			s.driver.rules.violate("device %s is of %s, and is given to %s", name, other, now.id())
		}
		if s.of[name] = now.id(); before == nil || len(devicesOf(before)) == 0 {
			s.driver.count("devices given out")
		}
	}
}

// devicesOf are the devices that a claim has.
func devicesOf(claim *object) (names []string) {
	results, _, _ := unstructured.NestedSlice(claim.Object, "status", "allocation", "devices", "results")
	for _, result := range results {
		m := result.(map[string]any)
		names = append(names, fmt.Sprint(m["pool"], "/", m["device"]))
	}
	return names
}

// provisioner makes the volumes of claims for which a node was selected, and deletes those whose claim is gone: what it
// does follows from the claims, as with a controller.
type provisioner struct {
	driver *driver
	wanted map[string]bool // ids of claims
	over   map[string]bool // names of volumes
}

// volumeOf is the name of the volume of a claim.
func volumeOf(claim *object) string { return "volume-" + string(claim.GetUID()) }

// seen takes in a change.
func (p *provisioner) seen(before, now *object) {
	switch {
	case now == nil:
		if before.collection == volumeClaims {
			delete(p.wanted, before.id())
			p.over[volumeOf(before)] = true
		}
	case now.collection == volumeClaims:
		delete(p.wanted, now.id())
		if phase, _, _ := unstructured.NestedString(now.Object, "status", "phase"); phase != "Bound" && now.GetAnnotations()["volume.kubernetes.io/selected-node"] != "" && now.GetDeletionTimestamp() == nil {
			p.wanted[now.id()] = true
		}
	}
}

func (p *provisioner) options() (all []option) {
	for _, id := range sortedKeys(p.wanted) {
		all = append(all, option{3, "provision " + id, func() { p.provision(id) }})
	}
	for _, name := range sortedKeys(p.over) {
		all = append(all, option{2, "delete volume " + name, func() { p.remove(name) }})
	}
	return all
}

// provision makes the volume of a claim, and binds the claim to it.
func (p *provisioner) provision(id string) {
	delete(p.wanted, id)
	d, claim := p.driver, p.driver.observer.objects[id]
	name := volumeOf(claim)
	d.create("provisioner", volumes, map[string]any{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"capacity": map[string]any{"storage": "1Gi"}, "accessModes": []any{"ReadWriteOnce"}, "storageClassName": "simulated",
			"persistentVolumeReclaimPolicy": "Delete", "csi": map[string]any{"driver": driverName, "volumeHandle": name},
			"claimRef": map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.GetNamespace(), "name": claim.GetName(), "uid": string(claim.GetUID())}}})
	isBound := d.merge("provisioner", claim.path(), map[string]any{"metadata": map[string]any{"uid": string(claim.GetUID()),
		"annotations": map[string]any{"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}}, "spec": map[string]any{"volumeName": name}}) &&
		d.ask("provisioner", "PATCH", claim.path()+"/status", mergeType, map[string]any{"status": map[string]any{
			"phase": "Bound", "accessModes": []any{"ReadWriteOnce"}, "capacity": map[string]any{"storage": "1Gi"}}}).Code < 400
	if isBound {
		d.count("volumes provisioned")
	}
}

// remove deletes the volume of a claim that is gone.
func (p *provisioner) remove(name string) {
	delete(p.over, name)
	p.driver.merge("provisioner", volumes+"/"+name, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	p.driver.delete("provisioner", volumes+"/"+name, nil)
}
