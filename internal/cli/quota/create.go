package quota

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/cli/session"
	"hekla.sh/hekla/pkg/apis/bounds"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/apis/kueue/validation"
)

// queueFlags describe a ClusterQueue without a manifest.
type queueFlags struct {
	cohort, strategy, reclaim, within string
	namespaces                        map[string]string
	nominal, borrowing, lending       []string
}

func newCreateClusterQueue(s *session.Session) *cobra.Command {
	var f queueFlags
	command := &cobra.Command{
		Use: "clusterqueue NAME", Aliases: aliases["clusterqueue"], Short: "Create a ClusterQueue", Args: cobra.ExactArgs(1),
		Example: "  " + s.Program + ` create clusterqueue team-a --cohort research --nominal-quota "default:cpu=9;memory=36Gi" --borrowing-limit "default:cpu=4"`,
		RunE: func(command *cobra.Command, names []string) error {
			q, err := f.queue(names[0], command.Flags().Changed("namespace-selector"))
			if err != nil {
				return err
			}
			return s.Create(command.Context(), q, fmt.Sprintf("create clusterqueue %s successfully", q.Name))
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.cohort, "cohort", "", "the Cohort with which it shares quota")
	flags.StringVar(&f.strategy, "queuing-strategy", string(v1beta2.BestEffortFIFO), "StrictFIFO or BestEffortFIFO")
	flags.StringToStringVar(&f.namespaces, "namespace-selector", nil, "labels of the namespaces whose workloads it admits; without it all namespaces")
	flags.StringVar(&f.reclaim, "reclaim-within-cohort", "", "Never, LowerPriority or Any: which workloads of other queues it may evict")
	flags.StringVar(&f.within, "preemption-within-cluster-queue", "", "Never, LowerPriority or LowerOrNewerEqualPriority: which of its own it may evict")
	flags.StringSliceVar(&f.nominal, "nominal-quota", nil, `quota by flavor and resource, such as "spot:cpu=9;memory=36Gi"`)
	flags.StringSliceVar(&f.borrowing, "borrowing-limit", nil, "how much more it may borrow, in the same form")
	flags.StringSliceVar(&f.lending, "lending-limit", nil, "how much of its quota others may borrow, in the same form")
	s.AddDryRunFlag(command)
	s.AddOutputFlag(command, "")
	return command
}

func (f *queueFlags) queue(name string, selects bool) (*v1beta2.ClusterQueue, error) {
	q := &v1beta2.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta2.ClusterQueueSpec{
		CohortName: f.cohort, QueueingStrategy: v1beta2.QueueingStrategy(f.strategy), NamespaceSelector: &metav1.LabelSelector{},
	}}
	if selects {
		q.Spec.NamespaceSelector.MatchLabels = f.namespaces
	}
	if f.reclaim != "" || f.within != "" {
		q.Spec.Preemption = &v1beta2.ClusterQueuePreemption{ReclaimWithinCohort: v1beta2.PreemptionPolicy(f.reclaim), WithinClusterQueue: v1beta2.PreemptionPolicy(f.within)}
	}
	groups, err := f.groups()
	if err != nil {
		return nil, err
	}
	q.Spec.ResourceGroups = groups
	return q, wrong("clusterqueue", q, validation.ClusterQueue(q))
}

// wrong is an error that says what is wrong with an object, nil if nothing is.
func wrong(kind string, object client.Object, problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%s %s: %w", kind, object.GetName(), bounds.Told(problems).ToAggregate())
}

// amount is what a flag says of one resource of a flavor.
type amount struct {
	flavor, resource string
	quantity         resource.Quantity
}

// parse reads FLAVOR:RESOURCE=QUANTITY;RESOURCE=QUANTITY, as often as it is given.
func parse(flag string, texts []string) ([]amount, error) {
	var all []amount
	for _, text := range texts {
		flavor, list, is := strings.Cut(text, ":")
		if !is || flavor == "" || list == "" {
			return nil, fmt.Errorf("--%s=%s: it must be FLAVOR:RESOURCE=QUANTITY, and further resources behind semicolons", flag, text)
		}
		for _, pair := range strings.Split(list, ";") {
			name, value, is := strings.Cut(pair, "=")
			quantity, err := bounds.ParseQuantity(value)
			if !is || name == "" || err != nil {
				return nil, fmt.Errorf("--%s=%s: %q is not RESOURCE=QUANTITY", flag, text, pair)
			}
			all = append(all, amount{strings.TrimSpace(flavor), strings.TrimSpace(name), quantity})
		}
	}
	return all, nil
}

// groups puts the flavors that offer the same resources into one group, in the order in which they are named.
func (f *queueFlags) groups() ([]v1beta2.ResourceGroup, error) {
	nominal, err := parse("nominal-quota", f.nominal)
	if err != nil {
		return nil, err
	}
	borrowing, err := parse("borrowing-limit", f.borrowing)
	if err != nil {
		return nil, err
	}
	lending, err := parse("lending-limit", f.lending)
	if err != nil {
		return nil, err
	}
	var flavors []v1beta2.FlavorQuotas
	at := func(a amount) *v1beta2.ResourceQuota {
		for i := range flavors {
			for j := range flavors[i].Resources {
				if flavors[i].Name == a.flavor && string(flavors[i].Resources[j].Name) == a.resource {
					return &flavors[i].Resources[j]
				}
			}
		}
		return nil
	}
	for _, a := range nominal {
		i := slices.IndexFunc(flavors, func(q v1beta2.FlavorQuotas) bool { return q.Name == a.flavor })
		if i < 0 {
			i, flavors = len(flavors), append(flavors, v1beta2.FlavorQuotas{Name: a.flavor})
		}
		if at(a) != nil {
			return nil, fmt.Errorf("--nominal-quota: flavor %s has two quotas of %s", a.flavor, a.resource)
		}
		flavors[i].Resources = append(flavors[i].Resources, v1beta2.ResourceQuota{Name: corev1.ResourceName(a.resource), NominalQuota: a.quantity})
	}
	limit := func(flag string, of []amount, set func(*v1beta2.ResourceQuota, *resource.Quantity)) error {
		for _, a := range of {
			quota := at(a)
			if quota == nil {
				return fmt.Errorf("--%s: flavor %s has no --nominal-quota of %s", flag, a.flavor, a.resource)
			}
			set(quota, &a.quantity)
		}
		return nil
	}
	if err := errors.Join(
		limit("borrowing-limit", borrowing, func(q *v1beta2.ResourceQuota, to *resource.Quantity) { q.BorrowingLimit = to }),
		limit("lending-limit", lending, func(q *v1beta2.ResourceQuota, to *resource.Quantity) { q.LendingLimit = to }),
	); err != nil {
		return nil, err
	}
	var groups []v1beta2.ResourceGroup
	for _, flavor := range flavors {
		var covered []corev1.ResourceName
		for _, r := range flavor.Resources {
			covered = append(covered, r.Name)
		}
		if i := slices.IndexFunc(groups, func(g v1beta2.ResourceGroup) bool { return slices.Equal(g.CoveredResources, covered) }); i >= 0 {
			groups[i].Flavors = append(groups[i].Flavors, flavor)
		} else {
			groups = append(groups, v1beta2.ResourceGroup{CoveredResources: covered, Flavors: []v1beta2.FlavorQuotas{flavor}})
		}
	}
	return groups, nil
}

func newCreateLocalQueue(s *session.Session) *cobra.Command {
	var clusterQueue string
	var ignoresUnknown bool
	command := &cobra.Command{
		Use: "localqueue NAME --clusterqueue=CLUSTERQUEUE", Aliases: aliases["localqueue"], Short: "Create a LocalQueue", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			if clusterQueue == "" {
				return errors.New("a localqueue needs a ClusterQueue; name it by --clusterqueue")
			}
			namespace, err := s.Namespace()
			if err != nil {
				return err
			}
			q := &v1beta2.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names[0]}, Spec: v1beta2.LocalQueueSpec{ClusterQueue: clusterQueue}}
			return s.Write(q, fmt.Sprintf("create localqueue %s successfully", q.Name), func(api client.Client) error {
				if !ignoresUnknown {
					if err := api.Get(command.Context(), client.ObjectKey{Name: clusterQueue}, &v1beta2.ClusterQueue{}); err != nil {
						return err
					}
				}
				return api.Create(command.Context(), q)
			})
		},
	}
	s.AddNamespaceFlag(command, session.VcctlShorthands)
	command.Flags().StringVarP(&clusterQueue, "clusterqueue", "c", "", "the ClusterQueue that it stands for")
	command.Flags().BoolVarP(&ignoresUnknown, "ignore-unknown-cq", "i", false, "create it although there is no such ClusterQueue")
	s.AddDryRunFlag(command)
	s.AddOutputFlag(command, "")
	return command
}

func newCreateFlavor(s *session.Session) *cobra.Command {
	var nodeLabels map[string]string
	var taints, tolerations []string
	command := &cobra.Command{
		Use: "resourceflavor NAME", Aliases: aliases["resourceflavor"], Short: "Create a ResourceFlavor", Args: cobra.ExactArgs(1),
		Example: "  " + s.Program + " create resourceflavor spot --node-labels instance-type=spot --node-taints spot=true:NoSchedule --tolerations spot:NoSchedule",
		RunE: func(command *cobra.Command, names []string) error {
			f := &v1beta2.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: names[0]}, Spec: v1beta2.ResourceFlavorSpec{NodeLabels: nodeLabels}}
			for _, text := range taints {
				key, value, effect, _ := effectOf(text)
				if effect == "" {
					return fmt.Errorf("--node-taints=%s: it must be KEY=VALUE:EFFECT or KEY:EFFECT", text)
				}
				f.Spec.NodeTaints = append(f.Spec.NodeTaints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
			}
			for _, text := range tolerations {
				key, value, effect, hasValue := effectOf(text)
				t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(effect)}
				if hasValue {
					t.Operator, t.Value = corev1.TolerationOpEqual, value
				}
				f.Spec.Tolerations = append(f.Spec.Tolerations, t)
			}
			if err := wrong("resourceflavor", f, validation.ResourceFlavor(f)); err != nil {
				return err
			}
			return s.Create(command.Context(), f, fmt.Sprintf("create resourceflavor %s successfully", f.Name))
		},
	}
	command.Flags().StringToStringVar(&nodeLabels, "node-labels", nil, "labels of its nodes")
	command.Flags().StringSliceVar(&taints, "node-taints", nil, "taints of its nodes: KEY=VALUE:EFFECT or KEY:EFFECT")
	command.Flags().StringSliceVar(&tolerations, "tolerations", nil, "tolerations that its pods get: KEY=VALUE:EFFECT, KEY:EFFECT, KEY=VALUE or KEY")
	s.AddDryRunFlag(command)
	s.AddOutputFlag(command, "")
	return command
}

// effectOf splits KEY=VALUE:EFFECT.
func effectOf(text string) (key, value, effect string, hasValue bool) {
	text, effect, _ = strings.Cut(text, ":")
	key, value, hasValue = strings.Cut(text, "=")
	return key, value, effect, hasValue
}
