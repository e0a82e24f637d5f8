package queue

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

func TestCommandsOfOneSecondKeepTheirOrder(t *testing.T) {
	second := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	issued := func(name, version string, at time.Time) bus.Command {
		return bus.Command{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version, CreationTimestamp: metav1.NewTime(at)}}
	}
	commands := []bus.Command{
		issued("last", "7", second.Add(time.Second)), issued("third", "100", second), issued("second", "99", second), issued("first", "98", second),
	}
	slices.SortFunc(commands, byAge)
	for i, want := range []string{"first", "second", "third", "last"} {
		if commands[i].Name != want {
			t.Errorf("place %d has %s, want %s", i, commands[i].Name, want)
		}
	}
}
