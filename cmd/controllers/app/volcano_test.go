package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// logging are the flags of klog and component-base, which all of Volcano's programs have.
var logging = []string{
	"--add_dir_header=true", "--alsologtostderr=true", "--log_backtrace_at=a.go:1", "--log_dir=/tmp", "--log_file=a", "--log_file_max_size=1",
	"--logtostderr", "--one_output=true", "--skip_headers=true", "--skip_log_headers=true", "--stderrthreshold=2", "-v=3", "--vmodule=a=3",
	"--log-flush-frequency=5s", "2>&1", // the last stands among the arguments of Volcano's charts
}

// volcano is a command line for one of Volcano's programs: every flag of its code and its charts, with a value that
// Volcano takes.
var volcano = map[string][]string{
	"vc-controller-manager": {
		"--master=http://127.0.0.1:1", "--kubeconfig=", "--ca-cert-file=a", "--tls-cert-file=b", "--tls-private-key-file=c", "--kube-api-qps=50",
		"--kube-api-burst=100", "--version=false", "--worker-threads=3", "--worker-threads-for-cronjob=3", "--worker-threads-for-podgroup=5",
		"--worker-threads-for-gc=1", "--worker-threads-for-queue=5", "--scheduler-name=volcano", "--scheduler-name=other", "--max-requeue-num=15",
		"--healthz-address=:11251", "--enable-healthz=true", "--enable-metrics=true", "--listen-address=:8081", "--inherit-owner-annotations=true",
		"--controllers=*,-sharding-controller", "--leader-elect=true", "--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s",
		"--leader-elect-retry-period=2s", "--leader-elect-resource-lock=leases", "--leader-elect-resource-name=a",
		"--leader-elect-resource-namespace=b", "--lock-object-namespace=b", "--feature-gates=WorkLoadSupport=true",
		"--detection-period-of-dependson-task=1s", "--scheduler-configs=volcano:volcano:0.0:0.6:false:2:100", "--shard-sync-period=60s",
		"--enable-node-event-trigger=true", "--sharding-configmap=a", "--sharding-configmap-namespace=b",
	},
	"vc-webhook-manager": {
		"--master=http://127.0.0.1:1", "--kubeconfig=", "--tls-cert-file=b", "--tls-private-key-file=c", "--ca-cert-file=a", "--listen-address=",
		"--port=8443", "--version=false", "--kube-api-qps=50", "--kube-api-burst=100", "--webhook-namespace=a", "--webhook-service-name=b",
		"--webhook-url=", "--enabled-admission=/jobs/mutate,/jobs/validate,/podgroups/mutate,/pods/validate,/pods/mutate,/queues/mutate,/queues/validate",
		"--enabled-admission=/podgroups/validate,/jobflows/validate,/hypernodes/validate,/cronjobs/validate",
		"--scheduler-name=volcano", "--scheduler-name=other", "--admission-conf=/admission.local.config/configmap/volcano-admission.conf",
		"--enable-healthz=true", "--healthz-address=:11251", "--graceful-shutdown-time=30s", "--enable-queue-allocated-pods-check=true",
		"--max-queue-depth=5", "--enable-root-queue-protection=true", "--enable-cascade-child-queue-close=false",
		"--enable-queue-closed-before-delete-check=false", "--feature-gates=SchedulingGatesQueueAdmission=true",
	},
}

func TestEveryFlagOfVolcanosProgramsIsAccepted(t *testing.T) {
	o, a := newOptions(), &admissionOptions{}
	for name, program := range map[string]struct {
		command  *cobra.Command
		addFlags func(*pflag.FlagSet)
		validate func() error
	}{
		"vc-controller-manager": {NewCommand(), o.addFlags, o.validate},
		"vc-webhook-manager":    {newAdmissionCommand(), a.addFlags, a.validate},
	} {
		t.Run(name, func(t *testing.T) {
			program.command.ResetFlags()
			program.addFlags(program.command.Flags())
			if err := program.command.ParseFlags(append(slices.Clone(logging), volcano[name]...)); err != nil {
				t.Fatal(err)
			}
			if err := program.command.Args(program.command, program.command.Flags().Args()); err != nil {
				t.Error(err)
			}
			if err := program.validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEveryControllerOfVolcanoMayBeNamed(t *testing.T) {
	here := []string{"job-controller", "pg-controller", "queue-controller", "gc-controller", "jobflow-controller", "jobtemplate-controller",
		"cronjob-controller", "hyperNode-controller"}
	for _, name := range append(slices.Clone(here), "sharding-controller", "colocation-config-controller", "colocationconfig-controller") {
		for _, form := range []string{"*,-" + name, "*,+" + name, "*," + name, "job-controller," + name, name, "+" + name} {
			o := parse(t, "--controllers="+form)
			if err := o.validate(); err != nil {
				t.Errorf("--controllers=%s: %v", form, err)
				continue
			}
			chosen, _ := o.selected()
			isHere, isLeftOut := slices.Contains(here, name), strings.Contains(form, "-"+name)
			if chosen[strings.ToLower(name)] != (isHere && !isLeftOut) {
				t.Errorf("--controllers=%s chooses %v", form, chosen)
			}
			if said := o.missing(); (len(said) > 0) != (!isHere && !isLeftOut) {
				t.Errorf("--controllers=%s: it says %q", form, said)
			}
		}
	}
}
