package changelog_test

import (
	"slices"
	"testing"

	"hekla.sh/hekla/pkg/cluster/internal/changelog"
)

func TestAFollowerIsToldWhatIsNew(t *testing.T) {
	l := changelog.New[int](4)
	l.Add(1)
	l.Add(2)
	entries, at, ok := l.Since(0)
	if !slices.Equal(entries, []int{1, 2}) || at != 2 || !ok {
		t.Errorf("first: %v up to %d, %t", entries, at, ok)
	}
	l.Add(3)
	if entries, at, ok = l.Since(at); !slices.Equal(entries, []int{3}) || at != 3 || !ok {
		t.Errorf("then: %v up to %d, %t", entries, at, ok)
	}
	if entries, _, ok = l.Since(at); len(entries) != 0 || !ok {
		t.Errorf("at the end: %v, %t", entries, ok)
	}
}

func TestAFollowerThatFellBehindIsToldSo(t *testing.T) {
	l := changelog.New[int](4)
	for i := range 9 {
		l.Add(i)
	}
	if entries, next, ok := l.Since(1); ok || next != 9 || entries != nil {
		t.Errorf("from 1 on: %v up to %d, %t", entries, next, ok)
	}
	if entries, _, ok := l.Since(7); !slices.Equal(entries, []int{7, 8}) || !ok {
		t.Errorf("from 7 on: %v, %t", entries, ok)
	}
}

func TestWhatWasUndoneIsSkippedFromItsBeginning(t *testing.T) {
	l := changelog.New[int](8)
	l.Add(0)
	for range 2 { // the second part begins where the first ends
		l.BeginTrial()
		l.Add(1)
		l.Add(2)
		if entries, _, _ := l.Since(1); len(entries) == 0 {
			t.Error("during the trial nothing is said of it")
		}
		l.EndTrial(true)
	}
	if entries, next, ok := l.Since(1); len(entries) != 0 || next != 5 || !ok {
		t.Errorf("from its beginning: %v up to %d, %t", entries, next, ok)
	}
	if entries, _, _ := l.Since(2); len(entries) != 3 {
		t.Errorf("from its middle: %v", entries)
	}
	l.Add(3)
	if entries, _, _ := l.Since(1); !slices.Equal(entries, []int{3}) {
		t.Errorf("after it: %v", entries)
	}
}

func TestATrialThatWasNotUndoneIsTold(t *testing.T) {
	l := changelog.New[int](8)
	l.BeginTrial()
	l.Add(1)
	l.EndTrial(false)
	if entries, _, ok := l.Since(0); !slices.Equal(entries, []int{1}) || !ok {
		t.Errorf("said is %v, %t", entries, ok)
	}
}
