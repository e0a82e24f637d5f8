package recent

import (
	"testing"
	"time"
)

func TestWhatWasAskedForLatelyIsKept(t *testing.T) {
	var m Map[string, int]
	made := 0
	ask := func(key string) int {
		return m.Of(key, 2, func() int { made++; return made })
	}
	if a := ask("a"); ask("a") != a || made != 1 {
		t.Errorf("an entry was made %d times", made)
	}
	t.Run("beyond the number that may be young the oldest go", func(t *testing.T) {
		a := ask("a")
		ask("b")
		ask("c") // a and b are old
		if ask("a") != a {
			t.Error("an old entry is gone that was asked for")
		}
		ask("d") // c and a are old, and b is gone
		if before := made; ask("b") <= before {
			t.Error("an entry is kept that was not asked for")
		}
		if len(m.young)+len(m.old) > 4 {
			t.Errorf("%d entries are kept", len(m.young)+len(m.old))
		}
	})
	t.Run("what is not asked for goes with time", func(t *testing.T) {
		asked, other, now := ask("asked"), ask("other"), time.Unix(1e9, 0)
		for range 4 {
			now = now.Add(time.Minute)
			m.Age(now, 2*time.Minute)
			if ask("asked") != asked {
				t.Error("an entry is gone that was asked for")
			}
		}
		if ask("other") == other {
			t.Error("an entry is kept that was not asked for")
		}
	})
	t.Run("all go at once", func(t *testing.T) {
		asked := ask("asked")
		if m.Clear(); ask("asked") == asked {
			t.Error("an entry is kept")
		}
	})
}
