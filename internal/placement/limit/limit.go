// Package limit bounds what is stored by the memory that it takes. What was used least recently is dropped, and worked
// out again when it is asked for.
//
// It must not know what is stored.
package limit

import (
	"cmp"
	"slices"
)

// Bytes is what all entries of one kind may take.
const Bytes = 64 << 20

// Entries is how many entries are kept that take so many bytes for each of some nodes.
func Entries(nodes, bytesPerNode int) int {
	return max(16, Bytes/(bytesPerNode*max(1, nodes)))
}

// DropOldest drops the half of some entries that was used least recently. asked counts the questions.
func DropOldest[K comparable, V any](entries map[K]V, asked func(V) uint64) {
	times := make([]uint64, 0, len(entries))
	for _, entry := range entries {
		times = append(times, asked(entry))
	}
	slices.Sort(times)
	middle := times[len(times)/2]
	older, _ := slices.BinarySearch(times, middle)
	alike := len(times)/2 - older // so many of those that were used as long ago as the one in the middle
	for key, entry := range entries {
		at := asked(entry)
		if at == middle {
			alike--
		}
		if at < middle || at == middle && alike >= 0 {
			delete(entries, key)
		}
	}
}

// OlderHalf sorts stored entries, and returns the half that was not asked for longest.
func OlderHalf[T any](stored []T, asked func(T) uint64) []T {
	slices.SortFunc(stored, func(a, b T) int { return cmp.Compare(asked(a), asked(b)) })
	return stored[:len(stored)/2]
}
