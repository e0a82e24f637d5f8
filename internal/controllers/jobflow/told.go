package jobflow

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// told remembers which troubles of each JobFlow Events tell of, so that only those that are new get one. After a
// restart, those that the status already shows count as told. The zero value is empty.
type told struct {
	mutex sync.Mutex
	of    map[types.NamespacedName]toldOf
}

type toldOf struct {
	uid      types.UID
	troubles []trouble
}

// replace notes the troubles of a JobFlow and returns those before.
func (t *told) replace(name types.NamespacedName, uid types.UID, now []trouble) (before []trouble) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if known := t.of[name]; known.uid == uid {
		before = known.troubles
	}
	if len(now) == 0 {
		delete(t.of, name)
		return before
	}
	if t.of == nil {
		t.of = map[types.NamespacedName]toldOf{}
	}
	t.of[name] = toldOf{uid, now}
	return before
}

func (t *told) forget(name types.NamespacedName) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.of, name)
}
