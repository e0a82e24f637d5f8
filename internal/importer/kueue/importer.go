package kueue

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/internal/importer/source"
)

// Options say what is imported.
type Options struct {
	// Accepted are the paths of lines whose loss is accepted, or [Unmanaged].
	Accepted []string
	// Objects are those of the cluster that name LocalQueues, as far as they are known.
	Objects []*unstructured.Unstructured
}

// Result is what the Configuration has become.
type Result struct {
	// ConfigMap is that of the scheduler.
	ConfigMap *corev1.ConfigMap
	// Lines has the lines of all keys, in the order of the text.
	Lines []source.Line
	// Notes say what else is to be done.
	Notes []string
}

// IsLossy reports whether something is lost and not accepted.
func (r *Result) IsLossy() bool {
	return slices.ContainsFunc(r.Lines, func(l source.Line) bool { return l.Outcome == source.Lost && !l.IsAccepted })
}

// configurationKey is where a ConfigMap of Kueue has its Configuration. The lines of its result are those of this text.
const configurationKey = "controller_manager_config.yaml"

// group is the API group of Configurations.
const group = "config.kueue.x-k8s.io"

// importer is one run of [Import].
type importer struct {
	*source.Reader
	isOlder   bool                      // v1beta1
	arguments map[string]any            // of the plugin cohorts
	followed  []schema.GroupVersionKind // the kinds of external frameworks
}

// Import reads the text of a Configuration, or of a ConfigMap that holds it. An error is of type [source.Problems].
func Import(text string, options Options) (*Result, error) {
	i := &importer{Reader: &source.Reader{Report: &source.Report{Accepted: options.Accepted}}, arguments: map[string]any{}}
	root := i.Document(text)
	if root == nil {
		return nil, i.Err()
	}
	if source.ChildText(root, "kind") == "ConfigMap" {
		data := source.Child(root, "data")
		if data == nil || source.ChildText(data, configurationKey) == "" {
			return nil, i.refuse("it is a ConfigMap without the key %s", configurationKey)
		}
		if root = i.Document(source.ChildText(data, configurationKey)); root == nil {
			return nil, i.Err()
		}
	}
	switch version := source.ChildText(root, "apiVersion"); {
	case source.ChildText(root, "kind") != "Configuration" || !strings.HasPrefix(version, group+"/"):
		return nil, i.refuse("it is no Configuration of %s", group)
	case version == group+"/v1beta1":
		i.isOlder = true
	case version != group+"/v1beta2":
		return nil, i.refuse("its version is %s; v1beta1 and v1beta2 can be read", version)
	}
	i.Mapping(source.Value{Node: root}, i.keys())
	i.objects(options.Objects)
	if err := i.Err(); err != nil {
		return nil, err
	}
	configuration, err := i.configuration()
	if err != nil {
		return nil, err
	}
	return &Result{ConfigMap: configuration, Lines: i.Lines(), Notes: []string{
		"the tiers have the plugins that place pods; add those of the configuration that is in force",
	}}, nil
}

func (i *importer) refuse(format string, arguments ...any) error {
	i.Refuse(source.Field{}, format, arguments...)
	return i.Err()
}

// configuration is the ConfigMap of a scheduler that admits workloads.
func (i *importer) configuration() (*corev1.ConfigMap, error) {
	cohorts := map[string]any{"name": "cohorts"}
	if len(i.arguments) > 0 {
		cohorts["arguments"] = i.arguments
	}
	plugins := []any{map[string]any{"name": "priority"}, map[string]any{"name": "gang"}, map[string]any{"name": "conformance"}, cohorts}
	second := []any{map[string]any{"name": "predicates"}, map[string]any{"name": "nodeorder"}}
	text, err := yaml.Marshal(map[string]any{
		"actions": "enqueue, admit, allocate, preempt, reclaim, backfill",
		"tiers":   []any{map[string]any{"plugins": plugins}, map[string]any{"plugins": second}},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "volcano-system", Name: "volcano-scheduler-configmap"},
		Data:       map[string]string{"volcano-scheduler.conf": string(text)},
	}, nil
}
