package jobflow

import (
	"strings"
	"testing"
)

func TestLabelsOfLongNamesAreShortAndTellThemApart(t *testing.T) {
	long := strings.Repeat("n", 40) + "." + strings.Repeat("f", 40)
	short, other := labelValue(long), labelValue(long+"x")
	if len(short) > 63 || short == other || !strings.HasPrefix(long, short[:54]) || labelValue("ns.f") != "ns.f" {
		t.Errorf("%q and %q", short, other)
	}
}
