package placement

import (
	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/pkg/cluster"
)

// Configuration is what an engine is made from.
type Configuration struct {
	Filters []Filter
	Vetoers []Vetoer
	Scorers []Scorer
	// Point is one point of a kube-scheduler score, in the unit of scorers.
	Point int64

	// KubeFilters and KubeScores are the plugins of kube-scheduler to use, and Kube their arguments.
	KubeFilters []string
	KubeScores  []kube.Weighted
	Kube        kube.Arguments
}

// Filter says why a node cannot run pods of a class, however much is free on it; "" if it can. It looks at the node and
// its pods, and is asked again only when these have changed, unless it is an [Invalidator] too.
type Filter interface {
	RefuseNode(k *cluster.Class, n *cluster.Node) string
}

// Vetoer refuses a node that would be chosen for a pod, "" if it agrees. Unlike a [Filter] it may look at the whole
// pod. Its answer is kept until the node or the pod changes.
type Vetoer interface {
	VetoNode(t *cluster.Task, n *cluster.Node) string
}

// Scorer says how good a node is for pods of a class. The node with the largest sum over all scorers is chosen, the
// first by name among equals. A scorer is asked only about nodes that fit, and again only when the node or its pods
// have changed.
type Scorer interface {
	ScoreNode(k *cluster.Class, n *cluster.Node) int64
}

// TableScorer is implemented by scorers that look at nothing but the amounts of a node, and at nothing of a class but
// Request and NonZero. AddScores adds to scores[i] what ScoreNode says of the node that has slots[i].
type TableScorer interface {
	Scorer
	AddScores(k *cluster.Class, t *cluster.NodeTable, slots []int32, scores []int64)
}

// Invalidator is implemented by filters and scorers whose answer about a node depends on other nodes. InvalidateNodes
// is called before answers are used, and invalidates every node for which the answer has changed.
type Invalidator interface {
	InvalidateNodes()
}
