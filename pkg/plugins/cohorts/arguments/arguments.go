package arguments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hekla.sh/hekla/pkg/conf"
)

// Arguments are those of the plugin cohorts.
type Arguments struct {
	// FairSharing says that shares decide who is admitted and preempted in a cohort.
	FairSharing bool `json:"fairSharing"`
	// PreemptionStrategies are those of fair sharing, in the order in which they are tried.
	PreemptionStrategies        []string         `json:"preemptionStrategies"`
	PrioritySortingWithinCohort bool             `json:"prioritySortingWithinCohort"`
	WaitForPodsReady            WaitForPodsReady `json:"waitForPodsReady"`
	Resources                   Resources        `json:"resources"`
	ObjectRetentionPolicies     struct {
		Workloads Retention `json:"workloads"`
	} `json:"objectRetentionPolicies"`
	// MaxRounds bounds how many heads of one queue a cycle decides about, 0 if nothing does.
	MaxRounds int `json:"maxRounds"`
	// ManageJobsWithoutQueueName says that Jobs which name no LocalQueue wait until they name one.
	ManageJobsWithoutQueueName bool `json:"manageJobsWithoutQueueName"`
	// ManagedJobsNamespaceSelector selects the namespaces in which they do, and in which a LocalQueue default takes
	// them.
	ManagedJobsNamespaceSelector *metav1.LabelSelector `json:"managedJobsNamespaceSelector"`
	Integrations                 Integrations          `json:"integrations"`
}

// Integrations says whose jobs follow Workloads.
type Integrations struct {
	// ExternalFrameworks are kinds, each as Kind.version.group, whose own controllers make Workloads, and start and
	// stop their jobs by them.
	ExternalFrameworks []string `json:"externalFrameworks"`
}

// WaitForPodsReady says what becomes of Workloads whose pods are not ready.
type WaitForPodsReady struct {
	Enable          bool             `json:"enable"`
	Timeout         *metav1.Duration `json:"timeout"`
	RecoveryTimeout *metav1.Duration `json:"recoveryTimeout"`
	// BlockAdmission says that no Workload is admitted while the pods of another are not ready.
	BlockAdmission    bool `json:"blockAdmission"`
	RequeuingStrategy struct {
		Timestamp          string `json:"timestamp"`
		BackoffLimitCount  *int32 `json:"backoffLimitCount"`
		BackoffBaseSeconds *int32 `json:"backoffBaseSeconds"`
		BackoffMaxSeconds  *int32 `json:"backoffMaxSeconds"`
	} `json:"requeuingStrategy"`
}

// Resources says which requests count for quotas.
type Resources struct {
	QuotaCheckStrategy      string           `json:"quotaCheckStrategy"`
	ExcludeResourcePrefixes []string         `json:"excludeResourcePrefixes"`
	Transformations         []Transformation `json:"transformations"`
}

// Transformation replaces a requested resource by others, or adds others to it.
type Transformation struct {
	Input      corev1.ResourceName `json:"input"`
	Strategy   string              `json:"strategy"`
	MultiplyBy corev1.ResourceName `json:"multiplyBy"`
	Outputs    corev1.ResourceList `json:"outputs"`
}

// Retention is how long Workloads are kept, nil for ever.
type Retention struct {
	AfterFinished           *metav1.Duration `json:"afterFinished"`
	AfterDeactivatedByKueue *metav1.Duration `json:"afterDeactivatedByKueue"`
}

// The values of arguments that are one of a few.
const (
	LessThanOrEqualToFinalShare = "LessThanOrEqualToFinalShare"
	LessThanInitialShare        = "LessThanInitialShare"
	BlockUndeclared             = "BlockUndeclared"
	IgnoreUndeclared            = "IgnoreUndeclared"
	EvictionTimestamp           = "Eviction"
	CreationTimestamp           = "Creation"
	Retain                      = "Retain"
	Replace                     = "Replace"
)

// The defaults of Kueue.
const (
	defaultTimeout = 30 * time.Minute
	defaultBase    = int32(60)
	defaultMax     = int32(3600)
)

// Namespaces selects the namespaces in which Jobs that name no LocalQueue are managed: all but those of the system if
// none are selected.
func (a *Arguments) Namespaces() (labels.Selector, error) {
	selector := a.ManagedJobsNamespaceSelector
	if selector == nil {
		selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: corev1.LabelMetadataName,
			Operator: metav1.LabelSelectorOpNotIn, Values: []string{metav1.NamespaceSystem, "kueue-system", "volcano-system"}}}}
	}
	read, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("managedJobsNamespaceSelector: %w", err)
	}
	return read, nil
}

// External are the kinds of integrations.externalFrameworks.
func (a *Arguments) External() (kinds []schema.GroupVersionKind, err error) {
	for _, name := range a.Integrations.ExternalFrameworks {
		kind, _ := schema.ParseKindArg(name)
		if kind == nil {
			return nil, fmt.Errorf("integrations.externalFrameworks: %q is not of the form Kind.version.group", name)
		}
		if slices.Contains(kinds, *kind) {
			return nil, fmt.Errorf("integrations.externalFrameworks: %q stands there twice", name)
		}
		kinds = append(kinds, *kind)
	}
	return kinds, nil
}

// Schema declares the arguments.
func Schema() []conf.Argument {
	nested := func(name string) conf.Argument {
		return conf.Argument{Name: name, Kind: conf.Any, Check: func(value any) error {
			_, err := decode(map[string]any{name: value}, true)
			return err
		}, Doc: "as in Kueue's Configuration"}
	}
	return []conf.Argument{
		{Name: "fairSharing", Kind: conf.Bool, Default: false, Doc: "whether shares decide who is admitted and preempted in a cohort"},
		nested("preemptionStrategies"),
		{Name: "prioritySortingWithinCohort", Kind: conf.Bool, Default: true, Doc: "whether priority counts between the heads of a cohort"},
		{Name: "manageJobsWithoutQueueName", Kind: conf.Bool, Default: false, Doc: "whether Jobs that name no LocalQueue wait until they name one"},
		nested("managedJobsNamespaceSelector"),
		nested("integrations"),
		nested("waitForPodsReady"),
		nested("resources"),
		nested("objectRetentionPolicies"),
		{Name: "maxRounds", Kind: conf.Int, Default: 0, Doc: "how many Workloads of one ClusterQueue a cycle decides about at most; 0 sets no limit", Check: func(value any) error {
			if value.(int) < 0 {
				return errors.New("at least 0")
			}
			return nil
		}},
	}
}

// Of reads the arguments of a configuration, which were checked by the schema.
func Of(given conf.Arguments) (Arguments, error) {
	all := map[string]any{}
	for _, declared := range Schema() {
		if !given.Has(declared.Name) {
			continue
		}
		switch declared.Kind {
		case conf.Bool:
			all[declared.Name] = given.Bool(declared.Name)
		case conf.Int:
			all[declared.Name] = given.Int(declared.Name)
		default:
			all[declared.Name] = given.Any(declared.Name)
		}
	}
	return decode(all, true)
}

// Decode reads the arguments as JSON, for programs other than the scheduler. Keys and values that are not known are
// passed over: the scheduler refuses them.
func Decode(text []byte) (Arguments, error) {
	if len(text) == 0 {
		text = []byte("{}")
	}
	return read(text, false)
}

func decode(values map[string]any, isStrict bool) (Arguments, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return Arguments{}, err
	}
	return read(text, isStrict)
}

func read(text []byte, isStrict bool) (Arguments, error) {
	a := Arguments{PrioritySortingWithinCohort: true}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if isStrict {
		decoder.DisallowUnknownFields()
	}
	if err := decoder.Decode(&a); err != nil {
		return Arguments{}, fmt.Errorf("as Kueue's Configuration has it: %w", err)
	}
	a.complete()
	if !isStrict {
		return a, nil
	}
	return a, a.check()
}

// complete sets the defaults.
func (a *Arguments) complete() {
	if len(a.PreemptionStrategies) == 0 {
		a.PreemptionStrategies = []string{LessThanOrEqualToFinalShare, LessThanInitialShare}
	}
	if a.Resources.QuotaCheckStrategy == "" {
		a.Resources.QuotaCheckStrategy = BlockUndeclared
	}
	w := &a.WaitForPodsReady
	if w.Timeout == nil {
		w.Timeout = &metav1.Duration{Duration: defaultTimeout}
	}
	if w.RecoveryTimeout == nil {
		w.RecoveryTimeout = w.Timeout
	}
	r := &w.RequeuingStrategy
	if r.Timestamp == "" {
		r.Timestamp = EvictionTimestamp
	}
	if base := defaultBase; r.BackoffBaseSeconds == nil {
		r.BackoffBaseSeconds = &base
	}
	if most := defaultMax; r.BackoffMaxSeconds == nil {
		r.BackoffMaxSeconds = &most
	}
	for i := range a.Resources.Transformations {
		if t := &a.Resources.Transformations[i]; t.Strategy == "" {
			t.Strategy = Retain
		}
	}
}

// check refuses values that are none of a few. The error names the key and the value.
func (a *Arguments) check() error {
	for _, s := range a.PreemptionStrategies {
		if err := oneOf("preemptionStrategies", s, LessThanOrEqualToFinalShare, LessThanInitialShare); err != nil {
			return err
		}
	}
	if err := oneOf("resources.quotaCheckStrategy", a.Resources.QuotaCheckStrategy, BlockUndeclared, IgnoreUndeclared); err != nil {
		return err
	}
	for i := range a.Resources.Transformations {
		if err := oneOf("resources.transformations.strategy", a.Resources.Transformations[i].Strategy, Retain, Replace); err != nil {
			return err
		}
	}
	if _, err := a.Namespaces(); err != nil {
		return err
	}
	if _, err := a.External(); err != nil {
		return err
	}
	return oneOf("waitForPodsReady.requeuingStrategy.timestamp", a.WaitForPodsReady.RequeuingStrategy.Timestamp, EvictionTimestamp, CreationTimestamp)
}

func oneOf(key, value string, values ...string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return fmt.Errorf("for %s one of %q, and not %q", key, values, value)
}
