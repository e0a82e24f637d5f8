package rules

import (
	"errors"

	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
)

// The presets for the choice of victims: as kube-scheduler 1.36 does, or as release 1.8 did, without disruption budgets
// and start times, and by deleting pods. kube-scheduler knows no jobs. The first preset avoids ending jobs, the second
// does not.
const (
	presetNow   = "kube-1.36"
	presetFirst = "kube-1.8"
)

const (
	wholeGangKey = "allowWholeGang"
	presetKey    = "preset"
	domainsKey   = "maxDomains"
)

// Arguments are the arguments of every action that evicts for a preemptor.
func Arguments() []conf.Argument {
	return []conf.Argument{
		{Name: wholeGangKey, Kind: conf.Bool, Default: true,
			Doc: "Whether a gang at its minimum may leave as a whole. If not, it gives only what it has beyond its minimum."},
		{Name: "allowWholeBundle", AliasOf: wholeGangKey},
		{Name: presetKey, Kind: conf.String, Default: presetNow, Check: checkPreset,
			Doc: "Whose choice of victims: kube-1.36 minds disruption budgets, jobs that would end and start times, kube-1.8 does not."},
		{Name: domainsKey, Kind: conf.Int, Default: 8, Check: isPositive,
			Doc: "In how many HyperNodes at the most room is sought for a job that must be within one."},
		framework.RefusalCache(),
	}
}

func checkPreset(value any) error {
	if value == presetNow || value == presetFirst {
		return nil
	}
	return errors.New(presetNow + " or " + presetFirst)
}

func isPositive(value any) error {
	if n, ok := value.(int); ok && n < 1 {
		return errors.New("one or more")
	}
	return nil
}

// FromArguments returns the rules of an action that evicts in these scopes, from its arguments.
func FromArguments(scopes decision.Scopes, arguments conf.Arguments) framework.EvictionRules {
	isNow := arguments.String(presetKey) == presetNow
	return framework.EvictionRules{Scopes: scopes, AllowWholeGang: arguments.Bool(wholeGangKey), Budgets: isNow, Ends: isNow, Starts: isNow,
		MaxDomains: arguments.Int(domainsKey)}
}
