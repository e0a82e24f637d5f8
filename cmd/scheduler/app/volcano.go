package app

import (
	"fmt"

	"github.com/spf13/pflag"
)

// volcanoFlags are flags of Volcano's scheduler that change nothing here, with the reason. They are accepted, so that a
// command line that was made for it still starts.
var volcanoFlags = []struct{ name, placeholder, reason string }{
	{"resync-period", "0", "the model is corrected by every event and checked by audits; nothing is read again on a timer"},
	{"minimum-feasible-nodes", "100", "all nodes are considered"},
	{"minimum-percentage-nodes-to-find", "5", "all nodes are considered"},
	{"percentage-nodes-to-find", "0", "all nodes are considered"},
	{"node-worker-threads", "20", "events of nodes need no workers"},
	{"gate-removal-worker-num", "5", "there is no queue admission by scheduling gates yet"},
	{"csi-storage", "true", "volumes are not considered yet"},
	{"ignored-provisioners", "", "volumes are not considered yet"},
	{"plugins-dir", "", "plugins are compiled in, see app.NewCommand"},
	{"cache-dumper", "true", "there is no dump of the cache on a signal"},
	{"cache-dump-dir", "", "there is no dump of the cache on a signal"},
	{"scheduler-sharding-mode", "none", "one scheduler serves the whole cluster"},
	{"scheduler-sharding-name", "volcano", "one scheduler serves the whole cluster"},
	{"feature-gates", "", "there are no feature gates"},
	{"log-flush-frequency", "5s", "every line of the log is written at once"},
	{"add-dir-header", "false", "the log is JSON on standard error"},
	{"alsologtostderr", "false", "the log is JSON on standard error"},
	{"log-backtrace-at", "", "the log is JSON on standard error"},
	{"log-dir", "", "the log is JSON on standard error"},
	{"log-file", "", "the log is JSON on standard error"},
	{"log-file-max-size", "1800", "the log is JSON on standard error"},
	{"logtostderr", "true", "the log is JSON on standard error"},
	{"one-output", "false", "the log is JSON on standard error"},
	{"skip-headers", "false", "the log is JSON on standard error"},
	{"skip-log-headers", "false", "the log is JSON on standard error"},
	{"stderrthreshold", "2", "the log is JSON on standard error"},
	{"vmodule", "", "the log has one level for all files, see -v"},
}

// ineffective takes any value and does nothing with it.
type ineffective struct{ value string }

func (f *ineffective) String() string         { return f.value }
func (f *ineffective) Set(value string) error { f.value = value; return nil }
func (f *ineffective) Type() string           { return "string" }

func addVolcanoFlags(flags *pflag.FlagSet) {
	for _, f := range volcanoFlags {
		flag := flags.VarPF(&ineffective{f.placeholder}, f.name, "", "Volcano's, without effect: "+f.reason+".")
		if f.placeholder == "true" || f.placeholder == "false" {
			flag.NoOptDefVal = "true"
		}
		flag.Hidden = true
	}
}

// ineffectiveFlags says which flags were given to no effect, one sentence each.
func ineffectiveFlags(flags *pflag.FlagSet) []string {
	var sentences []string
	for _, f := range volcanoFlags {
		if flag := flags.Lookup(f.name); flag != nil && flag.Changed {
			sentences = append(sentences, fmt.Sprintf("--%s=%s has no effect: %s", f.name, flag.Value, f.reason))
		}
	}
	return sentences
}
