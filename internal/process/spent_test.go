package process

import (
	"testing"
	"time"
)

func TestOnlyWorkIsSpent(t *testing.T) {
	isOver, end := Spend(20 * time.Millisecond)
	defer end()
	time.Sleep(60 * time.Millisecond)
	if isOver() {
		t.Error("waiting counts as work")
	}
	for begin := time.Now(); !isOver(); {
		if time.Since(begin) > time.Minute {
			t.Fatal("work does not count")
		}
	}
}
