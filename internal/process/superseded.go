package process

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// Superseded is a flag of Volcano that changes nothing here, with the reason.
type Superseded struct{ Name, Placeholder, Reason string }

const isElsewhere = "the log goes to standard error, see --log-format"

// common are those that all of Volcano's programs have.
var common = []Superseded{
	{"feature-gates", "", "there are no feature gates"},
	{"log-flush-frequency", "5s", "every line of the log is written at once"},
	{"add-dir-header", "false", isElsewhere},
	{"alsologtostderr", "false", isElsewhere},
	{"log-backtrace-at", "", isElsewhere},
	{"log-dir", "", isElsewhere},
	{"log-file", "", isElsewhere},
	{"log-file-max-size", "1800", isElsewhere},
	{"logtostderr", "true", isElsewhere},
	{"one-output", "false", isElsewhere},
	{"skip-headers", "false", isElsewhere},
	{"skip-log-headers", "false", isElsewhere},
	{"stderrthreshold", "2", isElsewhere},
	{"vmodule", "", "the log has one level for all files, see -v"},
}

// ineffective takes any value and does nothing with it.
type ineffective struct{ value string }

func (f *ineffective) String() string         { return f.value }
func (f *ineffective) Set(value string) error { f.value = value; return nil }
func (f *ineffective) Type() string           { return "string" }

// AddSuperseded makes a command accept a command line that was made for Volcano: underscores in the names of flags, and
// flags that change nothing, those of this program in addition to those that all have. The returned function says which
// of them were given, one sentence each.
func AddSuperseded(flags *pflag.FlagSet, own []Superseded) (given func() []string) {
	flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	// What the program has declared itself it gives a meaning.
	all := slices.DeleteFunc(slices.Concat(own, common), func(f Superseded) bool { return flags.Lookup(f.Name) != nil })
	for _, f := range all {
		flag := flags.VarPF(&ineffective{f.Placeholder}, f.Name, "", "Volcano's, without effect: "+f.Reason+".")
		if f.Placeholder == "true" || f.Placeholder == "false" {
			flag.NoOptDefVal = "true"
		}
		flag.Hidden = true
	}
	return func() []string {
		var sentences []string
		for _, f := range all {
			if flag := flags.Lookup(f.Name); flag.Changed {
				sentences = append(sentences, fmt.Sprintf("--%s=%s has no effect: %s", f.Name, flag.Value, f.Reason))
			}
		}
		return sentences
	}
}
