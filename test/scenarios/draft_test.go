package scenarios

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"hekla.sh/hekla/internal/simulator"
)

var draft = flag.Bool("draft", false, "write an expect.yaml where there is none, with what is decided now")

// writeDraft writes an expect.yaml with what is decided now, to be corrected by hand. It always returns an error: a
// draft is not a scenario yet.
func writeDraft(folder string) error {
	manifests, err := os.ReadFile(filepath.Join(folder, "cluster.yaml"))
	if err != nil {
		return err
	}
	s := &scenario{UntilStable: true, manifests: string(manifests)}
	report, err := s.run(s.manifests, func(o *simulator.Options) { o.MaxCycles = maxCycles })
	if report == nil {
		return err
	}
	file := filepath.Join(folder, "expect.yaml")
	if err := os.WriteFile(file, drafted(report), 0o644); err != nil {
		return err
	}
	return errors.New("a draft of " + file + " is written: work out by hand what is to be, and fill in source and rules")
}

func drafted(report *simulator.Report) []byte {
	var b bytes.Buffer
	var evicted []string
	fmt.Fprintln(&b, "# What happens, and why it must.")
	fmt.Fprintln(&b, "source: \"\"\nrules: []\nuntilStable: true\nexpect:")
	for _, e := range report.Evictions {
		evicted = append(evicted, fmt.Sprintf("%q", e.Pod))
	}
	slices.Sort(evicted)
	list := func(name string, items []string, open, shut string) {
		fmt.Fprintf(&b, "  %s: %s", name, open)
		for i, item := range items {
			fmt.Fprint(&b, []string{"", ", "}[min(i, 1)], item)
		}
		fmt.Fprintln(&b, shut)
	}
	list("evict", evicted, "[", "]")
	var evictions, nominated, bound, jobs []string
	for _, e := range report.Evictions {
		evictions = append(evictions, fmt.Sprintf("%q: {action: %q, rule: %q, for: %q}", e.Pod, e.Action, e.Rule, e.For))
	}
	for _, n := range report.Nominations {
		nominated = append(nominated, fmt.Sprintf("%q: %q", n.Pod, n.Node))
	}
	for _, r := range report.Binds {
		bound = append(bound, fmt.Sprintf("%q: %q", r.Pod, r.Node))
	}
	for _, j := range report.Jobs {
		jobs = append(jobs, fmt.Sprintf("%q: {phase: %q, ready: %d, reason: %q}", j.Job, j.Phase, j.Ready, j.Reason))
	}
	list("evictions", evictions, "{", "}")
	list("nominate", nominated, "{", "}")
	list("bind", bound, "{", "}")
	list("jobs", jobs, "{", "}")
	fmt.Fprintf(&b, "  stable: %t\n", report.Stable)
	return b.Bytes()
}
