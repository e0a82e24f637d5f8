package cluster

import "hekla.sh/hekla/pkg/cluster/budget"

// Budget is described at [budget.Budget].
type Budget = budget.Budget
