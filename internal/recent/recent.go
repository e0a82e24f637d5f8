// Package recent keeps what was asked for lately, so that nothing has to say when a thing is gone.
//
// Main type: a [Map] has two generations. Who asks for an entry makes it young. When there are as many young ones as
// may be, or some time has passed, they become old, and those that were old before are dropped.
//
// Invariants:
//
//  1. At most twice as many entries are kept as may be young.
//  2. An entry that is not asked for is dropped within twice the time for which entries live, if [Map.Age] is called.
//
// It must not know what it keeps, nor the clock: the time comes with each call.
package recent

import "time"

// Map keeps the values of keys that were asked for lately. The zero value is empty.
type Map[K comparable, V any] struct {
	young, old map[K]V
	aged       time.Time // when the young entries last became old because of time
}

// Of returns the value of a key. One that is not kept is made. most is how many entries may be young.
func (m *Map[K, V]) Of(key K, most int, makes func() V) V {
	if value, isKept := m.young[key]; isKept {
		return value
	}
	value, isKept := m.old[key]
	if !isKept {
		value = makes()
	}
	if m.young == nil || len(m.young) >= most {
		m.young, m.old = map[K]V{}, m.young
	}
	m.young[key] = value
	return value
}

// Age makes all young entries old, and drops those that were old, if it has not done so for the time that entries live.
func (m *Map[K, V]) Age(now time.Time, life time.Duration) {
	if now.Sub(m.aged) >= life {
		m.young, m.old, m.aged = nil, m.young, now
	}
}

// Clear drops all entries.
func (m *Map[K, V]) Clear() { m.young, m.old = nil, nil }
