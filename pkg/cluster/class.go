package cluster

import (
	"hekla.sh/hekla/pkg/cluster/podclass"
	"hekla.sh/hekla/pkg/cluster/pods"
)

// Class is described at [podclass.Class].
type Class = podclass.Class

// Pod is described at [pods.Pod].
type Pod = pods.Pod

// Keys are described at [podclass.Keys].
type Keys = podclass.Keys
