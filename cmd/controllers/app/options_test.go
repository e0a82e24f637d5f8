package app

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"hekla.sh/hekla/internal/admission"
	"hekla.sh/hekla/internal/admission/certificates"
	"hekla.sh/hekla/internal/controllers"
)

// parse reads flags as the command does.
func parse(t *testing.T, arguments ...string) *options {
	t.Helper()
	o := newOptions()
	command := NewCommand()
	command.ResetFlags()
	o.addFlags(command.Flags())
	if err := command.ParseFlags(arguments); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTheControllersAreChosenByName(t *testing.T) {
	all := controllers.Options{
		JobWorkers: 16, PodGroupWorkers: 5, QueueWorkers: 5, CronJobWorkers: 3, GarbageWorkers: 1, HyperNodes: true,
		JobFlowWorkers: 5, JobTemplateWorkers: 2, WorkloadWorkers: 10,
		SchedulerNames: []string{"volcano"}, InheritOwnerAnnotations: true, DefaultQueue: "default",
		DiscoveryConfigMap:      types.NamespacedName{Namespace: "volcano-system", Name: "volcano-controller-configmap"},
		SchedulerConfigMap:      types.NamespacedName{Namespace: "volcano-system", Name: "volcano-scheduler-configmap"},
		ShortestCronJobInterval: 10 * time.Second,
	}
	only := func(o *controllers.Options) {
		*o = controllers.Options{SchedulerNames: o.SchedulerNames, InheritOwnerAnnotations: o.InheritOwnerAnnotations, DefaultQueue: o.DefaultQueue,
			DiscoveryConfigMap: o.DiscoveryConfigMap, SchedulerConfigMap: o.SchedulerConfigMap, ShortestCronJobInterval: o.ShortestCronJobInterval}
	}
	for _, test := range []struct {
		arguments []string
		edit      func(*controllers.Options)
	}{
		{nil, func(*controllers.Options) {}},
		{[]string{"--controllers=*,-sharding-controller"}, func(*controllers.Options) {}},
		{[]string{"--controllers=*,-pg-controller"}, func(o *controllers.Options) { o.PodGroupWorkers = 0 }},
		{[]string{"--controllers=job-controller"}, func(o *controllers.Options) { only(o); o.JobWorkers = 16 }},
		{[]string{"--shortest-cronjob-interval=0"}, func(o *controllers.Options) { o.ShortestCronJobInterval = 0 }},
		{[]string{"--controllers=*,-hypernode-controller"}, func(o *controllers.Options) { o.HyperNodes = false }},
		{[]string{"--allow-unchecked-queue-commands"}, func(o *controllers.Options) { o.AllowUncheckedQueueCommands = true }},
		{[]string{"--controller-configmap=a/b"}, func(o *controllers.Options) {
			o.DiscoveryConfigMap = types.NamespacedName{Namespace: "a", Name: "b"}
		}},
		{[]string{"--yunikorn-labels", "--default-queue=a.b"}, func(o *controllers.Options) { o.YuniKornLabels, o.DefaultQueue = true, "a.b" }},
		{[]string{"--controllers=+queue-controller"}, func(o *controllers.Options) { only(o); o.QueueWorkers = 5 }},
		{[]string{"--controllers=*,-gc-controller"}, func(o *controllers.Options) { o.GarbageWorkers = 0 }},
		{[]string{"--worker-threads-for-gc=2"}, func(o *controllers.Options) { o.GarbageWorkers = 2 }},
		{[]string{"--controllers=cronjob-controller", "--worker-threads-for-cronjob=1"},
			func(o *controllers.Options) { only(o); o.CronJobWorkers = 1 }},
		{[]string{"--scheduler-configmap=a/b", "--controllers=*,-workload-controller"}, func(o *controllers.Options) {
			o.SchedulerConfigMap, o.WorkloadWorkers = types.NamespacedName{Namespace: "a", Name: "b"}, 0
		}},
		{[]string{"--controllers=*,-jobflow-controller,-jobtemplate-controller"}, func(o *controllers.Options) {
			o.JobFlowWorkers, o.JobTemplateWorkers = 0, 0
		}},
		{[]string{"--worker-threads=9", "--worker-threads-for-podgroup=8", "--worker-threads-for-queue=7"},
			func(o *controllers.Options) { o.JobWorkers, o.PodGroupWorkers, o.QueueWorkers = 9, 8, 7 }},
		{[]string{"--scheduler-name=a", "--scheduler-name=b", "--inherit-owner-annotations=false"},
			func(o *controllers.Options) {
				o.SchedulerNames, o.InheritOwnerAnnotations = []string{"a", "b"}, false
			}},
	} {
		t.Run(strings.Join(test.arguments, " "), func(t *testing.T) {
			o := parse(t, test.arguments...)
			if err := o.validate(); err != nil {
				t.Fatal(err)
			}
			got, err := o.controllerOptions()
			want := all
			test.edit(&want)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("error %v, options (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestAFlagThatCannotBeMeantIsNamed(t *testing.T) {
	for _, argument := range []string{
		"--kube-api-qps=0", "--kube-api-burst=0", "--worker-threads=0", "--worker-threads-for-podgroup=-1",
		"--worker-threads-for-queue=0", "--worker-threads-for-cronjob=0", "--worker-threads-for-gc=0", "--scheduler-name=", "--controllers=-sharding-controller", "--controllers=-job-controller", "--controllers=*,-nonsense",
		"--controller-configmap=name", "--controller-configmap=", "--controller-configmap=a/b/c", "--controller-configmap=a/", "--scheduler-configmap=name",
		"--leader-elect-resource-lock=configmaps", "--leader-elect-lease-duration=1s", "--leader-elect-renew-deadline=2s",
		"--leader-elect-retry-period=0s", "--leader-elect-resource-name=", "--leader-elect-resource-namespace=", "--v=11",
		"--shortest-cronjob-interval=-1s", "--shortest-cronjob-interval=61s", "--enable-pprof",
	} {
		t.Run(argument, func(t *testing.T) {
			err := parse(t, argument).validate()
			flag, _, _ := strings.Cut(argument, "=")
			if err == nil || !strings.Contains(err.Error(), flag) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestTheCommandRefusesBeforeItConnects(t *testing.T) {
	command := NewCommand()
	command.SetArgs([]string{"--kubeconfig=/does/not/exist", "--worker-threads=0"})
	command.SetOut(io.Discard)
	if err := command.Execute(); err == nil || !strings.Contains(err.Error(), "--worker-threads=0") {
		t.Errorf("the error is %v", err)
	}
}

func TestAKubeconfigThatIsMissingIsNamed(t *testing.T) {
	command := NewCommand()
	command.SetArgs([]string{"--kubeconfig=/does/not/exist"})
	if err := command.Execute(); err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Errorf("the error is %v", err)
	}
}

func TestACommandLineOfVolcanosControllersIsAccepted(t *testing.T) {
	o := parse(t, "--logtostderr", "--enable-healthz=true", "--enable-metrics=true", "--leader-elect=false", "--leader-elect-resource-namespace=a",
		"--kube-api-qps=50", "--kube-api-burst=100", "--worker-threads=3", "--worker-threads-for-gc=5", "--worker-threads-for-podgroup=5",
		"--max-requeue-num=15", "--feature-gates=A=true", "--lock_object_namespace=b", "-v=4")
	if err := o.validate(); err != nil {
		t.Fatal(err)
	}
	if got := o.ineffective(); len(got) != 3 || !strings.HasPrefix(got[0], "--max-requeue-num=15 has no effect: ") {
		t.Errorf("without effect are %q", got)
	}
}

func TestTheWebhookServerTakesVolcanosFlags(t *testing.T) {
	o := &admissionOptions{}
	command := newAdmissionCommand()
	command.ResetFlags()
	o.addFlags(command.Flags())
	if err := command.ParseFlags([]string{"--enabled-admission=/jobs/mutate,/jobs/validate", "--tls-cert-file=a", "--tls-private-key-file=b",
		"--ca-cert-file=c", "--admission-conf=d", "--webhook-namespace=e", "--webhook-service-name=f", "--scheduler-name=g", "--scheduler-name=h",
		"--admission-port=7443", "--listen-address=127.0.0.1", "--max-queue-depth=7", "--enable-queue-allocated-pods-check",
		"--enable-queue-closed-before-delete-check", "--graceful-shutdown-time=3s", "--shortest-cronjob-interval=20s", "--scheduler-configmap=i/j"}); err != nil {
		t.Fatal(err)
	}
	if err := o.validate(); err != nil {
		t.Fatal(err)
	}
	want := admission.Options{
		Enabled: []string{"/jobs/mutate", "/jobs/validate"}, SchedulerNames: []string{"g", "h"}, ConfigFile: "d", MaxQueueDepth: 7,
		SchedulerConfigMap:      types.NamespacedName{Namespace: "i", Name: "j"},
		ShortestCronJobInterval: 20 * time.Second, KeepsUsedQueues: true, KeepsOpenQueues: true, Namespace: "e", ServiceName: "f", Address: "127.0.0.1:7443", SecretName: "volcano-admission-secret",
		CertificateFile: "a", KeyFile: "b", BundleFile: "c", Life: certificates.DefaultLife(), Interval: admissionInterval, ShutdownTimeout: 3 * time.Second,
	}
	if diff := cmp.Diff(want, o.options()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFlagOfTheWebhookServerThatCannotBeMeantIsNamed(t *testing.T) {
	for argument, want := range map[string]string{
		"--kube-api-qps=0": "--kube-api-qps", "--shortest-cronjob-interval=61s": "--shortest-cronjob-interval=1m1s", "--kube-api-burst=0": "--kube-api-burst", "--port=0": "--port", "--port=65536": "--port", "--v=11": "--v",
		"--graceful-shutdown-time=0s": "--graceful-shutdown-time", "--enabled-admission=/pods/dance": "--enabled-admission=/pods/dance", "--scheduler-configmap=name": "must be NAMESPACE/NAME",
		"--max-queue-depth=0": "queues 0 levels deep", "--scheduler-name=": "a scheduler without a name", "--webhook-url=http://a": "http://a",
		"--webhook-service-name=": "Service", "--tls-cert-file=a": "a certificate needs all of its files", "--kubeconfig=/does/not/exist": "/does/not/exist",
	} {
		command := NewCommand()
		command.SetArgs([]string{"admission", argument, "--master=http://127.0.0.1:1"})
		command.SetOut(io.Discard)
		if err := command.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v", argument, err)
		}
	}
}

func TestRunSaysWhatIsWrongWithItsFlags(t *testing.T) {
	connection := &rest.Config{Host: "https://127.0.0.1:1"}
	for flag, want := range map[string]string{"--no-such-flag": "no-such-flag", "--worker-threads=0": "must be at least 1"} {
		if err := Run(t.Context(), connection, logr.Discard(), []string{flag}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", flag, err)
		}
	}
}
