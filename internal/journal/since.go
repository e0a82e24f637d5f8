package journal

// Since returns the newest entries of the cycles after a cycle, at most as many as most, the oldest first.
func (l *Journal) Since(cycle uint64, most int) []Entry {
	count := 0
	for at := l.newest; at != none && l.record(at).cycle > cycle && count < most; at = l.record(at).previous {
		count++
	}
	return l.All(count)
}
