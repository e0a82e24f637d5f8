package peers

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/internal/audit"
)

const volcanoLog, kueueLog = "volcano-v1.10.0.log.gz", "kueue-v0.17.0.log.gz"

const volcanoUser = "system:serviceaccount:peers:volcano-scheduler"

// recorded is a log that the recorder has written.
func recorded(t *testing.T, name string) string {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	log, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(log)
}

// said is what a report says, without times. Of each violation it has the rule and the object that it is about.
type said struct {
	Bindings, Evictions int
	Schedulers          []string
	Violations          []string
	Unknown             map[string]int
}

func audited(t *testing.T, log string) said {
	t.Helper()
	a := audit.New(audit.Options{GangTimeout: 5 * time.Second, PlanTimeout: 10 * time.Second}) // a recording is short
	if err := a.Read(strings.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	r := a.End()
	if r.Unreadable > 0 {
		t.Errorf("%d lines are unreadable: %s", r.Unreadable, r.Problem)
	}
	s := said{Bindings: r.Bindings, Evictions: r.Evictions, Schedulers: r.Schedulers, Unknown: r.Unknown}
	for i := range r.Violations {
		v := &r.Violations[i]
		s.Violations = append(s.Violations, v.Rule+" "+v.Objects[0])
		t.Log(v)
	}
	return s
}

// Volcano deletes pods without asking their PodDisruptionBudget unless its plugin pdb is configured. It nominates the
// pods for which it preempts, and none for which it reclaims.
func TestWhatIsSaidOfRecordedSchedulers(t *testing.T) {
	for name, want := range map[string]said{
		volcanoLog: {
			Bindings: 52, Evictions: 8, Schedulers: []string{volcanoUser},
			Violations: []string{
				"budget Pod default/low-main-9", "budget Pod default/low-main-7", "budget Pod default/low-main-4", "budget Pod default/low-main-11",
			},
			Unknown: map[string]int{"a pod was evicted, and no pod was nominated for its node: for whom is not known": 4},
		},
		kueueLog: {
			Bindings: 34, Schedulers: []string{"system:serviceaccount:peers:kube-scheduler"}, Unknown: map[string]int{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, audited(t, recorded(t, name))); diff != "" {
				t.Errorf("this is said (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsChangedInARecordedLogIsSeen has schedulers do what they did not: each change brings so many more violations
// of a rule, and none of others.
func TestWhatIsChangedInARecordedLogIsSeen(t *testing.T) {
	replace := func(what, by string) func(line string) string {
		return func(line string) string { return strings.ReplaceAll(line, what, by) }
	}
	for _, c := range []struct {
		what, log string
		change    func(line string) string
		want      map[string]int // more violations, by rule
	}{
		{"a pod is bound again on another node", volcanoLog, func(line string) string {
			if strings.Contains(line, `"subresource":"binding"`) && strings.Contains(line, `"name":"red-main-0"`) {
				return line + strings.ReplaceAll(line, "node-2", "node-3")
			}
			return line
		}, map[string]int{audit.RuleDoubleBind: 1}},
		{"the pods that preempt have no priority", volcanoLog, replace(`"priority":100`, `"priority":0`), map[string]int{audit.RuleForbiddenEviction: 4}},
		{"nodes have a CPU less", volcanoLog, replace(`"cpu":"4"`, `"cpu":"3"`), map[string]int{audit.RuleOverCommit: 13}},
		{"a pod of a gang never comes", volcanoLog, func(line string) string {
			if strings.Contains(line, "left-main-0") {
				return ""
			}
			return line
		}, map[string]int{audit.RulePartialGang: 1}},
		{"a queue has less capability", volcanoLog, replace(`"capability":{"cpu":2}`, `"capability":{"cpu":1}`), map[string]int{audit.RuleQueueLimit: 1}},
		{"ClusterQueues have less quota", kueueLog, replace(`"nominalQuota":"6"`, `"nominalQuota":"5"`), map[string]int{audit.RuleQuota: 6}},
	} {
		t.Run(c.what, func(t *testing.T) {
			log := recorded(t, c.log)
			want, got := map[string]int{}, map[string]int{}
			for _, v := range audited(t, log).Violations {
				rule, _, _ := strings.Cut(v, " ")
				want[rule]++
			}
			for rule, more := range c.want {
				want[rule] += more
			}
			var changed strings.Builder
			for line := range strings.Lines(log) {
				changed.WriteString(c.change(line))
			}
			for _, v := range audited(t, changed.String()).Violations {
				rule, _, _ := strings.Cut(v, " ")
				got[rule]++
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("violations by rule (-want +got):\n%s", diff)
			}
		})
	}
}
