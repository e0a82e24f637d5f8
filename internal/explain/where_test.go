package explain

import (
	"testing"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
)

func TestWhereSomethingLacksIsNamedWithItsKind(t *testing.T) {
	j := &cluster.Job{QueueName: "own"}
	for want, v := range map[string]*verdict.Verdict{
		"queue above":         {Code: verdict.OverCapability, Subject: "above", Help: verdict.HelpQueue},
		"queue own":           {Code: verdict.OverShare, Help: verdict.HelpOwnQueue},
		"queue other":         {Code: verdict.NotGuaranteed, Subject: "other"},
		"task worker":         {Code: verdict.NotEnoughPodsOfTask, Subject: "worker", Help: verdict.HelpJob},
		"pod p-1":             {Code: verdict.BackingOff, Subject: "p-1", Help: verdict.HelpTime | verdict.HelpJob},
		"namespace team":      {Code: verdict.NamespaceBackingOff, Subject: "team", Help: verdict.HelpTime},
		"ResourceQuota a/all": {Code: verdict.Refused, Subject: "ResourceQuota a/all", Help: verdict.HelpQueue},
		"a/first":             {Code: verdict.HeldUp, Subject: "a/first", Help: verdict.HelpTime},
		"":                    {Code: verdict.NotEnoughTasks, Help: verdict.HelpJob},
	} {
		if got := whereOf(j, v); got != want {
			t.Errorf("%s of %q is lacking at %q, want %q", v.Code, v.Subject, got, want)
		}
	}
}
