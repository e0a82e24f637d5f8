package changelog

// Slots is a log of changes of slots: small numbers that change again and again. A follower that is far behind is told
// each slot once. The zero value must not be used, see [NewSlots].
type Slots struct {
	Log[int32]
	last []uint64 // by slot: the position after its last entry

	// What was told last to a follower far behind: the next one is often as far.
	told     []int32
	from, to uint64
}

// NewSlots returns a log that keeps at most bound entries, and at least half of them.
func NewSlots(bound int) Slots { return Slots{Log: New[int32](bound)} }

// Add appends a change of a slot.
func (s *Slots) Add(slot int32) {
	s.Log.Add(slot)
	for len(s.last) <= int(slot) {
		s.last = append(s.last, 0)
	}
	s.last[slot] = s.End()
}

// Since is [Log.Since]. If there are more entries than slots, it returns each slot once, in the order of slots. Then
// the result stays valid.
func (s *Slots) Since(position uint64) (slots []int32, next uint64, ok bool) {
	entries, next, ok := s.Log.Since(position)
	if len(entries) <= len(s.last) {
		return entries, next, ok
	}
	from := next - uint64(len(entries))
	if s.from == from && s.to == next {
		return s.told, next, ok
	}
	slots = make([]int32, 0, len(s.last))
	for slot, last := range s.last {
		if last > from {
			slots = append(slots, int32(slot))
		}
	}
	s.told, s.from, s.to = slots, from, next
	return slots, next, ok
}
