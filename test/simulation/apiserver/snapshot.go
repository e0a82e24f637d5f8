package apiserver

import (
	"maps"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Snapshot is the state of a server at a revision. It does not change, and many servers may start from it.
type Snapshot struct {
	revision int64
	keys     []string
	values   []versionOf
	leases   map[clientv3.LeaseID]time.Time
}

// Snapshot returns the state. A server that starts from it knows nothing of what was before: older revisions are
// compacted there.
func (s *Server) Snapshot() *Snapshot {
	d := s.database
	taken := &Snapshot{revision: d.revision, leases: maps.Clone(d.leases)}
	d.keys.Ascend(func(h *history) bool {
		if v := h.at(d.revision); v != nil {
			taken.keys, taken.values = append(taken.keys, h.key), append(taken.values, *v)
		}
		return true
	})
	return taken
}

// restore fills an empty database.
func (s *Server) restore(from *Snapshot) {
	d := s.database
	d.revision, d.compacted, d.leases = from.revision, from.revision, maps.Clone(from.leases)
	for i, key := range from.keys {
		d.keys.ReplaceOrInsert(&history{key: key, versions: []versionOf{from.values[i]}})
	}
	for i, key := range from.keys {
		v := from.values[i]
		s.commit(&change{revision: v.revision, key: key, value: v.value})
	}
}
