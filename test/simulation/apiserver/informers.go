package apiserver

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/networking"
	"k8s.io/client-go/informers/node"
	"k8s.io/client-go/informers/rbac"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	informerstorage "k8s.io/client-go/informers/storage"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// informers are what the API server's admission plugins read. They are filled at once by each change, without
// goroutines: the delay that a plugin has in a real server is not served.
type informers struct {
	kubeinformers.SharedInformerFactory // for the kinds that are not served

	server     *Server
	byResource map[schema.GroupResource]*informer
}

var _ internalinterfaces.SharedInformerFactory = (*informers)(nil)

func newInformers(s *Server, client kubernetes.Interface) *informers {
	return &informers{
		SharedInformerFactory: kubeinformers.NewSharedInformerFactory(client, 0),
		server:                s, byResource: map[schema.GroupResource]*informer{},
	}
}

// Start does nothing.
func (f *informers) Start(<-chan struct{}) {}

// InformerFor returns the informer of a kind.
func (f *informers) InformerFor(object runtime.Object, _ internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	kinds, _, err := clientgoscheme.Scheme.ObjectKinds(object)
	if err != nil {
		panic(err) // a plugin asks for what is no kind of Kubernetes
	}
	plural, _ := meta.UnsafeGuessKindToResource(kinds[0])
	of := plural.GroupResource()
	if known, ok := f.byResource[of]; ok {
		return known
	}
	made := newInformer()
	made.empty = func() runtime.Object { return mustNew(kinds[0]) }
	f.byResource[of] = made
	return made
}

func mustNew(kind schema.GroupVersionKind) runtime.Object {
	object, err := clientgoscheme.Scheme.New(kind)
	if err != nil {
		panic(err) // it came from the same scheme
	}
	return object
}

// Core and the following return the informers of a group.
func (f *informers) Core() core.Interface { return core.New(f, "", nil) }

// Apps returns those of apps.
func (f *informers) Apps() apps.Interface { return apps.New(f, "", nil) }

// Scheduling returns those of scheduling.k8s.io.
func (f *informers) Scheduling() scheduling.Interface { return scheduling.New(f, "", nil) }

// Storage returns those of storage.k8s.io.
func (f *informers) Storage() informerstorage.Interface { return informerstorage.New(f, "", nil) }

// Node returns those of node.k8s.io.
func (f *informers) Node() node.Interface { return node.New(f, "", nil) }

// Networking returns those of networking.k8s.io.
func (f *informers) Networking() networking.Interface { return networking.New(f, "", nil) }

// Resource returns those of resource.k8s.io.
func (f *informers) Resource() resource.Interface { return resource.New(f, "", nil) }

// Rbac returns those of rbac.authorization.k8s.io.
func (f *informers) Rbac() rbac.Interface { return rbac.New(f, "", nil) }

// Admissionregistration returns those of admissionregistration.k8s.io.
func (f *informers) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(f, "", nil)
}

// ForResource returns the informer of a resource, of custom ones, too.
func (f *informers) ForResource(resource schema.GroupVersionResource) (kubeinformers.GenericInformer, error) {
	of := resource.GroupResource()
	known, ok := f.byResource[of]
	if !ok {
		known = newInformer()
		if kind, err := f.server.kindOf(resource); err == nil && clientgoscheme.Scheme.Recognizes(kind) {
			known.empty = func() runtime.Object { return mustNew(kind) }
		}
		f.byResource[of] = known
		if err := f.fill(of); err != nil {
			return nil, err
		}
	}
	return &genericInformer{known, of}, nil
}

// fill puts the objects that are there into a new informer.
func (f *informers) fill(of schema.GroupResource) error {
	for prefix, by := range f.server.stored {
		if by.resource != of {
			continue
		}
		for _, key := range f.server.database.keysBelow(prefix) {
			pair := f.server.database.current(key)
			if err := f.changed(by, &change{revision: pair.ModRevision, key: key, value: pair.Value}); err != nil {
				return err
			}
		}
	}
	return nil
}

// genericInformer is an informer with a lister.
type genericInformer struct {
	informer *informer
	resource schema.GroupResource
}

// Informer returns the informer.
func (g *genericInformer) Informer() cache.SharedIndexInformer { return g.informer }

// Lister returns the lister.
func (g *genericInformer) Lister() cache.GenericLister {
	return cache.NewGenericLister(g.informer.indexer, g.resource)
}

// changed takes a change in.
func (f *informers) changed(by *objects, made *change) error {
	of, ok := f.byResource[by.resource]
	if !ok {
		return nil
	}
	object, previous, err := made.decode(by)
	if err != nil {
		return err
	}
	if object == nil {
		external, err := of.external(previous)
		if err != nil {
			return err
		}
		return of.remove(external)
	}
	external, err := of.external(object)
	if err != nil {
		return err
	}
	return of.put(external)
}

// informer is an informer that each write fills.
type informer struct {
	cache.SharedIndexInformer // what is not here is not asked for

	indexer  cache.Indexer
	handlers []cache.ResourceEventHandler
	empty    func() runtime.Object // nil: of custom resources
}

func newInformer() *informer {
	return &informer{indexer: cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
	})}
}

// external converts an object of the API server.
func (i *informer) external(object runtime.Object) (runtime.Object, error) {
	if i.empty == nil {
		return object.DeepCopyObject(), nil // a custom resource
	}
	converted := i.empty()
	return converted, legacyscheme.Scheme.Convert(object, converted, nil)
}

func (i *informer) put(object runtime.Object) error {
	before, exists, err := i.indexer.Get(object)
	if err != nil {
		return err
	}
	if !exists {
		if err := i.indexer.Add(object); err != nil {
			return err
		}
		for _, h := range i.handlers {
			h.OnAdd(object, false)
		}
		return nil
	}
	if err := i.indexer.Update(object); err != nil {
		return err
	}
	for _, h := range i.handlers {
		h.OnUpdate(before, object)
	}
	return nil
}

func (i *informer) remove(object runtime.Object) error {
	if err := i.indexer.Delete(object); err != nil {
		return err
	}
	for _, h := range i.handlers {
		h.OnDelete(object)
	}
	return nil
}

// AddEventHandler tells a handler about all changes from now on.
func (i *informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, handler)
	for _, object := range i.indexer.List() {
		handler.OnAdd(object, true)
	}
	return registration{}, nil
}

// AddEventHandlerWithResyncPeriod is AddEventHandler: there are no resyncs.
func (i *informer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// RemoveEventHandler does nothing: plugins live as long as the server.
func (i *informer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }

// GetStore returns the objects.
func (i *informer) GetStore() cache.Store { return i.indexer }

// GetIndexer returns the objects.
func (i *informer) GetIndexer() cache.Indexer { return i.indexer }

// HasSynced is always true.
func (i *informer) HasSynced() bool { return true }

// AddIndexers adds indexes.
func (i *informer) AddIndexers(indexers cache.Indexers) error { return i.indexer.AddIndexers(indexers) }

// IsStopped is never true.
func (i *informer) IsStopped() bool { return false }

// Run does nothing.
func (i *informer) Run(<-chan struct{}) {}

// registration is of a handler that is told at once.
type registration struct {
	cache.ResourceEventHandlerRegistration
}

func (registration) HasSynced() bool { return true }

// storedAt returns the storage that a key belongs to.
func (s *Server) storedAt(key string) *objects {
	for i := len(registry); i < len(key); i++ {
		if key[i] != '/' {
			continue
		}
		if o, ok := s.stored[key[:i+1]]; ok {
			return o
		}
	}
	return s.stored[strings.TrimSuffix(key, "/")+"/"]
}
