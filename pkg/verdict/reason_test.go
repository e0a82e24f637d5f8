package verdict

import "testing"

func TestTheReasonIsTheFirstThatMustBePutRight(t *testing.T) {
	full := []NodeReason{{Kind: NodeRoom, Reason: "Insufficient cpu", Nodes: 2}}
	tainted := []NodeReason{{Kind: NodeTaint, Reason: "untolerated taint", Nodes: 2}, {Kind: NodeState, Reason: "not ready", Nodes: 5}}
	large := &Impossible{Pod: "work/p", Short: []Shortage{{Resource: "cpu", Need: 12000, Have: 8000}}, Nodes: full}
	marked := []Spared{{Why: RuleNotMarked.Protection(), Pods: 2}, {Why: ByBudget.Protection(), Pods: 1}}
	for name, test := range map[string]struct {
		v     Verdict
		want  Code
		never bool
		nodes bool // more nodes would help
	}{
		"full nodes":                             {Verdict{Code: NotEnoughResources, Nodes: full, Help: HelpNode}, NotEnoughResources, false, true},
		"full nodes, and no new one would do":    {Verdict{Code: NotEnoughResources, Nodes: full, Help: HelpNode, BeyondNodes: true}, NotEnoughResources, false, false},
		"a part of a gang has a place":           {Verdict{Code: NotEnoughResources, Nodes: full, Placed: 1, Wanted: 2, Help: HelpRoom}, GangShort, false, true},
		"taints of all nodes in use":             {Verdict{Code: NotEnoughResources, Nodes: tainted, Help: HelpNode}, NodeTaints, false, true},
		"promised room":                          {Verdict{Code: NotEnoughResources, Nodes: full, Promised: true, Help: HelpNode}, PromisedToOthers, false, true},
		"victims that have not opted in":         {Verdict{Code: NotEnoughResources, Nodes: full, Looked: true, Spared: marked, Help: HelpNode}, VictimsOptedOut, false, true},
		"such victims of an overcommitted job":   {Verdict{Code: OverCommitted, Looked: true, Spared: marked}, VictimsOptedOut, false, true},
		"nobody looked for victims":              {Verdict{Code: OverCommitted, Spared: marked}, OverCommitted, false, true},
		"larger than any node, and overcommit":   {Verdict{Code: OverCommitted, Impossible: large}, TooLargeForAnyNode, true, true},
		"larger than any node, and a capability": {Verdict{Code: OverCapability, Impossible: large}, TooLargeForAnyNode, true, false},
		"larger than any node, in no queue":      {Verdict{Code: QueueNotFound, Impossible: large}, QueueNotFound, true, false},
		"a selector that no node has": {Verdict{Code: OverCommitted, Impossible: &Impossible{Nodes: []NodeReason{{Kind: NodeLabels, Nodes: 1}}}},
			NodeMismatch, true, true},
		"a claim that does not exist": {Verdict{Code: OverCommitted, Impossible: &Impossible{NoClaim: true, Nodes: []NodeReason{{Kind: NodeVolume, Nodes: 1}}}},
			VolumeUnavailable, false, false},
		"larger than the capability":             {Verdict{Code: TooLargeForQueue}, TooLargeForQueue, true, false},
		"larger than what the cluster leaves it": {Verdict{Code: TooLargeForQueue, OfCluster: true}, TooLargeForQueue, true, true},
		"larger than the cluster":                {Verdict{Code: TooLargeForCluster}, TooLargeForCluster, true, true},
		"a share as it was written":              {Verdict{Code: OverShare}, OverShare, false, false},
		"a share by weight":                      {Verdict{Code: OverShare, OfCluster: true}, OverShare, false, true},
		"a ceiling that the cluster sets":        {Verdict{Code: OverCluster}, OverCluster, false, true},
		"held up by another job":                 {Verdict{Code: HeldUp}, HeldUp, false, false},
		"pods are missing":                       {Verdict{Code: NotEnoughTasks}, NotEnoughTasks, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.v.Reason(); got != test.want {
				t.Errorf("the reason is %s, want %s", got, test.want)
			}
			if got := test.v.IsNever(); got != test.never {
				t.Errorf("never is %t", got)
			}
			if got := test.v.IsHelpedByNodes(); got != test.nodes {
				t.Errorf("more nodes help: %t", got)
			}
		})
	}
}
