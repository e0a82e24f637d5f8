package board

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// List is some rows, as a reader may see them.
type List[T any] struct {
	// Token names this list. A request with it gets what has changed since.
	Token string `json:"token"`
	// Whole says that Rows are all there are. Otherwise they are those that are new or have changed, and Gone are the names of those that are
	// no longer there.
	Whole bool     `json:"whole"`
	Rows  []T      `json:"rows"`
	Gone  []string `json:"gone,omitempty"`
}

// table stores rows by name, and when each has changed.
type table[T any] struct {
	name  func(*T) string
	rows  map[string]*row[T]
	order []string // the names, as they came
	gone  []grave
	// floor is the oldest version of which all changes are known.
	floor uint64
}

type row[T any] struct {
	value   T
	changed uint64 // version
}

// grave is a row that was removed.
type grave struct {
	name string
	at   uint64
}

// maxGraves bounds how many removed rows are remembered. A reader that missed more gets the whole list.
const maxGraves = 20_000

func newTable[T any](name func(*T) string) table[T] {
	return table[T]{name: name, rows: map[string]*row[T]{}}
}

// update replaces all rows. It reports whether anything has changed.
func (t *table[T]) update(version uint64, values []T) (changed bool) {
	next := make(map[string]*row[T], len(values))
	order := make([]string, 0, len(values))
	for i := range values {
		name := t.name(&values[i])
		known := t.rows[name]
		if known == nil || !reflect.DeepEqual(&known.value, &values[i]) {
			known, changed = &row[T]{value: values[i], changed: version}, true
		}
		next[name] = known
		order = append(order, name)
	}
	for _, name := range slices.Sorted(maps.Keys(t.rows)) {
		if next[name] == nil {
			t.gone, changed = append(t.gone, grave{name, version}), true
		}
	}
	if surplus := len(t.gone) - maxGraves; surplus > 0 {
		t.floor = t.gone[surplus-1].at
		t.gone = slices.Delete(t.gone, 0, surplus)
	}
	t.rows, t.order = next, order
	return changed
}

// since returns what has changed after a version, or all if the version is 0 or too old. visit is called with each row of the table, changed or
// not, and says whether the reader may see it; sees says that of the name of a row that is gone.
func (t *table[T]) since(version uint64, visit func(*T) bool, sees func(name string) bool) List[T] {
	list := List[T]{Whole: version == 0 || version < t.floor, Rows: []T{}}
	for _, name := range t.order {
		if r := t.rows[name]; visit(&r.value) && (list.Whole || r.changed > version) {
			list.Rows = append(list.Rows, r.value)
		}
	}
	if list.Whole {
		return list
	}
	for _, g := range t.gone {
		if g.at > version && t.rows[g.name] == nil && sees(g.name) {
			list.Gone = append(list.Gone, g.name)
		}
	}
	return list
}

// token is the state of a list: of which process, with which view, and which version.
type token struct {
	process, view, version uint64
}

func (t token) String() string { return fmt.Sprintf("%x-%x-%d", t.process, t.view, t.version) }

// sinceOf returns the version of a token, 0 if it belongs to another process or view.
func (t token) sinceOf(text string) uint64 {
	var given token
	if _, err := fmt.Sscanf(text, "%x-%x-%d", &given.process, &given.view, &given.version); err != nil || given.process != t.process ||
		given.view != t.view || given.version > t.version {
		return 0
	}
	return given.version
}
