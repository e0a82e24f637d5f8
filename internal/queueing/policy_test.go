package queueing

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/utils/ptr"
)

func TestTheSchedulersConfigurationSaysWhetherWorkloadsAreAdmitted(t *testing.T) {
	const plugin = "\ntiers: [{plugins: [{name: priority}]}, {plugins: [{name: cohorts, arguments: "
	for name, test := range map[string]struct {
		text string
		want Policy
	}{
		"nothing":    {"", Policy{}},
		"no action":  {"actions: enqueue, allocate" + plugin + "{}}]}]", Policy{}},
		"no plugin":  {"actions: enqueue, admit, allocate", Policy{}},
		"both":       {"actions: \"enqueue,admit,allocate\"" + plugin + "{fairSharing: true, unknown: 1}}]}]", Policy{IsOn: true, FairSharing: true}},
		"pods ready": {"actions: admit" + plugin + "{waitForPodsReady: {enable: true}}}]}]", Policy{IsOn: true, PodsReady: &PodsReady{Timeout: 30 * time.Minute, RecoveryTimeout: 30 * time.Minute, BackoffBase: time.Minute, BackoffMax: time.Hour}}},
		"all": {"actions: admit" + plugin + "{waitForPodsReady: {enable: true, timeout: 5m, recoveryTimeout: 3m, requeuingStrategy: {backoffLimitCount: 0, backoffBaseSeconds: 10, backoffMaxSeconds: 20}}, " +
			"objectRetentionPolicies: {workloads: {afterFinished: 1h, afterDeactivatedByKueue: 0s}}}}]}]",
			Policy{IsOn: true, AfterFinished: ptr.To(time.Hour), AfterDeactivated: ptr.To(time.Duration(0)),
				PodsReady: &PodsReady{Timeout: 5 * time.Minute, RecoveryTimeout: 3 * time.Minute, BackoffLimit: ptr.To(int32(0)), BackoffBase: 10 * time.Second, BackoffMax: 20 * time.Second}}},
	} {
		got, err := ReadPolicy([]byte(test.text))
		if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(Policy{}, "Managed")); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for _, bad := range []string{"actions: [", "actions: admit" + plugin + "{waitForPodsReady: {enable: maybe}}}]}]", "actions: admit" + plugin + "{waitForPodsReady: {timeout: soon}}}]}]"} {
		if got, err := ReadPolicy([]byte(bad)); err == nil {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
}

func TestJobsWithoutAQueueAreManagedInTheNamespacesThatAreSelected(t *testing.T) {
	read := func(arguments string) Policy {
		p, err := ReadPolicy([]byte("actions: admit\ntiers: [{plugins: [{name: cohorts, arguments: {" + arguments + "}}]}]"))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	named := func(name string) map[string]string { return map[string]string{"kubernetes.io/metadata.name": name} }
	p := read("manageJobsWithoutQueueName: true")
	if !p.HoldsUnnamed || !p.Manages(named("team")) || p.Manages(named("kube-system")) || p.Manages(named("volcano-system")) {
		t.Errorf("by default it is %+v", p)
	}
	p = read("managedJobsNamespaceSelector: {matchLabels: {team: red}}")
	if p.HoldsUnnamed || p.Manages(named("team")) || !p.Manages(map[string]string{"team": "red"}) {
		t.Errorf("with a selector it is %+v", p)
	}
}

func TestBackoffDoublesUpToItsBoundAndDiffersByWorkload(t *testing.T) {
	p := &PodsReady{BackoffBase: time.Minute, BackoffMax: time.Hour}
	for n, want := range map[int32]time.Duration{1: time.Minute, 2: 2 * time.Minute, 4: 8 * time.Minute, 7: time.Hour, 40: time.Hour, 2000000000: time.Hour} {
		if got := p.Backoff(n, "a"); got < want || got > min(want+want/10, time.Hour) {
			t.Errorf("after %d evictions it is %s, want %s and at most a tenth more", n, got, want)
		}
	}
	first, again := p.Backoff(1, "a"), p.Backoff(1, "a")
	if first == p.Backoff(1, "b") || first != again {
		t.Error("two workloads come back together, or one at no fixed time")
	}
}
