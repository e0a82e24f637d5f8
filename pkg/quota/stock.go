package quota

import "hekla.sh/hekla/pkg/resources"

// Admitter has the view by which jobs are admitted. It is comparable, and the same one in every session.
type Admitter interface {
	// AdmissionView returns the view of this session. wide is for jobs without pods yet.
	AdmissionView(wide bool) *View
}

// Stock is how much more of a resource jobs pending admission may request in a queue, beside what admitted jobs lack. Two that are
// equal are the same, also in different sessions.
type Stock struct {
	admitter Admitter
	node     *Node
	resource resources.Dim
	wide     bool
}

// Left is in the unit of the resource. It is below 0 if a ceiling is exceeded.
func (s Stock) Left() int64 {
	return s.admitter.AdmissionView(s.wide).room(s.node, s.resource, Inqueue)
}

// Lacking returns the first resource of which less is left in a queue than a claim ([ToAdmit]) needs, and how much it needs. It reports
// false if the claim fits.
func Lacking(a Admitter, wide bool, n *Node, c Claim) (stock Stock, needed int64, ok bool) {
	for i := range c.whole {
		stock = Stock{admitter: a, node: n, resource: resources.Dim(i), wide: wide}
		if needed = c.need(stock.resource); needed > 0 && needed > stock.Left() {
			return stock, needed, true
		}
	}
	return Stock{}, 0, false
}
