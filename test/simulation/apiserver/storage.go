package apiserver

import (
	"context"
	"path"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher/delegator"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/tools/cache"
)

// registry is the prefix of all keys.
const registry = "/registry/"

// objects is the storage of one resource: the API server's own code for etcd on a [database], and what its watch cache
// would answer.
type objects struct {
	storage.Interface

	server   *Server
	resource schema.GroupResource
	prefix   string // of the keys
	isCached bool   // as all are in the API server but Events
	decoder  etcd3.Decoder
	newFunc  func() runtime.Object
}

var _ generic.StorageDecorator = (&Server{}).decorate

// decorate makes the storage of a resource.
func (s *Server) decorate(config *storagebackend.ConfigForResource, prefix string, _ func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	versioner := storage.APIObjectVersioner{}
	decoder := etcd3.NewDefaultDecoder(config.Codec, versioner)
	store, err := etcd3.New(s.client, nil, config.Codec, newFunc, newListFunc, registry, prefix, config.GroupResource,
		identity.NewEncryptCheckTransformer(), etcd3.NewDefaultLeaseManagerConfig(), decoder, versioner)
	if err != nil {
		return nil, nil, err
	}
	o := &objects{
		Interface: store, server: s, resource: config.GroupResource, prefix: path.Join(registry, prefix) + "/",
		decoder: decoder, newFunc: newFunc, isCached: config.GroupResource.Resource != "events",
	}
	s.stored[o.prefix] = o
	return o, func() {}, nil
}

// cached returns the revision at which a cache answers a request that may be answered from the past.
func (o *objects) cached(resourceVersion string) (revision int64, err error) {
	asked, err := o.Versioner().ParseResourceVersion(resourceVersion)
	if err != nil {
		return 0, err
	}
	d := o.server.database
	revision = d.revision
	if int64(asked) > revision {
		return 0, storage.NewTooLargeResourceVersionError(asked, uint64(revision), 1)
	}
	if o.server.options.CacheRevision != nil {
		revision = o.server.options.CacheRevision(o.resource, d.compacted, d.revision)
	}
	return min(max(revision, int64(asked), d.compacted, 1), d.revision), nil
}

// Get reads one object. A request with a resource version may be answered from the past.
func (o *objects) Get(ctx context.Context, key string, options storage.GetOptions, into runtime.Object) error {
	if options.ResourceVersion != "" && o.isCached {
		revision, err := o.cached(options.ResourceVersion)
		if err != nil {
			return err
		}
		ctx = inThePast(ctx, revision)
	}
	return o.Interface.Get(ctx, key, options, into)
}

// GetList lists objects. Which requests a cache may answer, and then without a limit, is as in the API server.
func (o *objects) GetList(ctx context.Context, key string, options storage.ListOptions, into runtime.Object) error {
	if o.isCached {
		if _, _, err := storage.ValidateListOptions(o.prefix, o.Versioner(), options); err != nil {
			return err
		}
	}
	if options.ResourceVersion != "" && o.isCached {
		result, err := delegator.ShouldDelegateList(options, delegator.CacheWithoutSnapshots{})
		if err != nil {
			return err
		}
		if !result.ShouldDelegate {
			revision, err := o.cached(options.ResourceVersion)
			if err != nil {
				return err
			}
			ctx = inThePast(ctx, revision)
			if options.ResourceVersion == "0" {
				options.Predicate.Limit = 0
			}
			options.ResourceVersion, options.ResourceVersionMatch = "", ""
		}
	}
	return o.Interface.GetList(ctx, key, options, into)
}

// GetCurrentResourceVersion returns the revision of the last change.
func (o *objects) GetCurrentResourceVersion(context.Context) (uint64, error) {
	return uint64(o.server.database.revision), nil
}

// RequestWatchProgress does nothing: the simulation decides when a bookmark comes.
func (o *objects) RequestWatchProgress(context.Context) error { return nil }

// EnableResourceSizeEstimation does nothing: sizes are for flow control, which is not served.
func (o *objects) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }

// CompactRevision returns the first revision that can be read.
func (o *objects) CompactRevision() int64 { return o.server.database.compacted }

// Watch hands the events to the [Cursor] of the request.
func (o *objects) Watch(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	prepared, err := storage.PrepareKey("/", key, options.Recursive)
	if err != nil {
		return nil, err
	}
	cursor, ok := ctx.Value(cursorKey{}).(*Cursor)
	if !ok {
		return nil, errWatchOutside
	}
	if _, err := o.Versioner().ParseResourceVersion(options.ResourceVersion); err != nil {
		return nil, err
	}
	if options.Recursive {
		prepared = path.Join(registry, prepared) + "/"
	} else {
		prepared = path.Join(registry, prepared)
	}
	cursor.open(o, prepared, options)
	return cursor.source, nil
}

// decode reads an object of the resource from what is stored.
func (o *objects) decode(value []byte, revision int64) (runtime.Object, error) {
	object := o.newFunc()
	return object, o.decoder.Decode(value, object, revision)
}
