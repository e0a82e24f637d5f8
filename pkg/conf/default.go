package conf

import "fmt"

// DefaultYAML is the configuration if none is given: the one that Volcano installs. The file
// installer/configuration.yaml has the same text.
const DefaultYAML = `actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
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
