package decision

import "testing"

func TestAScopeIsReadAsItWasRecorded(t *testing.T) {
	for _, s := range []Scope{NoScope, BetweenQueues, BetweenJobs, Anywhere, WithinJob} {
		if got := ParseScope(s.String()); got != s {
			t.Errorf("%q is read as %q", s, got)
		}
	}
	if got := ParseScope("betweenqueues"); got != NoScope {
		t.Errorf("a name that no scope has is read as %q", got)
	}
}

func TestASetOfScopesHoldsWhatWasPutIn(t *testing.T) {
	set := ScopesOf(BetweenJobs, WithinJob)
	for _, s := range []Scope{NoScope, BetweenQueues, BetweenJobs, Anywhere, WithinJob} {
		if want := s == BetweenJobs || s == WithinJob; set.Has(s) != want {
			t.Errorf("whether %q is in the set: %t", s, set.Has(s))
		}
	}
}
