package changelog

// Log is a list of changes. [New] makes one.
type Log[T any] struct {
	entries []T
	dropped uint64 // number of entries that were dropped
	bound   int

	undoneFrom, undoneTo uint64 // the last part whose changes were undone in trials
	inTrial              bool
	trialFrom            uint64
}

// New returns a log that keeps at most bound entries, and at least half of them.
func New[T any](bound int) Log[T] { return Log[T]{bound: bound} }

// Add appends a change.
func (l *Log[T]) Add(entry T) {
	if len(l.entries) >= l.bound {
		half := len(l.entries) / 2
		l.dropped += uint64(half)
		l.entries = append(l.entries[:0], l.entries[half:]...)
	}
	l.entries = append(l.entries, entry)
}

// End is the position after the last entry.
func (l *Log[T]) End() uint64 { return l.dropped + uint64(len(l.entries)) }

// Since returns the entries from a position on, the oldest first, and the position for the next call. ok is false if
// some of them were dropped. The entries are valid until the next call of Add.
func (l *Log[T]) Since(position uint64) (entries []T, next uint64, ok bool) {
	next = l.End()
	if position == l.undoneFrom && !l.inTrial {
		position = max(position, l.undoneTo)
	}
	if position < l.dropped {
		return nil, next, false
	}
	return l.entries[position-l.dropped:], next, true
}

// BeginTrial says that the changes from now on may be undone.
func (l *Log[T]) BeginTrial() { l.inTrial, l.trialFrom = true, l.End() }

// EndTrial ends a trial. If all of it was undone, a reader at its beginning may skip it. Trials that follow each other
// directly are skipped together.
func (l *Log[T]) EndTrial(isUndone bool) {
	l.inTrial = false
	if !isUndone {
		return
	}
	if l.undoneTo != l.trialFrom {
		l.undoneFrom = l.trialFrom
	}
	l.undoneTo = l.End()
}
