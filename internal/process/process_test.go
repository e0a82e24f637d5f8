package process

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestFlagsWithoutEffectAreAcceptedAndNamed(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	given := AddSuperseded(flags, []Superseded{{Name: "old-number", Placeholder: "3", Reason: "it counts by itself"}})
	if err := flags.Parse([]string{"--old_number=5", "--logtostderr", "--feature-gates=A=true"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"--old-number=5 has no effect: it counts by itself", "--feature-gates=A=true has no effect: there are no feature gates",
		"--logtostderr=true has no effect: the log goes to standard error, see --log-format"}
	if diff := cmp.Diff(want, given()); diff != "" {
		t.Errorf("what is said (-want +got):\n%s", diff)
	}
}

func TestTheOneFeatureGateIsSetAndOthersAreNamed(t *testing.T) {
	parse := func(arguments ...string) (FeatureGates, []string, error) {
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		var gates FeatureGates
		gates.Add(flags)
		given := AddSuperseded(flags, nil)
		err := flags.Parse(arguments)
		return gates, append(given(), gates.Ineffective()...), err
	}
	gates, said, err := parse("--feature-gates=CSIStorage=true,SchedulingGatesQueueAdmission=true")
	if err != nil || !gates[QueueAdmissionGates] {
		t.Errorf("%v, %v", gates, err)
	}
	want := []string{"--feature-gates=CSIStorage=true has no effect: the only feature gate is SchedulingGatesQueueAdmission"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("what is said (-want +got):\n%s", diff)
	}
	if gates, said, err := parse(); err != nil || gates[QueueAdmissionGates] || len(said) > 0 {
		t.Errorf("by default: %v, %v, %v", gates, said, err)
	}
	for _, wrong := range []string{"SchedulingGatesQueueAdmission", "SchedulingGatesQueueAdmission=maybe"} {
		if _, _, err := parse("--feature-gates=" + wrong); err == nil || !strings.Contains(err.Error(), "SchedulingGatesQueueAdmission") {
			t.Errorf("%s is accepted, or not named: %v", wrong, err)
		}
	}
}

func TestTheLeaseIsFoundByItsOldFlagUnlessTheNewOneIsGiven(t *testing.T) {
	for arguments, want := range map[string]string{
		"":                            "volcano-system/given",
		"--lock-object-namespace=old": "old/given",
		"--lock-object-namespace=old --leader-elect-resource-namespace=new": "new/given",
		"--leader-elect-resource-name=named":                                "volcano-system/named",
	} {
		e, flags := NewElection("plain"), pflag.NewFlagSet("test", pflag.ContinueOnError)
		e.AddFlags(flags)
		if err := flags.Parse(strings.Fields(arguments)); err != nil {
			t.Fatal(err)
		}
		e.Complete("given")
		if got := e.ResourceNamespace + "/" + e.ResourceName; got != want || len(e.Validate()) > 0 {
			t.Errorf("%q: the lease is %s, want %s; %v", arguments, got, want, e.Validate())
		}
	}
}

func TestWhoStandsForNoElectionMaySayAnythingOfIt(t *testing.T) {
	e := NewElection("")
	if len(e.Validate()) != 1 {
		t.Errorf("without a name: %v", e.Validate())
	}
	if e.LeaderElect = false; len(e.Validate()) > 0 {
		t.Errorf("with no election: %v", e.Validate())
	}
}

func TestOnlyFlagsAndAStrayRedirectionAreArguments(t *testing.T) {
	if err := NoArguments(nil, []string{"2>&1"}); err != nil {
		t.Error(err)
	}
	if err := NoArguments(nil, []string{"start"}); err == nil || !strings.Contains(err.Error(), `"start"`) {
		t.Errorf("got %v", err)
	}
}
