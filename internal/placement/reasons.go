package placement

import "hekla.sh/hekla/pkg/resources"

// reason is why a node refuses a class.
type reason uint16

// The reasons that every engine has.
const (
	fits reason = iota
	unknownNode
	notReady
	manyReasons
)

// maxReasons limits the number of stored texts. There are a few dozen, unless a plugin puts numbers or names into its own.
// Further texts are not told apart.
const maxReasons = 1 << 12

// reasons are the texts of refusals. Answers hold their indexes.
type reasons struct {
	texts  []string
	byText map[string]reason
	short  []reason // by dimension: too little of a resource
}

// shortOf returns the reason of a node that has too little of a resource.
func (r *reasons) shortOf(index *resources.Index, dim resources.Dim) reason {
	for d := resources.Dim(len(r.short)); d <= dim; d++ {
		text := "Insufficient " + string(index.Name(d))
		if d == resources.Pods {
			text = "Too many pods"
		}
		r.short = append(r.short, r.of(text))
	}
	return r.short[dim]
}

// of returns the reason with a text.
func (r *reasons) of(text string) reason {
	if text == "" && len(r.texts) > 0 {
		return fits
	}
	known, ok := r.byText[text]
	if !ok {
		if len(r.texts) >= maxReasons {
			return manyReasons
		}
		known = reason(len(r.texts))
		r.texts = append(r.texts, text)
		r.byText[text] = known
	}
	return known
}

// text returns the text of a reason.
func (r *reasons) text(of reason) string { return r.texts[of] }
