package decision

import "testing"

func TestTheTextOfAJobIDIsReadBack(t *testing.T) {
	for text, id := range map[string]JobID{"team/a": {OfPodGroup, "team", "a"}, "team/workload/a": {OfWorkload, "team", "a"}} {
		if got := id.String(); got != text {
			t.Errorf("%+v is %s, want %s", id, got, text)
		}
		if got := ParseJobID("team", id.Text()); got != id {
			t.Errorf("%s is read as %+v, want %+v", text, got, id)
		}
	}
}

func TestJobIDsHaveTheOrderOfTheirTexts(t *testing.T) {
	inOrder := []JobID{{OfPodGroup, "a", "z"}, {OfPodGroup, "b", "a"}, {OfWorkload, "b", "a"}, {OfTrial, "b", "a"}, {OfPodGroup, "b", "x"}}
	for i, a := range inOrder {
		for k, b := range inOrder {
			if got := a.Compare(b); (got < 0) != (i < k) || (got == 0) != (i == k) {
				t.Errorf("%s compared with %s is %d", a, b, got)
			}
		}
	}
}
