package job

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"

	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

// memoryLasts bounds how long the cache may be behind before the memory of an own write is given up: far longer than
// any watch lags, short enough that an event lost for good delays a Job and does not stop it.
const memoryLasts = time.Minute

// memory is what the reconciler knows of its own writes before the cache shows them. Losing it, as in a restart, is
// harmless: a fresh cache starts with everything written before, and names catch the rest.
type memory struct {
	mutex sync.Mutex
	jobs  map[types.NamespacedName]*recollection

	// commands that were followed, by Job: the cache may show them still.
	commands map[types.NamespacedName]sets.Set[types.UID]
}

type recollection struct {
	uid       types.UID
	version   string
	versionAt time.Time
	creating  map[string]time.Time

	// size is how many pods the Job wanted when it was last looked at.
	size int32

	// asked is a restart of parts of the Job whose pods may be deleted already, while the Job's status does not say it.
	asked []demand

	// begun is when occurrences began that have a delayed answer and do not say it themselves.
	begun map[beginning]time.Time

	// equippedFor is the generation whose plugins' objects exist.
	equippedFor int64
}

// beginning identifies an occurrence.
type beginning struct {
	event       bus.Event
	task, index int
}

func newMemory() *memory {
	return &memory{
		jobs:     map[types.NamespacedName]*recollection{},
		commands: map[types.NamespacedName]sets.Set[types.UID]{},
	}
}

// of returns what is remembered of a Job, which is nothing if another Job had the name before. The mutex is held.
func (m *memory) of(name types.NamespacedName, uid types.UID) *recollection {
	known := m.jobs[name]
	if known == nil || known.uid != uid {
		known = &recollection{uid: uid, creating: map[string]time.Time{}, begun: map[beginning]time.Time{}}
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

// settle forgets a pod that create remembered: it has been seen, or it was refused. It returns how many pods the Job is known
// to want.
func (m *memory) settle(name types.NamespacedName, uid types.UID, pod string) (size int32) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if known := m.jobs[name]; known != nil && known.uid == uid {
		delete(known.creating, pod)
		size = known.size
	}
	return size
}

// wants remembers how many pods a Job wants.
func (m *memory) wants(name types.NamespacedName, uid types.UID, pods int32) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.of(name, uid).size = pods
}

// awaited says whether the pod was created and has not been seen yet.
func (m *memory) awaited(name types.NamespacedName, uid types.UID, pod string, now time.Time) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	at, creating := m.of(name, uid).creating[pod]
	return creating && now.Sub(at) <= memoryLasts
}

// unseen returns the names of the pods that were created and have not been seen yet.
func (m *memory) unseen(name types.NamespacedName, uid types.UID, now time.Time) sets.Set[string] {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	pods := sets.New[string]()
	for pod, at := range m.of(name, uid).creating {
		if now.Sub(at) <= memoryLasts {
			pods.Insert(pod)
		}
	}
	return pods
}

// ask remembers demands that are being carried out until they are on record. No demands: they are.
func (m *memory) ask(name types.NamespacedName, uid types.UID, asked []demand) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.of(name, uid).asked = asked
}

// asked returns the demands that are not on record yet.
func (m *memory) asked(name types.NamespacedName, uid types.UID) []demand {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.of(name, uid).asked
}

// since returns when an occurrence was first asked about.
func (m *memory) since(name types.NamespacedName, uid types.UID, which beginning, now time.Time) time.Time {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	begun := m.of(name, uid).begun
	if _, known := begun[which]; !known {
		begun[which] = now
	}
	return begun[which]
}

// begun returns the occurrences that since was asked about, and keeps of them only those that are to be kept.
func (m *memory) begun(name types.NamespacedName, uid types.UID, keep func(beginning) bool) []beginning {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	begun := m.of(name, uid).begun
	maps.DeleteFunc(begun, func(which beginning, _ time.Time) bool { return !keep(which) })
	return slices.SortedFunc(maps.Keys(begun), func(a, b beginning) int {
		return cmp.Or(cmp.Compare(a.event, b.event), cmp.Compare(a.task, b.task), cmp.Compare(a.index, b.index))
	})
}

// follow remembers that a Command is done with.
func (m *memory) follow(name types.NamespacedName, command types.UID) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.commands[name] == nil {
		m.commands[name] = sets.New[types.UID]()
	}
	m.commands[name].Insert(command)
}

// followed says whether a Command is done with.
func (m *memory) followed(name types.NamespacedName, command types.UID) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.commands[name].Has(command)
}

// forget drops everything about a Job that is gone.
func (m *memory) forget(name types.NamespacedName) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.jobs, name)
	delete(m.commands, name)
}
