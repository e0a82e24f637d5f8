package framework_test

import (
	"errors"
	"testing"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
)

type nothing struct{ named }

func (nothing) Execute(*framework.Session) {}

func makes(name string, made *[]string) framework.ActionFactory {
	return framework.ActionFactory{Name: "act", New: func(conf.Arguments) (framework.Action, error) {
		*made = append(*made, name)
		return nothing{"act"}, nil
	}}
}

func TestWhatComesLaterReplacesWhatHasTheSameName(t *testing.T) {
	var made []string
	r := framework.NewRegistry([]framework.ActionFactory{makes("ours", &made), makes("theirs", &made)}, nil)
	policy, err := r.Build(&conf.Configuration{Actions: []string{"act"}})
	if err != nil || len(made) != 1 || made[0] != "theirs" || !policy.Has("act") || policy.Has("other") {
		t.Errorf("made %v, %v", made, err)
	}
}

func TestTheCatalogueHoldsAllThatIsRegistered(t *testing.T) {
	spec := conf.Spec{Arguments: []conf.Argument{{Name: "depth", Kind: conf.Int, Default: 3}}}
	catalogue := framework.NewRegistry([]framework.ActionFactory{{Name: "act"}}, []framework.PluginFactory{{Name: "plug", Spec: spec}}).Catalogue()
	if _, ok := catalogue.Actions["act"]; !ok || catalogue.Plugins["plug"].Arguments[0].Name != "depth" {
		t.Errorf("the catalogue is %+v", catalogue)
	}
}

// oldVoter votes as plugins did before their reasons were data.
type oldVoter struct{ named }

func (oldVoter) VotePreempt(*framework.VictimProposal) (framework.Vote, string) {
	return framework.Permit, ""
}

func TestAMethodThatWouldNeverBeCalledIsRefused(t *testing.T) {
	r := framework.NewRegistry(nil, []framework.PluginFactory{{Name: "plug", New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) {
		return oldVoter{"plug"}, nil
	}}})
	_, err := r.Build(&conf.Configuration{Tiers: []conf.Tier{{Plugins: []conf.Plugin{{Name: "plug"}}}}})
	want := `plugin "plug": its method VotePreempt is func(*framework.VictimProposal) (framework.Vote, string), and that of a PreemptVoter is ` +
		`func(*framework.VictimProposal) (framework.Vote, verdict.Protection)`
	if err == nil || err.Error() != want {
		t.Errorf("the error is\n%v, want\n%s", err, want)
	}
}

func TestWhatCannotBeMadeIsNamed(t *testing.T) {
	broken := errors.New("depth must be even")
	r := framework.NewRegistry(
		[]framework.ActionFactory{{Name: "act", New: func(conf.Arguments) (framework.Action, error) { return nil, broken }}},
		[]framework.PluginFactory{{Name: "plug", New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) { return nil, broken }}})
	plugins := func(name string) *conf.Configuration {
		return &conf.Configuration{Tiers: []conf.Tier{{Plugins: []conf.Plugin{{Name: name}}}}}
	}
	for want, configuration := range map[string]*conf.Configuration{
		`action "act": depth must be even`:  {Actions: []string{"act"}},
		`action "other" is not known`:       {Actions: []string{"other"}},
		`plugin "plug": depth must be even`: plugins("plug"),
		`plugin "other" is not known`:       plugins("other"),
	} {
		if _, err := r.Build(configuration); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}
