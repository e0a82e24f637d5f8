package harness

import (
	"os"
	"strconv"
	"testing"
)

// Number returns how much of a random test is run, or from which seed on: the number that a variable of the environment
// has, or the plain one if it is not set. A value that is no number fails the test, since a long run that was meant
// would otherwise be a short one.
func Number[T int | uint64](t testing.TB, variable string, plain T) T {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return plain
	}
	var err error
	n := plain
	switch n := any(&n).(type) {
	case *int:
		*n, err = strconv.Atoi(text)
	case *uint64:
		*n, err = strconv.ParseUint(text, 10, 64)
	}
	if err != nil {
		t.Fatalf("%s: %s", variable, err)
	}
	return n
}
