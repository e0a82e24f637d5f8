// Package similar finds the name that was probably meant by one that is not known.
//
// Main function: [Nearest].
//
// It must not know what is named.
package similar

import (
	"slices"
	"strings"
)

// Nearest returns the known name that is close to name, or "". Of several equally close names it returns the first in
// the alphabet, so that the order of known does not matter.
func Nearest(name string, known []string) string {
	best, bestDistance := "", 0
	for _, candidate := range slices.Sorted(slices.Values(known)) {
		// One error in three letters is allowed. Comparing the lengths first limits the work for a name as long as a
		// file.
		slips := max(1, len(candidate)/3)
		if len(name) > len(candidate)+slips || len(candidate) > len(name)+slips {
			continue
		}
		distance := editDistance(strings.ToLower(name), strings.ToLower(candidate))
		if distance <= slips && (best == "" || distance < bestDistance) {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

// editDistance counts the letters to insert, drop, replace, or swap with a neighbour to turn a into b.
func editDistance(a, b string) int {
	beforeLast, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		beforeLast, last, row = last, row, beforeLast
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], beforeLast[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
