package reason

import "hekla.sh/hekla/pkg/resources"

// Reason is why a node refuses a class.
type Reason uint16

// The reasons that there always are.
const (
	Fits Reason = iota
	UnknownNode
	NotReady
	many
)

// maxReasons limits the number of stored texts. There are a few dozen, unless a plugin puts numbers or names into its own.
// Further texts are not told apart.
const maxReasons = 1 << 12

// Texts are the texts of refusals. Answers hold their indexes.
type Texts struct {
	texts  []string
	byText map[string]Reason
	short  []Reason // by dimension: too little of a resource
}

// New returns the texts that there always are.
func New() *Texts {
	r := &Texts{byText: map[string]Reason{}}
	for _, text := range []string{"", "node(s) are unknown", "node(s) were not ready", "node(s) were refused for a reason of their own"} {
		r.Of(text)
	}
	return r
}

// ShortOf returns the reason of a node that has too little of a resource.
func (r *Texts) ShortOf(index *resources.Index, dim resources.Dim) Reason {
	for d := resources.Dim(len(r.short)); d <= dim; d++ {
		text := "Insufficient " + string(index.Name(d))
		if d == resources.Pods {
			text = "Too many pods"
		}
		r.short = append(r.short, r.Of(text))
	}
	return r.short[dim]
}

// Of returns the reason with a text, Fits for none.
func (r *Texts) Of(text string) Reason {
	if text == "" && len(r.texts) > 0 {
		return Fits
	}
	known, ok := r.byText[text]
	if !ok {
		if len(r.texts) >= maxReasons {
			return many
		}
		known = Reason(len(r.texts))
		r.texts = append(r.texts, text)
		r.byText[text] = known
	}
	return known
}

// Text returns the text of a reason.
func (r *Texts) Text(of Reason) string { return r.texts[of] }
