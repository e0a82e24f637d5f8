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

	"hekla.sh/hekla/internal/controllers/job/lifecycle"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

// memoryLasts limits how long an own write is remembered while the cache does not show it. It is far longer than any
// watch lags. It is short enough that an event that never comes delays a Job and does not stop it.
const memoryLasts = time.Minute

// memory is what the reconciler knows of its own writes before the cache shows them. Losing it in a restart is
// harmless: a new cache starts with everything written before, and names prevent duplicates.
type memory struct {
	mutex sync.Mutex
	jobs  map[types.NamespacedName]*recollection

	// commands that were carried out, by Job, which the cache may still show.
	commands map[types.NamespacedName]sets.Set[types.UID]
}

type recollection struct {
	uid       types.UID
	version   string
	versionAt time.Time
	creating  map[string]*creation

	// seen is when this process first saw the Job without a status.
	seen time.Time

	// size is how many pods the Job wanted when it was last looked at.
	size int32

	// asked is a restart of parts of the Job whose pods may be deleted already, while the Job's status does not say it.
	asked []lifecycle.Demand

	// begun is when occurrences with a delayed action began, if they do not show it themselves.
	begun map[beginning]time.Time

	// refusals are those of kubelets, by the name of the pod.
	refusals map[string]refusals

	// equippedFor is the generation whose plugins' objects exist.
	equippedFor int64
}

// creation is a pod that is being created, or was and has not been seen.
type creation struct {
	at  time.Time
	uid types.UID // "" while the request is on its way

	// told are the pods of the name that were seen while the request was on its way: an earlier one that is gone, or
	// this one.
	told []types.UID
}

// refusals are how often in a row kubelets have refused the pods of a name, and which pod the last time.
type refusals struct {
	inARow int
	last   types.UID
	at     time.Time
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
		known = &recollection{uid: uid, creating: map[string]*creation{}, refusals: map[string]refusals{}, begun: map[beginning]time.Time{}}
		m.jobs[name] = known
	}
	return known
}

// newSince returns since when the Job is known to have no status.
func (m *memory) newSince(name types.NamespacedName, uid types.UID, now time.Time) time.Time {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.of(name, uid)
	if known.seen.IsZero() {
		known.seen = now
	}
	return known.seen
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
	m.of(name, uid).creating[pod] = &creation{at: now}
}

// created remembers which pod was created, unless it has been seen meanwhile.
func (m *memory) created(name types.NamespacedName, uid types.UID, pod string, made types.UID) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.of(name, uid)
	if c := known.creating[pod]; c != nil && slices.Contains(c.told, made) {
		delete(known.creating, pod)
	} else if c != nil {
		c.uid, c.told = made, nil
	}
}

// refused forgets a pod that create remembered: it was not made.
func (m *memory) refused(name types.NamespacedName, uid types.UID, pod string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.of(name, uid).creating, pod)
}

// countRefusal notes that a kubelet has refused a pod. It returns how often pods of the name were refused in a row.
func (m *memory) countRefusal(name types.NamespacedName, uid types.UID, pod string, refused types.UID, now time.Time) int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.of(name, uid).refusals
	maps.DeleteFunc(known, func(_ string, r refusals) bool { return r.last != refused && now.Sub(r.at) > lifecycle.RefusalsLast })
	if r := known[pod]; r.last != refused {
		known[pod] = refusals{r.inARow + 1, refused, now}
	}
	return known[pod].inARow
}

// settle notes that the watch has delivered a pod of a Job, or its deletion, so that it is not awaited any more. If it
// is an earlier pod of the name, whose events come late, the new one is still awaited. It returns how many pods the Job
// is known to want.
func (m *memory) settle(name types.NamespacedName, uid types.UID, pod string, seen types.UID) (size int32) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.jobs[name]
	if known == nil || known.uid != uid {
		return 0
	}
	switch c := known.creating[pod]; {
	case c == nil:
	case c.uid == "":
		c.told = append(c.told, seen)
	case c.uid == seen:
		delete(known.creating, pod)
	}
	return known.size
}

// wants remembers how many pods a Job wants.
func (m *memory) wants(name types.NamespacedName, uid types.UID, pods int32) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.of(name, uid).size = pods
}

// unseen returns the names of the pods that were created and have not been seen yet, and for how long the first of them
// is still awaited, 0 if there are none.
func (m *memory) unseen(name types.NamespacedName, uid types.UID, now time.Time) (pods sets.Set[string], wait time.Duration) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	pods = sets.New[string]()
	creating := m.of(name, uid).creating
	for pod, c := range creating {
		left := c.at.Add(memoryLasts).Sub(now)
		if left <= 0 {
			delete(creating, pod)
			continue
		}
		pods.Insert(pod)
		wait = sooner(wait, left)
	}
	return pods, wait
}

// ask remembers demands that are being carried out until they are on record. No demands: they are.
func (m *memory) ask(name types.NamespacedName, uid types.UID, asked []lifecycle.Demand) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.of(name, uid).asked = asked
}

// asked returns the demands that are not on record yet.
func (m *memory) asked(name types.NamespacedName, uid types.UID) []lifecycle.Demand {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.of(name, uid).asked
}

// Since returns when an occurrence was first asked about.
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

// Follow remembers that a Command is done with.
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

// keepFollowed forgets the Commands that are done with and that the cache does not show any more: they never come back.
func (m *memory) keepFollowed(name types.NamespacedName, present sets.Set[types.UID]) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if kept := m.commands[name].Intersection(present); kept.Len() > 0 {
		m.commands[name] = kept
	} else {
		delete(m.commands, name)
	}
}

// forget drops everything about a deleted Job.
func (m *memory) forget(name types.NamespacedName) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.jobs, name)
	delete(m.commands, name)
}
