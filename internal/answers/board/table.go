package board

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
)

// List is some rows, as a reader may see them.
type List[T any] struct {
	// Token names this list. A request with it gets what has changed since.
	Token string `json:"token"`
	// Whole says that Rows are all there are. Otherwise they are those that are new or have changed, and Gone are the
	// names of those that are no longer there.
	Whole bool     `json:"whole"`
	Rows  []T      `json:"rows"`
	Gone  []string `json:"gone,omitempty"`
}

// table stores rows, sorted by name, and when each has changed.
type table[T any] struct {
	name func(*T) string
	rows []row[T]
	gone []removedRow
	// floor is the oldest version of which all changes are known.
	floor uint64
}

type row[T any] struct {
	value   *T
	changed uint64 // version
}

// removedRow is a row that was removed.
type removedRow struct {
	name string
	at   uint64
}

// maxRemoved bounds how many removed rows are remembered. A reader that missed more gets the whole list.
const maxRemoved = 20_000

func newTable[T any](name func(*T) string) table[T] { return table[T]{name: name} }

// update replaces all rows by others, which are sorted by name too. It reports whether anything has changed. Rows that
// are the same in memory are not compared.
func (t *table[T]) update(version uint64, values []*T) (changed bool) {
	next, old := make([]row[T], 0, len(values)), t.rows
	noteRemoved := func() {
		t.gone, changed = append(t.gone, removedRow{t.name(old[0].value), version}), true
		old = old[1:]
	}
	for _, value := range values {
		for len(old) > 0 && old[0].value != value && t.name(old[0].value) < t.name(value) {
			noteRemoved()
		}
		known := row[T]{value: value, changed: version}
		if len(old) > 0 && t.isSame(old[0].value, value) {
			if known.value == old[0].value || reflect.DeepEqual(old[0].value, value) {
				known = old[0]
			}
			old = old[1:]
		}
		changed = changed || known.changed == version
		next = append(next, known)
	}
	for len(old) > 0 {
		noteRemoved()
	}
	if surplus := len(t.gone) - maxRemoved; surplus > 0 {
		t.floor = t.gone[surplus-1].at
		t.gone = slices.Delete(t.gone, 0, surplus)
	}
	t.rows = next
	return changed
}

// isSame reports whether two rows are about one object.
func (t *table[T]) isSame(a, b *T) bool { return a == b || t.name(a) == t.name(b) }

// has reports whether there is a row of a name.
func (t *table[T]) has(name string) bool {
	_, found := slices.BinarySearchFunc(t.rows, name, func(r row[T], name string) int { return cmp.Compare(t.name(r.value), name) })
	return found
}

// since returns what has changed after a version, or all if the version is 0 or too old. visit is called with each row
// of the table, changed or not, and says whether the reader may see it; sees says that of the name of a row that is
// gone.
func (t *table[T]) since(version uint64, visit func(*T) bool, sees func(name string) bool) List[T] {
	list := List[T]{Whole: version == 0 || version < t.floor, Rows: []T{}}
	for _, r := range t.rows {
		if visit(r.value) && (list.Whole || r.changed > version) {
			list.Rows = append(list.Rows, *r.value)
		}
	}
	if list.Whole {
		return list
	}
	for _, g := range t.gone {
		if g.at > version && !t.has(g.name) && sees(g.name) {
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
