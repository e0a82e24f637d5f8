package app

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
)

// parse reads flags as the command does.
func parse(t *testing.T, arguments ...string) *options {
	t.Helper()
	o := newOptions()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	o.complete()
	return o
}

func TestFlagsHaveVolcanosNamesAndDefaults(t *testing.T) {
	o, flags := newOptions(), pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.addFlags(flags)
	got := map[string]string{}
	flags.VisitAll(func(f *pflag.Flag) { got[f.Name] = f.Value.String() })
	for name, want := range map[string]string{
		"scheduler-name": "[volcano]", "scheduler-conf": "", "schedule-period": "1s", "resync-period": "0",
		"default-queue": "default", "kube-api-qps": "2000", "kube-api-burst": "2000", "minimum-feasible-nodes": "100",
		"minimum-percentage-nodes-to-find": "5", "percentage-nodes-to-find": "0", "node-worker-threads": "20",
		"resource-sync-timeout": "1m0s", "priority-class": "true", "csi-storage": "true", "plugins-dir": "",
		"node-selector": "[]", "ignored-provisioners": "", "gate-removal-worker-num": "5", "cache-dumper": "true",
		"cache-dump-dir": "", "disable-default-scheduler-config": "false", "scheduler-sharding-mode": "none",
		"scheduler-sharding-name": "volcano", "listen-address": ":8080", "healthz-address": ":11251",
		"enable-healthz": "false", "enable-metrics": "false", "enable-pprof": "false", "master": "", "kubeconfig": "",
		"ca-cert-file": "", "tls-cert-file": "", "tls-private-key-file": "", "version": "false",
		"lock-object-namespace": "", "feature-gates": "", "leader-elect": "true", "leader-elect-lease-duration": "15s",
		"leader-elect-renew-deadline": "10s", "leader-elect-retry-period": "2s", "leader-elect-resource-lock": "leases",
		"leader-elect-resource-name": "volcano", "leader-elect-resource-namespace": "volcano-system", "v": "0",
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("--%s is %q (known: %t), want %q", name, value, ok, want)
		}
	}
	if err := o.validate(); err != nil {
		t.Errorf("the defaults are invalid: %v", err)
	}
}

func TestACommandLineMadeForVolcanoIsAcceptedAndSaysWhatHasNoEffect(t *testing.T) {
	o := parse(t, "--logtostderr", "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf", "--enable-healthz=true",
		"--enable-metrics=true", "--leader-elect=false", "-v=3", "--percentage-nodes-to-find=50",
		"--feature-gates=CSIStorage=true", "--node-worker-threads", "20", "--cache-dumper=false", "--skip_headers")
	if err := o.validate(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, sentence := range o.ineffective() {
		name, _, _ := strings.Cut(sentence, "=")
		names = append(names, name)
		if !strings.Contains(sentence, " has no effect: ") {
			t.Errorf("no reason in %q", sentence)
		}
	}
	want := []string{"--percentage-nodes-to-find", "--node-worker-threads", "--cache-dumper", "--logtostderr", "--skip-headers", "--feature-gates"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("without effect (-want +got):\n%s", diff)
	}
	if o.verbosity != 3 || o.election.LeaderElect {
		t.Error("what has an effect was not taken over")
	}
}

func TestTheLeaseFollowsFromOtherFlagsUnlessItIsNamed(t *testing.T) {
	for _, test := range []struct {
		arguments []string
		want      string
	}{
		{nil, "volcano-system/volcano"},
		{[]string{"--scheduler-name=a", "--scheduler-name=b"}, "volcano-system/a-b"},
		{[]string{"--scheduler-name=a", "--leader-elect-resource-name=x"}, "volcano-system/x"},
		{[]string{"--lock-object-namespace=old"}, "old/volcano"},
		{[]string{"--lock-object-namespace=old", "--leader-elect-resource-namespace=new"}, "new/volcano"},
	} {
		o := parse(t, test.arguments...)
		if got := o.election.ResourceNamespace + "/" + o.election.ResourceName; got != test.want {
			t.Errorf("%v: the Lease is %s, want %s", test.arguments, got, test.want)
		}
	}
}

func TestAFlagThatCannotBeMeantIsNamedWithItsValue(t *testing.T) {
	for _, test := range []struct{ argument, want string }{
		{"--kube-api-qps=0", "--kube-api-qps=0: must be above 0"},
		{"--kube-api-burst=0", "--kube-api-burst=0: must be at least 1"},
		{"--scheduler-name=", "--scheduler-name=: a scheduler without a name"},
		{"--default-queue=", "--default-queue=: must be set"},
		{"--schedule-period=0s", "--schedule-period=0s: must be above 0"},
		{"--resource-sync-timeout=-1s", "--resource-sync-timeout=-1s: must not be negative"},
		{"--scheduler-configmap=name", "--scheduler-configmap=name: must be NAMESPACE/NAME"},
		{"--scheduler-configmap=a/b/c", "--scheduler-configmap=a/b/c: must be NAMESPACE/NAME"},
		{"--listen-address=8080", "--listen-address=8080: must be HOST:PORT"},
		{"--tls-cert-file=a", "--tls-cert-file=a: needs --tls-private-key-file"},
		{"--ca-cert-file=a", "--ca-cert-file=a: has no meaning without"},
		{"--answers-address=8080", "--answers-address=8080: must be HOST:PORT"},
		{"--answers-service=a/b", "--answers-address=: must be set with --answers-service"},
		{"--answers-endpoint=1.2.3.4:5", "--answers-endpoint=1.2.3.4:5: has no meaning without --answers-service"},
		{"--web-address=:8090", "--web-address=:8090: must be on the loopback interface"},
		{"--web-address=8090", "--web-address=8090: must be HOST:PORT"},
		{"--v=11", "--v=11: must be from 0 to 10"},
		{"--leader-elect-lease-duration=10s", "--leader-elect-lease-duration=10s: must be longer than the renew deadline, 10s"},
		{"--leader-elect-renew-deadline=2s", "--leader-elect-renew-deadline=2s: must be longer than 1.2 retry periods of 2s"},
		{"--leader-elect-retry-period=0s", "--leader-elect-retry-period=0s: must be above 0"},
		{"--leader-elect-resource-lock=endpoints", "--leader-elect-resource-lock=endpoints: only leases"},
		{"--leader-elect-resource-name=", "--leader-elect-resource-name=: must be set"},
		{"--leader-elect-resource-namespace=", "--leader-elect-resource-namespace=: must be set"},
	} {
		if err := parse(t, test.argument).validate(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.argument, err, test.want)
		}
	}
	// Without leader election its settings do not matter.
	if err := parse(t, "--leader-elect=false", "--leader-elect-lease-duration=1s").validate(); err != nil {
		t.Error(err)
	}
	if parse(t, "--schedule-period=3s").schedulePeriod != 3*time.Second {
		t.Error("a valid period was not taken over")
	}
}

func TestRunSaysWhatIsWrongWithItsFlags(t *testing.T) {
	connection := &rest.Config{Host: "https://127.0.0.1:1"}
	for flag, want := range map[string]string{"--no-such-flag": "no-such-flag", "--schedule-period=0s": "must be above 0"} {
		if err := Run(t.Context(), connection, logr.Discard(), []string{flag}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", flag, err)
		}
	}
}
