package verdict

import "slices"

// NodeKind is what about a node keeps a pod away, in one word.
type NodeKind string

// The kinds.
const (
	NodeRoom   NodeKind = "Room"   // it has too little of a resource, or too many pods
	NodeState  NodeKind = "State"  // it is not ready, cordoned, or its object is not known
	NodeTaint  NodeKind = "Taint"  // it has a taint that the pod does not tolerate
	NodeLabels NodeKind = "Labels" // its name or labels are not those that the pod asks for
	NodePods   NodeKind = "Pods"   // affinity, anti-affinity or spread: by the pods there or elsewhere
	NodePorts  NodeKind = "Ports"  // a host port is in use
	NodeVolume NodeKind = "Volume" // it lacks a volume, or may not attach another
	NodeDevice NodeKind = "Device" // it lacks a device of a ResourceClaim, or the claim is missing
	NodePlugin NodeKind = "Plugin" // another plugin of the configuration refuses it
)

// NodeRefusal is why a node refuses a pod. The zero value is no refusal.
type NodeRefusal struct {
	Kind NodeKind
	Text string // in kube-scheduler's words, such as "Insufficient cpu"; never empty if there is a refusal
}

// IsNone reports whether the node does not refuse.
func (r NodeRefusal) IsNone() bool { return r.Text == "" }

// Refuses returns a refusal for which there is a text, none for "".
func (k NodeKind) Refuses(text string) NodeRefusal {
	if text == "" {
		return NodeRefusal{}
	}
	return NodeRefusal{Kind: k, Text: text}
}

// NodeReason counts the nodes that refuse for one reason.
type NodeReason struct {
	Kind    NodeKind
	Reason  string // in kube-scheduler's words, such as "Insufficient cpu"
	Nodes   int
	Example string // one such node, the first by name
}

// CountNode counts one more node for a refusal. The first node is the example.
func CountNode(reasons []NodeReason, refusal NodeRefusal, node string) []NodeReason {
	i := slices.IndexFunc(reasons, func(r NodeReason) bool { return r.Reason == refusal.Text && r.Kind == refusal.Kind })
	if i < 0 {
		i = len(reasons)
		reasons = append(reasons, NodeReason{Kind: refusal.Kind, Reason: refusal.Text, Example: node})
	}
	reasons[i].Nodes++
	return reasons
}
