package job

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// memoryLasts bounds how long the cache may be behind before the memory of an own write is given up: far longer than
// any watch lags, short enough that an event lost for good delays a Job and does not stop it.
const memoryLasts = time.Minute

// memory is what the reconciler knows of its own writes before the cache shows them. Losing it, as in a restart, is
// harmless: a fresh cache starts with everything written before, and names catch the rest.
type memory struct {
	mutex sync.Mutex
	jobs  map[types.NamespacedName]*recollection
}

type recollection struct {
	uid       types.UID
	version   string
	versionAt time.Time
	creating  map[string]time.Time

	// equippedFor is the generation whose plugins' objects exist.
	equippedFor int64
}

func newMemory() *memory {
	return &memory{jobs: map[types.NamespacedName]*recollection{}}
}

// of returns what is remembered of a Job, which is nothing if another Job had the name before. The mutex is held.
func (m *memory) of(name types.NamespacedName, uid types.UID) *recollection {
	known := m.jobs[name]
	if known == nil || known.uid != uid {
		known = &recollection{uid: uid, creating: map[string]time.Time{}}
		m.jobs[name] = known
	}
	return known
}

// wrote remembers the version of the Job that a status write gave.
func (m *memory) wrote(name types.NamespacedName, uid types.UID, version string, now time.Time) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.of(name, uid)
	known.version, known.versionAt = version, now
}

// outdated says whether the version is older than one this process has written.
func (m *memory) outdated(name types.NamespacedName, uid types.UID, version string, now time.Time) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.of(name, uid)
	if known.version == "" || now.Sub(known.versionAt) > memoryLasts {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, known.version)
	return err == nil && order < 0
}

// create remembers that a pod is about to be created. It is called before the request, so that the pod's own event can
// only come later.
func (m *memory) create(name types.NamespacedName, uid types.UID, pod string, now time.Time) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.of(name, uid).creating[pod] = now
}

// settle forgets a pod that create remembered: it has been seen, or it was refused.
func (m *memory) settle(name types.NamespacedName, uid types.UID, pod string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if known := m.jobs[name]; known != nil && known.uid == uid {
		delete(known.creating, pod)
	}
}

// awaited says whether the pod was created and has not been seen yet.
func (m *memory) awaited(name types.NamespacedName, uid types.UID, pod string, now time.Time) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	at, creating := m.of(name, uid).creating[pod]
	return creating && now.Sub(at) <= memoryLasts
}

// forget drops everything about a Job that is gone.
func (m *memory) forget(name types.NamespacedName) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.jobs, name)
}
