package conf

// Switch is one of the switches of a plugin. It turns off one of the plugin's answers.
type Switch uint8

// The switches, in Volcano's spelling: some begin with "enable", some with "enabled".
const (
	EnableJobOrder Switch = iota + 1
	EnableHierarchy
	EnableJobReady
	EnableJobPipelined
	EnableTaskOrder
	EnablePreemptable
	EnableReclaimable
	EnablePreemptive
	EnableQueueOrder
	EnabledClusterOrder
	EnablePredicate
	EnableBestNode
	EnableNodeOrder
	EnableTargetJob
	EnableReservedNodes
	EnableJobEnqueued // also decides whether a job may be enqueued
	EnabledVictim
	EnableJobStarving
	EnabledOverused
	EnabledAllocatable
	EnabledHyperNodeOrder
	EnabledSubJobReady
	EnabledSubJobPipelined
	EnabledSubJobOrder
	EnabledHyperNodeGradient
)

const lastSwitch = EnabledHyperNodeGradient

var switchNames = [lastSwitch + 1]string{
	EnableJobOrder:           "enableJobOrder",
	EnableHierarchy:          "enableHierarchy",
	EnableJobReady:           "enableJobReady",
	EnableJobPipelined:       "enableJobPipelined",
	EnableTaskOrder:          "enableTaskOrder",
	EnablePreemptable:        "enablePreemptable",
	EnableReclaimable:        "enableReclaimable",
	EnablePreemptive:         "enablePreemptive",
	EnableQueueOrder:         "enableQueueOrder",
	EnabledClusterOrder:      "enabledClusterOrder",
	EnablePredicate:          "enablePredicate",
	EnableBestNode:           "enableBestNode",
	EnableNodeOrder:          "enableNodeOrder",
	EnableTargetJob:          "enableTargetJob",
	EnableReservedNodes:      "enableReservedNodes",
	EnableJobEnqueued:        "enableJobEnqueued",
	EnabledVictim:            "enabledVictim",
	EnableJobStarving:        "enableJobStarving",
	EnabledOverused:          "enabledOverused",
	EnabledAllocatable:       "enabledAllocatable",
	EnabledHyperNodeOrder:    "enabledHyperNodeOrder",
	EnabledSubJobReady:       "enabledSubJobReady",
	EnabledSubJobPipelined:   "enabledSubJobPipelined",
	EnabledSubJobOrder:       "enabledSubJobOrder",
	EnabledHyperNodeGradient: "enabledHyperNodeGradient",
}

// String is the key of the switch in the file.
func (s Switch) String() string {
	if s == 0 || s > lastSwitch {
		return "no switch"
	}
	return switchNames[s]
}

// Default is the value if the plugin's entry does not mention the switch.
func (s Switch) Default() bool { return s != EnableHierarchy && s != EnabledClusterOrder }

// switchByName returns the switch of a key. Older releases of Volcano spell one of them with a capital.
func switchByName(key string) (Switch, bool) {
	if key == "EnabledClusterOrder" {
		return EnabledClusterOrder, true
	}
	for s := Switch(1); s <= lastSwitch; s++ {
		if switchNames[s] == key {
			return s, true
		}
	}
	return 0, false
}

// Switches are the switches of one plugin. The zero value has them all at their defaults; equal values are ==.
type Switches struct {
	changed uint32 // one bit per Switch, set if it differs from the default
}

// On reports whether a switch is on.
func (s Switches) On(which Switch) bool {
	return which.Default() != (s.changed&(1<<which) != 0)
}

// With returns the switches with one of them set.
func (s Switches) With(which Switch, on bool) Switches {
	if on == which.Default() {
		return Switches{s.changed &^ (1 << which)}
	}
	return Switches{s.changed | 1<<which}
}
