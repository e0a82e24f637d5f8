package supply

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/cluster/supplies"
)

// Devices are the resource claims, slices and classes of a model, in the form that DynamicResources reads.
type Devices struct {
	shelf     *Shelf
	allocated map[types.NamespacedName]*resourcev1.ResourceClaim // the allocated claims
	slices    []*resourcev1.ResourceSlice                        // sorted, nil after a change
	pending   []*resourcev1.ResourceClaim                        // allocations since the last Take

	asking   *corev1.Pod                                  // the pod that the plugin reads
	resolver *extendedresourcecache.ExtendedResourceCache // nil after a change of the classes
}

// Ask sets the pod of the next questions. A claim that was created for its extended resources before is created again,
// so its devices count as free.
func (d *Devices) Ask(pod *corev1.Pod) { d.asking = pod }

// special returns the claim for extended resources of the pod, as far as it is the same on all nodes. The plugin would
// give it a random name, and a random UID until it is written.
func (d *Devices) special() *resourcev1.ResourceClaim {
	pod := d.asking
	uid := uuid.NewSHA1(uuid.Nil, []byte(string(pod.UID)+"/extended-resources"))
	const infix, letters = "-extended-resources-", 8
	most := validation.DNS1123SubdomainMaxLength - len(infix) - letters
	return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, UID: types.UID(uid.String()),
		Name:        strings.TrimRight(pod.Name[:min(len(pod.Name), most)], ".-") + infix + uid.String()[:letters],
		Annotations: map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
			Controller: ptr.To(true)}},
	}}
}

// IsMade reports whether a scheduler has created a claim for extended resources of a pod.
func IsMade(claim *resourcev1.ResourceClaim) bool {
	return claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true"
}

var (
	_ fwk.SharedDRAManager     = (*Devices)(nil)
	_ fwk.ResourceClaimTracker = (*Devices)(nil)
	_ fwk.ResourceSliceLister  = (*Devices)(nil)
	_ fwk.DeviceClassLister    = (*classes)(nil)
	_ fwk.CSIManager           = (*Shelf)(nil)
)

func newDevices(s *Shelf) *Devices {
	return &Devices{shelf: s, allocated: map[types.NamespacedName]*resourcev1.ResourceClaim{}}
}

func (d *Devices) forget() {
	clear(d.allocated)
	d.slices, d.resolver = nil, nil
}

// see updates a claim, nil if it is deleted.
func (d *Devices) see(name types.NamespacedName, now supplies.Object) {
	if claim, ok := now.(*resourcev1.ResourceClaim); ok && claim.Status.Allocation != nil {
		d.allocated[name] = claim
	} else {
		delete(d.allocated, name)
	}
}

// Take returns the claims that were allocated since the last call, and drops them. The transaction that places the pod
// reserves them in the model.
func (d *Devices) Take() []*resourcev1.ResourceClaim {
	taken := d.pending
	d.pending = nil
	for _, claim := range taken {
		nameShares(claim)
	}
	return taken
}

// nameShares names the shares of devices that several claims may use. The plugin gives them random names. They are
// renamed after the claim, so that equal models give equal decisions.
func nameShares(claim *resourcev1.ResourceClaim) {
	results := claim.Status.Allocation.Devices.Results
	for i := range results {
		if results[i].ShareID != nil {
			results[i].ShareID = ptr.To(types.UID(uuid.NewSHA1(uuid.Nil, []byte(string(claim.UID)+"/"+strconv.Itoa(i))).String()))
		}
	}
}

// ResourceClaims returns the claims.
func (d *Devices) ResourceClaims() fwk.ResourceClaimTracker { return d }

// ResourceSlices returns the slices.
func (d *Devices) ResourceSlices() fwk.ResourceSliceLister { return d }

// DeviceClasses returns the classes.
func (d *Devices) DeviceClasses() fwk.DeviceClassLister { return (*classes)(d) }

// DeviceClassResolver finds the class for an extended resource, the newest of several. It is made again after a change
// of the classes, so that it does not depend on the order of changes.
func (d *Devices) DeviceClassResolver() fwk.DeviceClassResolver {
	if d.resolver == nil {
		d.resolver = extendedresourcecache.NewExtendedResourceCache(logr.Discard())
		for _, class := range sorted[*resourcev1.DeviceClass](d.shelf.stores[supplies.DeviceClass]) {
			d.resolver.OnAdd(class, true)
		}
	}
	return d.resolver
}

// PodGroups is not used, because PodGroups of kube-scheduler have no claims here.
func (d *Devices) PodGroups() fwk.PodGroupLister { return nil }

// ListWithDeviceTaintRules returns all slices by name. Their taints are those of the drivers, and then those of the
// DeviceTaintRules, by name.
func (d *Devices) ListWithDeviceTaintRules() ([]*resourcev1.ResourceSlice, error) {
	if d.slices == nil {
		d.slices = sorted[*resourcev1.ResourceSlice](d.shelf.stores[supplies.DeviceSlice])
		rules := sorted[*resourcev1beta2.DeviceTaintRule](d.shelf.stores[supplies.DeviceTaintRule])
		for i := range d.slices {
			d.slices[i] = taint(d.slices[i], rules)
		}
	}
	return d.slices, nil
}

// taint returns a slice with the taints of rules added to its devices, the slice itself if there are none. The tracker
// of kube-scheduler does the same, in a random order, in its own goroutines.
func taint(slice *resourcev1.ResourceSlice, rules []*resourcev1beta2.DeviceTaintRule) *resourcev1.ResourceSlice {
	tainted := slice
	for _, rule := range rules {
		// A rule without a selector applies to every device, as in the tracker.
		selector := ptr.Deref(rule.Spec.DeviceSelector, resourcev1beta2.DeviceTaintSelector{})
		if ptr.Deref(selector.Driver, slice.Spec.Driver) != slice.Spec.Driver ||
			ptr.Deref(selector.Pool, slice.Spec.Pool.Name) != slice.Spec.Pool.Name {
			continue
		}
		for i := range slice.Spec.Devices {
			if name := slice.Spec.Devices[i].Name; ptr.Deref(selector.Device, name) != name {
				continue
			}
			if tainted == slice {
				tainted = slice.DeepCopy()
			}
			device, added := &tainted.Spec.Devices[i], &rule.Spec.Taint
			device.Taints = append(device.Taints, resourcev1.DeviceTaint{Key: added.Key, Value: added.Value,
				Effect: resourcev1.DeviceTaintEffect(added.Effect), TimeAdded: added.TimeAdded})
		}
	}
	return tainted
}

// List returns all claims, sorted. Of the claims for extended resources it returns only that of the current pod,
// without devices. This is the List of the claim tracker. Those of the other listers are methods of their own types.
func (d *Devices) List() ([]*resourcev1.ResourceClaim, error) {
	all := slices.DeleteFunc(sorted[*resourcev1.ResourceClaim](d.shelf.stores[supplies.DeviceClaim]), IsMade)
	if d.asking != nil {
		all = append(all, d.special())
	}
	return all, nil
}

// Get returns a claim, without the alternatives that are passed over.
func (d *Devices) Get(namespace, name string) (*resourcev1.ResourceClaim, error) {
	o, ok, err := d.shelf.stores[supplies.DeviceClaim].GetByKey(namespace + "/" + name)
	if err != nil || !ok {
		return nil, apierrors.NewNotFound(resourcev1.Resource("resourceclaims"), name)
	}
	return passing(o.(*resourcev1.ResourceClaim), d.shelf.passed), nil
}

// passing returns a claim without the first n alternatives of each request, but with the last; the claim itself if it
// has none or has devices.
func passing(claim *resourcev1.ResourceClaim, n int) *resourcev1.ResourceClaim {
	if n == 0 || claim.Status.Allocation != nil {
		return claim
	}
	shown := *claim
	shown.Spec.Devices.Requests = slices.Clone(claim.Spec.Devices.Requests)
	for i := range shown.Spec.Devices.Requests {
		if of := &shown.Spec.Devices.Requests[i].FirstAvailable; len(*of) > 1 {
			*of = (*of)[min(n, len(*of)-1):]
		}
	}
	return &shown
}

// ListAllAllocatedDevices returns the devices that are allocated or reserved for one claim alone.
func (d *Devices) ListAllAllocatedDevices() (sets.Set[structured.DeviceID], error) {
	state, err := d.GatherAllocatedState()
	return state.AllocatedDevices, err
}

// GatherAllocatedState returns what claims have, or reserve, of devices.
func (d *Devices) GatherAllocatedState() (*structured.AllocatedState, error) {
	state := &structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range d.allocated {
		if d.asking != nil && IsMade(claim) && metav1.IsControlledBy(claim, d.asking) {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			if ptr.Deref(result.AdminAccess, false) {
				continue // admin access to a device takes nothing of it
			}
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			if result.ShareID == nil {
				state.AllocatedDevices.Insert(id)
				continue
			}
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
			if result.ConsumedCapacity != nil {
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
			}
		}
	}
	return state, nil
}

// SignalClaimPendingAllocation records the allocation of a claim.
func (d *Devices) SignalClaimPendingAllocation(_ types.UID, claim *resourcev1.ResourceClaim) error {
	d.pending = append(d.pending, claim)
	return nil
}

// GetPendingAllocation returns nil, because reservations are shown as if they were written.
func (d *Devices) GetPendingAllocation(types.UID) *resourcev1.AllocationResult { return nil }

// MaybeRemoveClaimPendingAllocation is not called, because the plugin never unreserves or writes.
func (d *Devices) MaybeRemoveClaimPendingAllocation(types.UID, bool) bool { return false }

// AssumeClaimAfterAPICall is not called either.
func (d *Devices) AssumeClaimAfterAPICall(*resourcev1.ResourceClaim) error { return nil }

// AssumedClaimRestore is not called either.
func (d *Devices) AssumedClaimRestore(string, string) {}

// classes lists the device classes.
type classes Devices

// List returns all classes by name.
func (c *classes) List() ([]*resourcev1.DeviceClass, error) {
	return sorted[*resourcev1.DeviceClass](c.shelf.stores[supplies.DeviceClass]), nil
}

// Get returns a class.
func (c *classes) Get(name string) (*resourcev1.DeviceClass, error) {
	o, ok, err := c.shelf.stores[supplies.DeviceClass].GetByKey(name)
	if err != nil || !ok {
		return nil, apierrors.NewNotFound(resourcev1.Resource("deviceclasses"), name)
	}
	return o.(*resourcev1.DeviceClass), nil
}
