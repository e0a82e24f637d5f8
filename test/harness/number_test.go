package harness_test

import (
	"runtime"
	"testing"

	"hekla.sh/hekla/test/harness"
)

func TestNumber(t *testing.T) {
	const variable = "HEKLA_TEST_NUMBER"
	t.Setenv(variable, "")
	if n := harness.Number(t, variable, 7); n != 7 {
		t.Errorf("not set, it is %d", n)
	}
	t.Setenv(variable, "18446744073709551615")
	if n := harness.Number(t, variable, uint64(7)); n != 1<<64-1 {
		t.Errorf("the largest seed is %d", n)
	}
	for _, wrong := range []string{"many", "1e6", "-1", " 1"} {
		t.Setenv(variable, wrong)
		if !fails(t, func(t testing.TB) { harness.Number(t, variable, uint64(7)) }) {
			t.Errorf("%q is taken for a number", wrong)
		}
	}
}

// fails reports whether a check is fatal.
func fails(t *testing.T, check func(testing.TB)) bool {
	f := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(f)
	}()
	<-done
	return f.isFatal
}

type failing struct {
	testing.TB
	isFatal bool
}

func (f *failing) Fatalf(string, ...any) {
	f.isFatal = true
	runtime.Goexit()
}
