package kueue_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/internal/importer/kueue"
	"hekla.sh/hekla/internal/importer/source"
)

const head = "kind: Configuration\napiVersion: config.kueue.x-k8s.io/"

// arguments are those of the plugin cohorts in a result.
func arguments(t *testing.T, r *kueue.Result) map[string]any {
	t.Helper()
	var c struct {
		Actions string
		Tiers   []struct {
			Plugins []struct {
				Name      string
				Arguments map[string]any
			}
		}
	}
	if err := yaml.UnmarshalStrict([]byte(r.ConfigMap.Data["volcano-scheduler.conf"]), &c); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(c.Actions, "enqueue, admit, allocate") {
		t.Errorf("the actions are %q", c.Actions)
	}
	for _, tier := range c.Tiers {
		for _, plugin := range tier.Plugins {
			if plugin.Name == "cohorts" {
				return plugin.Arguments
			}
		}
	}
	t.Fatal("the plugin cohorts is missing")
	return nil
}

func TestAConfigurationBecomesArgumentsOfThePlugin(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want map[string]any
		lost bool
	}{
		"one that says nothing": {"v1beta2\n", nil, false},
		"the newer version": {`v1beta2
fairSharing: {preemptionStrategies: [LessThanInitialShare]}
waitForPodsReady: {timeout: 5m, requeuingStrategy: {backoffLimitCount: 3}}
resources: {excludeResourcePrefixes: [example.com/], transformations: [{input: cpu, strategy: Retain, outputs: {credits: 1}}]}
objectRetentionPolicies: {workloads: {afterFinished: 1h}}
`, map[string]any{
			"fairSharing": true, "preemptionStrategies": []any{"LessThanInitialShare"},
			"waitForPodsReady": map[string]any{"enable": true, "timeout": "5m", "requeuingStrategy": map[string]any{"backoffLimitCount": 3.0}},
			"resources": map[string]any{"excludeResourcePrefixes": []any{"example.com/"},
				"transformations": []any{map[string]any{"input": "cpu", "strategy": "Retain", "outputs": map[string]any{"credits": 1.0}}}},
			"objectRetentionPolicies": map[string]any{"workloads": map[string]any{"afterFinished": "1h"}},
		}, false},
		"the older version, with its defaults": {`v1beta1
fairSharing: {enable: true}
waitForPodsReady: {enable: true}
`, map[string]any{"fairSharing": true, "waitForPodsReady": map[string]any{"enable": true, "blockAdmission": true}}, false},
		"what is off stays off": {`v1beta1
fairSharing: {enable: false, preemptionStrategies: [LessThanInitialShare]}
waitForPodsReady: {enable: false, timeout: 5m}
`, nil, false},
		"another order":          {"v1beta2\nfeatureGates: {PrioritySortingWithinCohort: false, PartialAdmission: true, TopologyAwareScheduling: false}\n", map[string]any{"prioritySortingWithinCohort": false}, false},
		"a feature that is none": {"v1beta2\nfeatureGates: {TopologyAwareScheduling: true}\n", nil, true},
		"several clusters":       {"v1beta2\nmultiKueue: {gcInterval: 1m}\n", nil, true},
		"an unknown framework":   {"v1beta2\nintegrations: {frameworks: [batch/job, ray.io/rayjob, example.com/job]}\n", nil, true},
		"jobs without a queue": {"v1beta1\nmanageJobsWithoutQueueName: true\nmanagedJobsNamespaceSelector: {matchLabels: {a: b}}\n",
			map[string]any{"manageJobsWithoutQueueName": true, "managedJobsNamespaceSelector": map[string]any{"matchLabels": map[string]any{"a": "b"}}}, false},
		"metrics and servers": {`v1beta2
metrics: {bindAddress: ":8443", localQueueMetrics: {enable: true}}
visibilityServer: {bindAddress: "::", bindPort: 8082}
tls: {minVersion: VersionTLS12}
`, nil, false},
		"a newer TLS":       {"v1beta2\ntls: {minVersion: VersionTLS13}\n", nil, true},
		"labels of metrics": {"v1beta2\nmetrics: {customLabels: [{name: team}]}\n", nil, true},
		"flags of the programs": {`v1beta1
health: {healthProbeBindAddress: ":8081"}
metrics: {bindAddress: ":8443"}
webhook: {port: 9443}
leaderElection: {leaderElect: true, resourceName: c1f6bfd2.kueue.x-k8s.io}
controller: {groupKindConcurrency: {Job.batch: 5}}
clientConnection: {qps: 50, burst: 100}
integrations: {frameworks: [batch/job, pod]}
`, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := kueue.Import(head+test.text, kueue.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, arguments(t, r)); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			if r.IsLossy() != test.lost {
				t.Errorf("lossy: %v, of %v", r.IsLossy(), r.Lines)
			}
		})
	}
}

func TestEveryKeyThatIsWrittenHasALine(t *testing.T) {
	const text = head + `v1beta1
namespace: kueue-system
manageJobsWithoutQueueName: false
managedJobsNamespaceSelector: {matchLabels: {a: b}}
internalCertManagement: {enable: true}
waitForPodsReady: {enable: true, timeout: 5m, blockAdmission: false, recoveryTimeout: 3m, requeuingStrategy: {timestamp: Creation, backoffLimitCount: 1, backoffBaseSeconds: 2, backoffMaxSeconds: 3}}
clientConnection: {qps: 50}
integrations: {frameworks: [batch/job], externalFrameworks: [Run.v1.example.com, a], labelKeysToCopy: [b], podOptions: {podSelector: {}}}
queueVisibility: {}
multiKueue: {}
fairSharing: {enable: true, preemptionStrategies: [LessThanOrEqualToFinalShare]}
admissionFairSharing: {usageHalfLifeTime: 1m}
resources: {excludeResourcePrefixes: [a], transformations: [], quotaCheckStrategy: IgnoreUndeclared, deviceClassMappings: []}
featureGates: {LendingLimit: true}
objectRetentionPolicies: {workloads: {afterFinished: 1h, afterDeactivatedByKueue: 2h}}
webhook: {port: 1}
leaderElection: {}
metrics: {bindAddress: a, enableClusterQueueResources: true}
health: {}
pprofBindAddress: a
controller: {}
`
	r, err := kueue.Import(text, kueue.Options{Accepted: []string{"multiKueue"}})
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]source.Outcome{}
	for _, line := range r.Lines {
		said[line.Path] = line.Outcome
		if line.Note == "" || line.Number == 0 || (line.Path == "multiKueue") != line.IsAccepted {
			t.Errorf("%s", line)
		}
	}
	for path, want := range map[string]source.Outcome{
		"namespace": source.Changed, "manageJobsWithoutQueueName": source.Kept, "managedJobsNamespaceSelector": source.Kept, "internalCertManagement": source.Changed,
		"waitForPodsReady.enable": source.Kept, "waitForPodsReady.timeout": source.Kept, "waitForPodsReady.blockAdmission": source.Kept,
		"waitForPodsReady.recoveryTimeout": source.Kept, "waitForPodsReady.requeuingStrategy.timestamp": source.Kept,
		"waitForPodsReady.requeuingStrategy.backoffMaxSeconds": source.Kept, "clientConnection": source.Changed, "integrations.frameworks[0]": source.Kept,
		"integrations.externalFrameworks[0]": source.Kept, "integrations.externalFrameworks[1]": source.Lost, "integrations.labelKeysToCopy": source.Lost, "integrations.podOptions": source.Lost,
		"queueVisibility": source.Changed, "multiKueue": source.Lost, "fairSharing.enable": source.Kept, "fairSharing.preemptionStrategies": source.Kept,
		"admissionFairSharing": source.Lost, "resources.excludeResourcePrefixes": source.Kept, "resources.transformations": source.Kept,
		"resources.quotaCheckStrategy": source.Kept, "resources.deviceClassMappings": source.Lost, "featureGates[LendingLimit]": source.Kept,
		"objectRetentionPolicies.workloads.afterFinished": source.Kept, "objectRetentionPolicies.workloads.afterDeactivatedByKueue": source.Kept,
		"webhook": source.Changed, "leaderElection": source.Changed, "metrics.bindAddress": source.Changed, "metrics.enableClusterQueueResources": source.Lost,
		"health": source.Changed, "pprofBindAddress": source.Lost, "controller": source.Changed,
	} {
		if said[path] != want {
			t.Errorf("%s is %q, want %q", path, said[path], want)
		}
	}
}

func TestATextThatIsNoConfigurationIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "the text is empty",
		"kind: Deployment":     "it is no Configuration of config.kueue.x-k8s.io",
		head + "v1alpha1":      "its version is config.kueue.x-k8s.io/v1alpha1; v1beta1 and v1beta2 can be read",
		"kind: ConfigMap":      "it is a ConfigMap without the key controller_manager_config.yaml",
		head + "v1beta2\na: 1": "line 3: a: there is no such key",
		head + "v1beta2\nfairSharing: {enable: true}":                                         "fairSharing.enable: there is no such key",
		head + "v1beta2\nwaitForPodsReady: {timeout: soon}":                                   `waitForPodsReady.timeout: is "soon", allowed is a duration such as 5m`,
		head + "v1beta2\nwaitForPodsReady: {requeuingStrategy: {timestamp: Never}}":           `is "Never", allowed is Eviction or Creation`,
		head + "v1beta1\nfairSharing: {enable: true, preemptionStrategies: [LessThanEver]}":   `preemptionStrategies[0]: is "LessThanEver"`,
		head + "v1beta2\nwaitForPodsReady: {requeuingStrategy: {backoffLimitCount: -1}}":      `is "-1", allowed is a number from 0 up`,
		"kind: ConfigMap\ndata:\n  controller_manager_config.yaml: |\n    kind: Deployment\n": "it is no Configuration",
	} {
		if _, err := kueue.Import(text, kueue.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if r, err := kueue.Import("kind: ConfigMap\ndata:\n  controller_manager_config.yaml: |\n    apiVersion: config.kueue.x-k8s.io/v1beta2\n    kind: Configuration\n", kueue.Options{}); err != nil || r.IsLossy() {
		t.Errorf("a ConfigMap: %v", err)
	}
}

// defaults is a Configuration as Kueue installs it.
const defaults = head + `v1beta2
health: {healthProbeBindAddress: ":8081"}
metrics: {bindAddress: ":8443"}
webhook: {port: 9443}
leaderElection: {leaderElect: true, resourceName: c1f6bfd2.kueue.x-k8s.io}
controller: {groupKindConcurrency: {Job.batch: 5, Pod: 5, Workload.kueue.x-k8s.io: 5, ClusterQueue.kueue.x-k8s.io: 1}}
clientConnection: {qps: 50, burst: 100}
integrations: {frameworks: [batch/job, kubeflow.org/mpijob, ray.io/rayjob, jobset.x-k8s.io/jobset, trainer.kubeflow.org/trainjob, pod, deployment, statefulset,
  leaderworkerset.x-k8s.io/leaderworkerset]}
`

const labelled = `
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: team, labels: {kueue.x-k8s.io/queue-name: q}}
  spec: {template: {spec: {containers: [{name: main}]}}}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: db, namespace: team, labels: {kueue.x-k8s.io/queue-name: q}}
  spec: {template: {metadata: {labels: {kueue.x-k8s.io/queue-name: q}}, spec: {containers: [{name: main}]}}}
- apiVersion: batch/v1
  kind: Job
  metadata: {name: queued, namespace: team, labels: {kueue.x-k8s.io/queue-name: q}}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train, namespace: team, labels: {kueue.x-k8s.io/queue-name: q}}
spec:
  replicatedJobs:
  - {name: driver, template: {spec: {template: {metadata: {labels: {kueue.x-k8s.io/queue-name: q}}, spec: {containers: [{name: main}]}}}}}
  - {name: worker, template: {spec: {template: {spec: {containers: [{name: main}]}}}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune, namespace: team, labels: {kueue.x-k8s.io/queue-name: q}}
spec: {runtimeRef: {name: torch}}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: tune, namespace: team, labels: {kueue.x-k8s.io/queue-name: q}, ownerReferences: [{apiVersion: v1, kind: TrainJob, name: tune, uid: u, controller: true}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: unlabelled, namespace: team}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: a, namespace: team, ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: train, uid: u, controller: true}]}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: b, namespace: team, ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: tune, uid: u, controller: true}]}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: c, namespace: team, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: queued, uid: u, controller: true}]}
`

func TestObjectsThatWouldRunUnmanagedAreLost(t *testing.T) {
	objects, err := kueue.ReadObjects(strings.NewReader(labelled))
	if err != nil {
		t.Fatal(err)
	}
	r, err := kueue.Import(defaults, kueue.Options{Objects: objects})
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, line := range r.Lines {
		if line.Number == 0 {
			said[line.Path] = string(line.Outcome) + ": " + line.Note
		}
	}
	want := map[string]string{
		"Deployment/team/web":                          "lost: no Workload is made of this kind, and its pods would run unmanaged; put the label kueue.x-k8s.io/queue-name on spec.template",
		"StatefulSet/team/db":                          "kept: its pods are queued, as their templates have the label",
		"JobSet/team/train":                            "lost: no Workload is made of this kind, and its pods would run unmanaged; put the label kueue.x-k8s.io/queue-name on spec.replicatedJobs[1].template.spec.template",
		"Workloads of jobset.x-k8s.io/v1alpha2 JobSet": "changed: they hold no quota and are not admitted, since no controller would start their jobs; what of these jobs runs is not charged",
		"TrainJob/team/tune":                           "lost: no Workload is made of this kind, and it would run unmanaged; it has no pod template for the label kueue.x-k8s.io/queue-name",
	}
	if diff := cmp.Diff(want, said); diff != "" || !r.IsLossy() {
		t.Errorf("lossy: %v; lines (-want +got):\n%s", r.IsLossy(), diff)
	}
	for _, accepted := range [][]string{{kueue.Unmanaged}, {"Deployment/team/web", "JobSet/team/train", "TrainJob/team/tune"}} {
		if r, err := kueue.Import(defaults, kueue.Options{Objects: objects, Accepted: accepted}); err != nil || r.IsLossy() {
			t.Errorf("with %v accepted: %v, lossy", accepted, err)
		}
	}
	if r, err := kueue.Import(defaults, kueue.Options{}); err != nil || r.IsLossy() {
		t.Errorf("the defaults of Kueue: %v", err)
	}
	for text, want := range map[string]string{"a: 1": "document 1: it has no kind", "kind: A\n---\n[]": "document 2: "} {
		if _, err := kueue.ReadObjects(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
