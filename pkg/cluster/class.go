package cluster

import "hekla.sh/hekla/pkg/cluster/podclass"

// Class is described at [podclass.Class].
type Class = podclass.Class

// Keys are described at [podclass.Keys].
type Keys = podclass.Keys
