package placement

import (
	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/pkg/cluster"
)

// Configuration is what an engine is made of.
type Configuration struct {
	Filters []Filter
	Vetoers []Vetoer
	Scorers []Scorer
	// Point is how much of the unit of scorers one point of a score of kube-scheduler is.
	Point int64

	// KubeFilters and KubeScores are the plugins of kube-scheduler that take part, and Kube their arguments.
	KubeFilters []string
	KubeScores  []kube.Weighted
	Kube        kube.Arguments
}

// Filter says why a node cannot hold pods of a class, whatever room it has; "" if it can. It looks at the node and what is on it, and
// is asked again only when that has changed, unless it is an [Invalidator] too.
type Filter interface {
	RefuseNode(k *cluster.Class, n *cluster.Node) string
}

// Vetoer refuses a node that would be chosen for a pod, "" if it agrees. Unlike a [Filter] it may look at all of the pod. What it says
// stands until the node or the pod changes.
type Vetoer interface {
	VetoNode(t *cluster.Task, n *cluster.Node) string
}

// Scorer says how good a node is for pods of a class: the sum over all scorers decides, and among equals the name of the node. It is
// asked only about nodes that fit, and again only when the node or what is on it has changed.
type Scorer interface {
	ScoreNode(k *cluster.Class, n *cluster.Node) int64
}

// TableScorer is implemented by scorers that look at nothing but the amounts of a node. AddScores adds to scores[i] what ScoreNode says of
// the node that has slots[i].
type TableScorer interface {
	Scorer
	AddScores(k *cluster.Class, t *cluster.NodeTable, slots []int32, scores []int64)
}

// Invalidator is implemented by filters and scorers whose answer about a node rests on others as well. InvalidateNodes is called before
// answers are used, and has every node looked at again of which they would say something else now.
type Invalidator interface {
	InvalidateNodes()
}
