package conf

import (
	"fmt"
	"testing"
)

func TestSwitchesHaveVolcanosSpellingsAndDefaults(t *testing.T) {
	spellings := []string{"enableJobOrder", "enableHierarchy", "enableJobReady", "enableJobPipelined", "enableTaskOrder",
		"enablePreemptable", "enableReclaimable", "enablePreemptive", "enableQueueOrder", "enablePredicate", "enableBestNode",
		"enableNodeOrder", "enableTargetJob", "enableReservedNodes", "enableJobEnqueued", "enableJobStarving",
		"enabledClusterOrder", "enabledVictim", "enabledOverused", "enabledAllocatable", "enabledHyperNodeOrder",
		"enabledSubJobReady", "enabledSubJobPipelined", "enabledSubJobOrder", "enabledHyperNodeGradient"}
	if len(spellings) != int(lastSwitch) {
		t.Errorf("there are %d switches, Volcano has %d", lastSwitch, len(spellings))
	}
	for _, spelling := range spellings {
		which, found := switchByName(spelling)
		if !found || which.String() != spelling {
			t.Errorf("%s is not a switch", spelling)
			continue
		}
		if want := spelling != "enableHierarchy" && spelling != "enabledClusterOrder"; (Switches{}).On(which) != want {
			t.Errorf("%s is %v where it is not mentioned", spelling, !want)
		}
		for _, on := range []bool{false, true} {
			text := inTier(fmt.Sprintf("name: gang\n    %s: %v", spelling, on))
			switches := plugin(t, parse(t, text), "gang").Switches
			if switches.On(which) != on {
				t.Errorf("%s: %v is not what is in force", spelling, on)
			}
			for other := Switch(1); other <= lastSwitch; other++ {
				if other != which && switches.On(other) != other.Default() {
					t.Errorf("%s: %v changes %v too", spelling, on, other)
				}
			}
		}
	}
	if name := (lastSwitch + 1).String(); name != "no switch" {
		t.Errorf("there is one switch more: %s", name)
	}
}

func TestASwitchSetBackToItsDefaultIsAsIfNeverSet(t *testing.T) {
	for s := Switch(1); s <= lastSwitch; s++ {
		there := Switches{}.With(s, !s.Default())
		if there == (Switches{}) || there.With(s, s.Default()) != (Switches{}) {
			t.Errorf("%v does not come back", s)
		}
	}
}
