package supply

import (
	"cmp"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/supplies"
)

// Shelf keeps the listers of a factory filled with the volumes and devices of a model.
type Shelf struct {
	cluster  *model.Cluster
	stores   map[supplies.Kind]cache.Indexer
	csiNodes storagelisters.CSINodeLister
	devices  *Devices

	askedAt  uint64                                     // what was followed when the pod was asked about
	asked    []types.NamespacedName                     // the claims of devices that are shown for the stand-in that is asked about
	imagined map[types.NamespacedName][]supplies.Object // what is shown of volumes, by stand-in
	living   int                                        // how many of these stand-ins there were when last looked

	seen   uint64 // how far Store.Changes has been followed
	filled bool
	passed int // alternatives that are passed over, see PassAlternatives
}

// NewShelf returns a shelf for the listers of a factory. They are empty until [Shelf.Follow].
func NewShelf(c *model.Cluster, factory informers.SharedInformerFactory) *Shelf {
	core, storage, resource := factory.Core().V1(), factory.Storage().V1(), factory.Resource().V1()
	s := &Shelf{cluster: c, csiNodes: storage.CSINodes().Lister(), imagined: map[types.NamespacedName][]supplies.Object{}, stores: map[supplies.Kind]cache.Indexer{
		supplies.VolumeClaim:         core.PersistentVolumeClaims().Informer().GetIndexer(),
		supplies.Volume:              core.PersistentVolumes().Informer().GetIndexer(),
		supplies.StorageClass:        storage.StorageClasses().Informer().GetIndexer(),
		supplies.CSINode:             storage.CSINodes().Informer().GetIndexer(),
		supplies.CSIDriver:           storage.CSIDrivers().Informer().GetIndexer(),
		supplies.CSICapacity:         storage.CSIStorageCapacities().Informer().GetIndexer(),
		supplies.Attachment:          storage.VolumeAttachments().Informer().GetIndexer(),
		supplies.DeviceClaim:         resource.ResourceClaims().Informer().GetIndexer(),
		supplies.DeviceSlice:         resource.ResourceSlices().Informer().GetIndexer(),
		supplies.DeviceClass:         resource.DeviceClasses().Informer().GetIndexer(),
		supplies.DeviceClaimTemplate: resource.ResourceClaimTemplates().Informer().GetIndexer(),
		supplies.DeviceTaintRule:     factory.Resource().V1beta2().DeviceTaintRules().Informer().GetIndexer(),
	}}
	s.devices = newDevices(s)
	return s
}

// MaxAlternatives is how many alternatives a request of a ResourceClaim has at most.
const MaxAlternatives = resourcev1.FirstAvailableDeviceRequestMaxSize

// PassAlternatives passes over the first n alternatives of each request of claims that have no devices yet. The last is
// always left.
func (s *Shelf) PassAlternatives(n int) { s.passed = n }

// Follow updates the listers. It returns a number that changes with them, and with the alternatives that are passed
// over.
func (s *Shelf) Follow() uint64 { return s.follow()*MaxAlternatives + uint64(s.passed) }

func (s *Shelf) follow() uint64 {
	keys, next, ok := s.cluster.Supplies().Changes(s.seen)
	if ok && len(keys) == 0 && s.filled {
		return next
	}
	s.seen = next
	if !ok || !s.filled {
		s.filled = true
		for _, store := range s.stores {
			must(store.Replace(nil, ""))
		}
		s.devices.forget()
		for _, shown := range s.imagined {
			for _, o := range shown {
				must(s.stores[supplies.KindOf(o)].Update(o))
			}
		}
		keys = s.cluster.Supplies().Keys()
	}
	for _, key := range keys {
		s.show(key)
	}
	return next
}

// show adds, updates or removes an object.
func (s *Shelf) show(key supplies.Key) {
	store, name := s.stores[key.Kind], cache.ObjectName(key.NamespacedName).String()
	before, known, err := store.GetByKey(name)
	must(err)
	now := s.cluster.Supplies().Get(key)
	switch {
	case now != nil && (!known || before != any(now)):
		must(store.Update(withoutConditions(now)))
	case now == nil && known:
		must(store.Delete(before))
	default:
		return
	}
	switch key.Kind {
	case supplies.DeviceClaim:
		s.devices.see(key.NamespacedName, now)
	case supplies.DeviceSlice, supplies.DeviceTaintRule:
		s.devices.slices = nil
	case supplies.DeviceClass:
		s.devices.resolver = nil
	}
}

// withoutConditions returns an object without the conditions of allocated devices. The plugin would never place a pod
// again whose devices have failed. Here the edge releases them, and the pod is placed again.
func withoutConditions(o supplies.Object) supplies.Object {
	claim, ok := o.(*resourcev1.ResourceClaim)
	if !ok || len(claim.Status.Devices) == 0 {
		return o
	}
	shown := *claim
	shown.Status.Devices = nil
	return &shown
}

// must panics on an error, which these stores only return for objects without a name.
func must(err error) {
	if err != nil {
		panic("invariant: a volume or device cannot be indexed: " + err.Error())
	}
}

// Devices returns what is known of devices.
func (s *Shelf) Devices() *Devices { return s.devices }

// CSINodes returns the lister of the plugin for volume limits.
func (s *Shelf) CSINodes() fwk.CSINodeLister { return s }

// List returns the drivers of all nodes.
func (s *Shelf) List() ([]*storagev1.CSINode, error) { return s.csiNodes.List(labels.Everything()) }

// Get returns the drivers of a node.
func (s *Shelf) Get(name string) (*storagev1.CSINode, error) { return s.csiNodes.Get(name) }

// sorted returns the objects of a store by name, because a store lists them in any order.
func sorted[T supplies.Object](store cache.Indexer) []T {
	objects := store.List()
	all := make([]T, len(objects))
	for i, o := range objects {
		all[i] = o.(T)
	}
	slices.SortFunc(all, func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return all
}
