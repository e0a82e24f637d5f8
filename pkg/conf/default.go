package conf

import "fmt"

// DefaultYAML is in force where no configuration is given: the configuration that Volcano installs. The file
// installer/configuration.yaml has the same text, to start from.
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

// Default is [DefaultYAML], parsed. It panics if the catalogue lacks an action or a plugin that is named there: such a
// catalogue is a defect of the program, not of a file.
func Default(catalogue Catalogue) *Configuration {
	c, err := Parse([]byte(DefaultYAML), catalogue)
	if err != nil {
		panic(fmt.Sprintf("conf: the default configuration does not fit the catalogue: %v", err))
	}
	return c
}
