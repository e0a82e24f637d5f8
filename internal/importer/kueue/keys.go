package kueue

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hekla.sh/hekla/internal/importer/source"
	"hekla.sh/hekla/pkg/apis/bounds"
)

// keys are those of a Configuration.
func (i *importer) keys() source.Keys {
	keys := source.Keys{
		"apiVersion": func(v source.Value) { i.Keep(i.Text(v), "it is read in this version") },
		"kind":       func(source.Value) {},
		"metadata":   i.lost("a ConfigMap has the name volcano-scheduler-configmap"),
		"namespace":  i.changed("the objects of Hekla are in the namespace of its installation"),

		"manageJobsWithoutQueueName":   i.withoutQueueName,
		"managedJobsNamespaceSelector": i.namespaces,
		"internalCertManagement":       i.changed("the admission server makes its certificates; those of others are given by --tls-cert-file, --tls-private-key-file and --ca-cert-file"),
		"waitForPodsReady":             i.waitForPodsReady,
		"clientConnection":             i.changed("flags --kube-api-qps and --kube-api-burst of each program"),
		"integrations":                 i.integrations,
		"multiKueue":                   i.lost("there are no several clusters"),
		"fairSharing":                  i.fairSharing,
		"admissionFairSharing":         i.lost("LocalQueues have no shares; ClusterQueues and Cohorts have"),
		"resources":                    i.resources,
		"featureGates":                 i.featureGates,
		"objectRetentionPolicies":      i.retention,
		"visibilityServer":             i.changed("no server of its own: the scheduler answers, after kubectl apply -f installer/visibility.yaml"),
		"tls":                          i.tls,

		"webhook":          i.changed("flags --listen-address, --port and --tls-cert-file of the admission server"),
		"leaderElection":   i.changed("flags --leader-elect and those that begin so, of each program"),
		"metrics":          i.metrics,
		"health":           i.changed("flags --enable-healthz and --healthz-address of each program"),
		"pprofBindAddress": i.lost("no profile is served"),
		"controller":       i.changed("the controllers work on five objects of each kind at a time"),
	}
	if i.isOlder {
		keys["queueVisibility"] = i.changed("Kueue does not read it any more, either; hekla list workload shows what waits")
	}
	return keys
}

// lost makes a reader of a key that has no counterpart.
func (i *importer) lost(note string) func(source.Value) {
	return func(v source.Value) { i.Lose(v.Path, written(v), "%s", note) }
}

// changed makes a reader of a key that is set elsewhere.
func (i *importer) changed(note string) func(source.Value) {
	return func(v source.Value) { i.Change(written(v), "%s", note) }
}

// written is the field with its value, if that is no mapping and no list.
func written(v source.Value) source.Field {
	if v.Node.Kind == yaml.ScalarNode {
		v.Text = v.Node.Value
	}
	return v.Field
}

func (i *importer) withoutQueueName(v source.Value) {
	f := i.Flag(v)
	if f.IsTrue() {
		i.set(true, "manageJobsWithoutQueueName")
		i.Keep(f, "plugin cohorts, argument manageJobsWithoutQueueName: Jobs of batch/v1 wait; pods that name no LocalQueue run as they are")
	} else if f.IsWritten() {
		i.Keep(f, "jobs without a queue name run as they are")
	}
}

// namespaces are those in which jobs that name no LocalQueue are managed.
func (i *importer) namespaces(v source.Value) {
	value, err := plain(v.Node)
	if err != nil {
		i.Refuse(v.Field, "cannot be read: %v", err)
		return
	}
	i.set(value, "managedJobsNamespaceSelector")
	i.Keep(v.Field, "plugin cohorts, argument managedJobsNamespaceSelector")
}

// set puts a value into the arguments, below mappings of these names.
func (i *importer) set(value any, path ...string) {
	into := i.arguments
	for _, name := range path[:len(path)-1] {
		below, is := into[name].(map[string]any)
		if !is {
			below = map[string]any{}
			into[name] = below
		}
		into = below
	}
	into[path[len(path)-1]] = value
}

// argument makes a reader of a text that is an argument of the plugin cohorts.
func (i *importer) argument(check func(string) (any, error), path ...string) func(source.Value) {
	return func(v source.Value) {
		f := i.Text(v)
		if !f.IsWritten() || f.Text == "" {
			return
		}
		value, err := check(f.Text)
		if err != nil {
			i.Refuse(f, "is %q, %s", source.Shorten(f.Text), err)
			return
		}
		i.set(value, path...)
		i.Keep(f, "plugin cohorts, argument %s", strings.Join(path, "."))
	}
}

func duration(text string) (any, error) {
	if d, err := time.ParseDuration(text); err != nil || d < 0 {
		return nil, fmt.Errorf("allowed is a duration such as 5m")
	}
	return text, nil
}

func count(text string) (any, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("allowed is a number from 0 up")
	}
	return n, nil
}

func flag(text string) (any, error) {
	is, err := strconv.ParseBool(text)
	if err != nil {
		return nil, fmt.Errorf("allowed is true or false")
	}
	return is, nil
}

func oneOf(allowed ...string) func(string) (any, error) {
	return func(text string) (any, error) {
		if !slices.Contains(allowed, text) {
			return nil, fmt.Errorf("allowed is %s", strings.Join(allowed, " or "))
		}
		return text, nil
	}
}

// waitForPodsReady is on in v1beta2 if it is there, and in v1beta1 if it says so.
func (i *importer) waitForPodsReady(v source.Value) {
	const name = "waitForPodsReady"
	isOn := !i.isOlder || source.ChildText(v.Node, "enable") == "true"
	keys := source.Keys{
		"timeout":         i.argument(duration, name, "timeout"),
		"blockAdmission":  i.argument(flag, name, "blockAdmission"),
		"recoveryTimeout": i.argument(duration, name, "recoveryTimeout"),
		"requeuingStrategy": func(v source.Value) {
			i.Mapping(v, source.Keys{
				"timestamp":          i.argument(oneOf("Eviction", "Creation"), name, "requeuingStrategy", "timestamp"),
				"backoffLimitCount":  i.argument(count, name, "requeuingStrategy", "backoffLimitCount"),
				"backoffBaseSeconds": i.argument(count, name, "requeuingStrategy", "backoffBaseSeconds"),
				"backoffMaxSeconds":  i.argument(count, name, "requeuingStrategy", "backoffMaxSeconds"),
			})
		},
	}
	if i.isOlder {
		keys["enable"] = func(v source.Value) {
			if f := i.Flag(v); f.IsWritten() {
				i.Keep(f, "plugin cohorts, argument waitForPodsReady.enable")
			}
		}
	}
	i.Mapping(v, keys)
	if !isOn {
		delete(i.arguments, name)
		return
	}
	i.set(true, name, "enable")
	if set := i.arguments[name].(map[string]any); i.isOlder {
		if _, is := set["blockAdmission"]; !is {
			set["blockAdmission"] = true // the default of v1beta1
			i.Change(v.Field, "blockAdmission is printed as true, which is the default of v1beta1")
		}
		if _, is := set["recoveryTimeout"]; !is {
			i.Change(v.Field, "recoveryTimeout is the timeout here, and none in v1beta1")
		}
	} else if !i.Has(v.Path) {
		i.Keep(v.Field, "plugin cohorts, argument waitForPodsReady.enable")
	}
}

// strategies are the ways of fair preemption.
var strategies = []string{"LessThanOrEqualToFinalShare", "LessThanInitialShare"}

// fairSharing is on in v1beta2 if it is there, and in v1beta1 if it says so.
func (i *importer) fairSharing(v source.Value) {
	isOn, named := !i.isOlder, []any{}
	keys := source.Keys{"preemptionStrategies": func(v source.Value) {
		i.List(v, func(v source.Value) {
			f := i.Text(v)
			if f.IsWritten() && !slices.Contains(strategies, f.Text) {
				i.Refuse(f, "is %q, allowed is %s", source.Shorten(f.Text), strings.Join(strategies, " or "))
			}
			named = append(named, f.Text)
		})
		i.Keep(v.Field, "plugin cohorts, argument preemptionStrategies")
	}}
	if i.isOlder {
		keys["enable"] = func(v source.Value) {
			if f := i.Flag(v); f.IsWritten() {
				isOn = f.IsTrue()
				i.Keep(f, "plugin cohorts, argument fairSharing")
			}
		}
	} else {
		i.Keep(v.Field, "plugin cohorts, argument fairSharing")
	}
	i.Mapping(v, keys)
	if !isOn {
		return
	}
	i.set(true, "fairSharing")
	if len(named) > 0 {
		i.set(named, "preemptionStrategies")
	}
}

// external are the kinds whose own controllers make Workloads.
func (i *importer) external(v source.Value) {
	var kinds []any
	i.List(v, func(v source.Value) {
		f := i.Text(v)
		if kind, _ := schema.ParseKindArg(f.Text); f.IsWritten() && kind == nil {
			i.Lose(f.Path, f, "it is not of the form Kind.version.group")
		} else if f.IsWritten() {
			kinds = append(kinds, f.Text)
			i.followed = append(i.followed, *kind)
			i.Keep(f, "plugin cohorts, argument integrations.externalFrameworks: its own controller makes Workloads and follows them")
		}
	})
	if len(kinds) > 0 {
		i.set(kinds, "integrations", "externalFrameworks")
	}
}

// queued are the integrations that are served as in Kueue, and asPods those whose pods are queued.
var (
	queued = []string{"batch/job", "pod"}
	asPods = []string{"deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset", "jobset.x-k8s.io/jobset", "kubeflow.org/mpijob", "ray.io/rayjob", "ray.io/raycluster", "ray.io/rayservice", "kubeflow.org/paddlejob",
		"kubeflow.org/pytorchjob", "kubeflow.org/tfjob", "kubeflow.org/xgboostjob", "kubeflow.org/jaxjob", "trainer.kubeflow.org/trainjob",
		"workload.codeflare.dev/appwrapper", "sparkoperator.k8s.io/sparkapplication"}
)

func (i *importer) integrations(v source.Value) {
	keys := source.Keys{
		"frameworks": func(v source.Value) {
			i.List(v, func(v source.Value) {
				switch f := i.Text(v); {
				case !f.IsWritten():
				case slices.Contains(queued, f.Text):
					i.Keep(f, "always on")
				case slices.Contains(asPods, strings.ToLower(f.Text)):
					i.Change(f, "its pods are queued: put the label kueue.x-k8s.io/queue-name, and those of a group, on the pod templates")
				default:
					i.Lose(f.Path, f, "there is no such integration; its pods are queued if they have the label kueue.x-k8s.io/queue-name")
				}
			})
		},
		"externalFrameworks": i.external,
		"labelKeysToCopy":    i.lost("Workloads have no labels of their jobs"),
	}
	if i.isOlder {
		keys["podOptions"] = i.lost("pods are queued that have the label kueue.x-k8s.io/queue-name, in every namespace but kube-system and Hekla's own")
	}
	i.Mapping(v, keys)
}

func (i *importer) resources(v source.Value) {
	whole := func(name string) func(source.Value) {
		return func(v source.Value) {
			value, err := plain(v.Node)
			if err != nil {
				i.Refuse(v.Field, "cannot be read: %v", err)
				return
			}
			i.set(value, "resources", name)
			i.Keep(v.Field, "plugin cohorts, argument resources.%s", name)
		}
	}
	i.Mapping(v, source.Keys{
		"excludeResourcePrefixes": whole("excludeResourcePrefixes"),
		"transformations":         whole("transformations"),
		"quotaCheckStrategy":      i.argument(oneOf("BlockUndeclared", "IgnoreUndeclared"), "resources", "quotaCheckStrategy"),
		"deviceClassMappings":     i.lost("devices count by the name of their extended resource"),
	})
}

// plain is a value as JSON has it.
func plain(node *yaml.Node) (any, error) {
	var value any
	if err := node.Decode(&value); err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var read any
	return read, bounds.UnmarshalJSON(text, &read)
}

func (i *importer) featureGates(v source.Value) {
	for _, gate := range i.Texts(v) {
		// These are always on here.
		always := slices.Contains([]string{"PartialAdmission", "LendingLimit", "QueueVisibility", "PrioritySortingWithinCohort", "HierarchicalCohorts", "FlavorFungibility",
			"LocalQueueDefaulting", "ObjectRetentionPolicies"}, gate.Key)
		switch {
		case gate.Key == "PrioritySortingWithinCohort" && gate.Text == "false":
			i.set(false, "prioritySortingWithinCohort")
			i.Keep(gate.Field, "plugin cohorts, argument prioritySortingWithinCohort")
		case always && gate.Text == "true":
			i.Keep(gate.Field, "always on")
		case !always && gate.Text == "false":
			i.Keep(gate.Field, "there is no such feature")
		default:
			i.Lose(gate.Path, gate.Field, "there is no such switch")
		}
	}
}

func (i *importer) retention(v source.Value) {
	const name = "objectRetentionPolicies"
	i.Mapping(v, source.Keys{"workloads": func(v source.Value) {
		i.Mapping(v, source.Keys{
			"afterFinished":           i.argument(duration, name, "workloads", "afterFinished"),
			"afterDeactivatedByKueue": i.argument(duration, name, "workloads", "afterDeactivatedByKueue"),
		})
	}})
}

func (i *importer) metrics(v source.Value) {
	i.Mapping(v, source.Keys{
		"bindAddress":                 i.changed("flags --enable-metrics and --listen-address of each program"),
		"enableClusterQueueResources": i.lost("quotas and what is held of them are in the status of ClusterQueues, and not among the metrics yet"),
		"customLabels":                i.lost("metrics have the labels of their names alone"),
		"localQueueMetrics": func(v source.Value) {
			i.Mapping(v, source.Keys{
				"enable": func(v source.Value) {
					if f := i.Flag(v); f.IsTrue() {
						i.Keep(f, "there are metrics of every LocalQueue")
					} else if f.IsWritten() {
						i.Change(f, "there are metrics of every LocalQueue all the same")
					}
				},
				"localQueueSelector": i.changed("there are metrics of every LocalQueue"),
			})
		},
	})
}

// tls says how the servers of Kueue encrypt. Those of Hekla accept TLS 1.2 and 1.3, with the cipher suites that Go
// takes for secure.
func (i *importer) tls(v source.Value) {
	i.Mapping(v, source.Keys{
		"minVersion": func(v source.Value) {
			switch f := i.Text(v); {
			case f.Text == "VersionTLS12":
				i.Keep(f, "always so")
			case f.IsWritten():
				i.Lose(f.Path, f, "the servers accept TLS 1.2 and 1.3")
			}
		},
		"cipherSuites": i.lost("the servers accept the cipher suites that Go takes for secure"),
	})
}
