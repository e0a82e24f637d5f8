package reason

import (
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Reason is why a node refuses a class.
type Reason uint16

// The reasons that there always are.
const (
	Fits Reason = iota
	UnknownNode
	NotReady
	many
)

// maxReasons limits the number of stored refusals. There are a few dozen, unless a plugin puts numbers or names into
// its own. Further ones are not told apart.
const maxReasons = 1 << 12

// Refusals are the refusals that there were. Answers hold their indexes.
type Refusals struct {
	all   []verdict.NodeRefusal
	known map[verdict.NodeRefusal]Reason
	short []Reason // by dimension: too little of a resource
}

// New returns the refusals that there always are.
func New() *Refusals {
	r := &Refusals{known: map[verdict.NodeRefusal]Reason{}}
	for _, refusal := range []verdict.NodeRefusal{{}, {Kind: verdict.NodeState, Text: "node(s) are unknown"}, {Kind: verdict.NodeState, Text: "node(s) were not ready"},
		{Kind: verdict.NodePlugin, Text: "node(s) were refused for a reason of their own"}} {
		r.Of(refusal)
	}
	return r
}

// ShortOf returns the reason of a node that has too little of a resource.
func (r *Refusals) ShortOf(index *resources.Index, dim resources.Dim) Reason {
	for d := resources.Dim(len(r.short)); d <= dim; d++ {
		text := "Insufficient " + string(index.Name(d))
		if d == resources.Pods {
			text = "Too many pods"
		}
		r.short = append(r.short, r.Of(verdict.NodeRoom.Refuses(text)))
	}
	return r.short[dim]
}

// Of returns the reason of a refusal, Fits for none.
func (r *Refusals) Of(refusal verdict.NodeRefusal) Reason {
	if refusal.IsNone() && len(r.all) > 0 {
		return Fits
	}
	known, ok := r.known[refusal]
	if !ok {
		if len(r.all) >= maxReasons {
			return many
		}
		known = Reason(len(r.all))
		r.all = append(r.all, refusal)
		r.known[refusal] = known
	}
	return known
}

// Len is the number of reasons that there have been.
func (r *Refusals) Len() int { return len(r.all) }

// Refusal returns the refusal of a reason, none for Fits.
func (r *Refusals) Refusal(of Reason) verdict.NodeRefusal { return r.all[of] }

// Text returns the text of a reason, "" for Fits.
func (r *Refusals) Text(of Reason) string { return r.all[of].Text }
