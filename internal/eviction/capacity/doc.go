// Package capacity says what nodes could run if they were empty. With it a search that would evict every pod in vain ends before
// it begins.
//
// It must not know which pods may be evicted.
package capacity
