package apiserver

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/google/btree"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// database does what etcd does for an API server: keys with all their versions, one counter of revisions, and what has
// changed in the order of the revisions. It is used by one request at a time.
type database struct {
	revision  int64 // of the last change
	compacted int64 // revisions before this one cannot be read any more
	keys      *btree.BTreeG[*history]
	log       []*change // all changes after compacted
	leases    map[clientv3.LeaseID]time.Time
	committed func(*change) // is told about each change
}

// history is a key with its versions, oldest first.
type history struct {
	key      string
	versions []versionOf
}

// versionOf is what a key held from a revision on.
type versionOf struct {
	revision, created int64
	value             []byte // nil: deleted
	lease             clientv3.LeaseID
}

// change is what one revision did.
type change struct {
	revision         int64
	key              string
	value, previous  []byte // nil: there is none
	previousRevision int64

	decoded decodedChange
}

const degree = 16

func newDatabase() *database {
	return &database{
		revision: 1,
		keys:     btree.NewG(degree, func(a, b *history) bool { return a.key < b.key }),
		leases:   map[clientv3.LeaseID]time.Time{},
	}
}

var _ kubernetes.Interface = (*database)(nil)

// at returns the version that held at a revision, nil if there was none.
func (h *history) at(revision int64) *versionOf {
	i := sort.Search(len(h.versions), func(i int) bool { return h.versions[i].revision > revision })
	if i == 0 || h.versions[i-1].value == nil {
		return nil
	}
	return &h.versions[i-1]
}

func (h *history) read(revision int64) *mvccpb.KeyValue {
	v := h.at(revision)
	if v == nil {
		return nil
	}
	return &mvccpb.KeyValue{Key: []byte(h.key), Value: v.value, CreateRevision: v.created, ModRevision: v.revision}
}

// pastKey is what a context carries for reading an older revision.
type pastKey struct{}

// inThePast lets all that is read with the context be what it was at a revision.
func inThePast(ctx context.Context, revision int64) context.Context {
	return context.WithValue(ctx, pastKey{}, revision)
}

// readRevision returns which revision to read, and which one to answer with.
func (d *database) readRevision(ctx context.Context, asked int64) (read, answered int64, err error) {
	if past, ok := ctx.Value(pastKey{}).(int64); ok && asked == 0 {
		return past, past, nil
	}
	switch {
	case asked == 0:
		return d.revision, d.revision, nil
	case asked > d.revision:
		return 0, 0, rpctypes.ErrFutureRev
	case asked < d.compacted:
		return 0, 0, rpctypes.ErrCompacted
	}
	return asked, d.revision, nil
}

// Get reads one key.
func (d *database) Get(ctx context.Context, key string, options kubernetes.GetOptions) (kubernetes.GetResponse, error) {
	read, answered, err := d.readRevision(ctx, options.Revision)
	if err != nil {
		return kubernetes.GetResponse{}, err
	}
	response := kubernetes.GetResponse{Revision: answered}
	if h, ok := d.keys.Get(&history{key: key}); ok {
		response.KV = h.read(read)
	}
	return response, nil
}

// List reads the keys below a prefix, in their order.
func (d *database) List(ctx context.Context, prefix string, options kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	read, answered, err := d.readRevision(ctx, options.Revision)
	if err != nil {
		return kubernetes.ListResponse{}, err
	}
	response := kubernetes.ListResponse{Revision: answered}
	d.below(prefix, options.Continue, func(h *history) {
		v := h.at(read)
		if v == nil {
			return
		}
		response.Count++
		if options.Limit == 0 || int64(len(response.Kvs)) < options.Limit {
			response.Kvs = append(response.Kvs, h.read(read))
		}
	})
	return response, nil
}

// below visits the keys with a prefix, those before a key excepted.
func (d *database) below(prefix, from string, visit func(*history)) {
	d.keys.AscendGreaterOrEqual(&history{key: max(prefix, from)}, func(h *history) bool {
		if !strings.HasPrefix(h.key, prefix) {
			return false
		}
		visit(h)
		return true
	})
}

// Count counts the keys below a prefix.
func (d *database) Count(_ context.Context, prefix string, _ kubernetes.CountOptions) (int64, error) {
	var n int64
	d.below(prefix, "", func(h *history) {
		if h.at(d.revision) != nil {
			n++
		}
	})
	return n, nil
}

// OptimisticPut writes a key unless it has changed since a revision.
func (d *database) OptimisticPut(_ context.Context, key string, value []byte, expected int64, options kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	current := d.current(key)
	if modified(current) != expected {
		response := kubernetes.PutResponse{Revision: d.revision}
		if options.GetOnFailure {
			response.KV = current
		}
		return response, nil
	}
	d.write(key, value, options.LeaseID)
	return kubernetes.PutResponse{Succeeded: true, Revision: d.revision}, nil
}

// OptimisticDelete deletes a key unless it has changed since a revision.
func (d *database) OptimisticDelete(_ context.Context, key string, expected int64, options kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	current := d.current(key)
	if modified(current) != expected {
		response := kubernetes.DeleteResponse{Revision: d.revision}
		if options.GetOnFailure {
			response.KV = current
		}
		return response, nil
	}
	if current != nil {
		d.write(key, nil, 0)
	}
	return kubernetes.DeleteResponse{Succeeded: true, Revision: d.revision, KV: current}, nil
}

func (d *database) current(key string) *mvccpb.KeyValue {
	h, ok := d.keys.Get(&history{key: key})
	if !ok {
		return nil
	}
	return h.read(d.revision)
}

func modified(pair *mvccpb.KeyValue) int64 {
	if pair == nil {
		return 0
	}
	return pair.ModRevision
}

// write adds a version of a key; no value deletes it.
func (d *database) write(key string, value []byte, lease clientv3.LeaseID) {
	h, ok := d.keys.Get(&history{key: key})
	if !ok {
		h = &history{key: key}
		d.keys.ReplaceOrInsert(h)
	}
	d.revision++
	made := &change{revision: d.revision, key: key, value: value}
	next := versionOf{revision: d.revision, created: d.revision, value: value, lease: lease}
	if before := h.at(d.revision - 1); before != nil {
		made.previous, made.previousRevision, next.created = before.value, before.revision, before.created
	}
	h.versions = append(h.versions, next)
	d.log = append(d.log, made)
	if d.committed != nil {
		d.committed(made)
	}
}

// since returns the changes after a revision.
func (d *database) since(revision int64) []*change {
	i := sort.Search(len(d.log), func(i int) bool { return d.log[i].revision > revision })
	return d.log[i:]
}

// compact forgets what was before a revision.
func (d *database) compact(revision int64) error {
	if revision > d.revision {
		return fmt.Errorf("compact to revision %d: the last is %d", revision, d.revision)
	}
	if revision <= d.compacted {
		return nil
	}
	d.compacted = revision
	d.log = slices.Clone(d.since(revision))
	var gone []*history
	d.keys.Ascend(func(h *history) bool {
		i := sort.Search(len(h.versions), func(i int) bool { return h.versions[i].revision > revision })
		if i > 0 && h.versions[i-1].value != nil {
			i-- // what held at the revision
		}
		h.versions = slices.Delete(h.versions, 0, i)
		if len(h.versions) == 0 {
			gone = append(gone, h)
		}
		return true
	})
	for _, h := range gone {
		d.keys.Delete(h)
	}
	return nil
}

// expire deletes the keys whose lease has run out.
func (d *database) expire(now time.Time) {
	over := map[clientv3.LeaseID]bool{}
	for lease, end := range d.leases {
		if now.After(end) {
			over[lease] = true
			delete(d.leases, lease)
		}
	}
	if len(over) == 0 {
		return
	}
	var keys []string
	d.keys.Ascend(func(h *history) bool {
		if v := h.at(d.revision); v != nil && over[v.lease] {
			keys = append(keys, h.key)
		}
		return true
	})
	for _, key := range keys {
		d.write(key, nil, 0)
	}
}

// lessor is the part of an etcd client that grants leases.
type lessor struct {
	clientv3.Lease

	database *database
}

// Grant grants a lease of some seconds.
func (l lessor) Grant(_ context.Context, seconds int64) (*clientv3.LeaseGrantResponse, error) {
	id := clientv3.LeaseID(len(l.database.leases)) + clientv3.LeaseID(l.database.revision)<<16
	l.database.leases[id] = time.Now().Add(time.Duration(seconds) * time.Second)
	return &clientv3.LeaseGrantResponse{ID: id, TTL: seconds}, nil
}

// client is a client of etcd whose requests the database answers.
func (d *database) client() *kubernetes.Client {
	c := clientv3.NewCtxClient(context.Background())
	c.Lease = lessor{database: d}
	return &kubernetes.Client{Client: c, Kubernetes: d}
}

// keysBelow returns the keys with a prefix that have a value.
func (d *database) keysBelow(prefix string) []string {
	var keys []string
	d.below(prefix, "", func(h *history) {
		if h.at(d.revision) != nil {
			keys = append(keys, h.key)
		}
	})
	return keys
}
