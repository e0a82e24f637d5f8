package loop

import "strings"

// Evicting is a configuration with all actions that evict. Its first tier has priority, gang and conformance, the
// second these plugins; the arguments of a plugin follow its name on a line of their own.
func Evicting(plugins ...string) string {
	return `
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: ` + strings.Join(plugins, "\n  - name: ") + "\n"
}
