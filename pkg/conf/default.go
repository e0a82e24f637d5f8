package conf

import "fmt"

// DefaultYAML is the configuration if none is given: the one that Volcano installs, with the plugin resourcequota, and
// with the action and the plugin that admit Workloads of kueue.x-k8s.io. Without resourcequota two gangs may each get
// half of the pods that a ResourceQuota allows. All three do nothing in clusters without ResourceQuotas and Workloads.
// The file installer/configuration.yaml has the same text.
const DefaultYAML = `actions: "enqueue, admit, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: resourcequota
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
  - name: cohorts
`

// Default returns [DefaultYAML], parsed. It panics if the catalogue lacks an action or a plugin of it, which is a bug
// of the program.
func Default(catalogue Catalogue) *Configuration {
	c, err := Parse([]byte(DefaultYAML), catalogue)
	if err != nil {
		panic(fmt.Sprintf("conf: the default configuration does not fit the catalogue: %v", err))
	}
	return c
}
