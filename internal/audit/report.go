package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rules are the names of what is proven, in the order of the documentation.
const (
	RuleDoubleBind        = "double-bind"
	RuleOverCommit        = "over-commit"
	RulePartialGang       = "partial-gang"
	RuleForbiddenEviction = "forbidden-eviction"
	RuleEvictionInVain    = "eviction-in-vain"
	RulePromisedRoom      = "promised-room"
	RuleBudget            = "budget"
	RuleQueueLimit        = "queue-limit"
	RuleQuota             = "quota"
	RuleOvertaken         = "overtaken"
)

// NeedsPromptness reports whether a rule takes a scheduler to see within seconds what happens. Where it cannot, because
// the machine is busy or its connection is broken on purpose, what breaks such a rule says nothing against it.
func NeedsPromptness(rule string) bool {
	return slices.Contains([]string{RuleEvictionInVain, RulePromisedRoom, RuleOvertaken}, rule)
}

// Violation is one proven breach of a rule.
type Violation struct {
	Time    time.Time `json:"time"`
	Rule    string    `json:"rule"`
	Objects []string  `json:"objects"` // as Kind namespace/name, the first is the one that the rule is about
	Message string    `json:"message"`
	User    string    `json:"user,omitempty"` // whose request it was, if it was one
}

func (v *Violation) String() string {
	by := ""
	if v.User != "" {
		by = ", by " + v.User
	}
	return fmt.Sprintf("%s %s: %s: %s%s", v.Time.UTC().Format("2006-01-02T15:04:05.000Z"), v.Rule, strings.Join(v.Objects, ", "), v.Message, by)
}

// Report is what a log proves.
type Report struct {
	From       time.Time   `json:"from"`
	To         time.Time   `json:"to"`
	Lines      int         `json:"lines"`      // of the log, or objects that watches have shown
	Requests   int         `json:"requests"`   // that were taken into account
	Bindings   int         `json:"bindings"`   // that succeeded
	Evictions  int         `json:"evictions"`  // by schedulers
	Schedulers []string    `json:"schedulers"` // the users who bound pods
	Violations []Violation `json:"violations"`
	// Unreadable is how many lines could not be read, and Problem why the first of them could not.
	Unreadable int            `json:"unreadable,omitempty"`
	Problem    string         `json:"problem,omitempty"`
	Unknown    map[string]int `json:"unknown,omitempty"` // how often a rule could not be applied, by the reason
}

// sorted puts the violations in the order of time, those of one time by their text.
func (r *Report) sorted() {
	slices.SortStableFunc(r.Violations, func(a, b Violation) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Rule, b.Rule), slices.Compare(a.Objects, b.Objects))
	})
}
