package session

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/bounds"
)

// Number is a count as a cell of a table.
func Number(n int32) string { return strconv.Itoa(int(n)) }

// LabelOption is the option of a list that has only what a label selector selects.
func LabelOption(text string) ([]client.ListOption, error) {
	if text == "" {
		return nil, nil
	}
	selector, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		return nil, fmt.Errorf("-l %s: %w", text, err)
	}
	labels, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("-l %s: %w", text, err)
	}
	return []client.ListOption{client.MatchingLabelsSelector{Selector: labels}}, nil
}

// BusCommand asks the controllers for an action on an object. It goes with the object.
func (s *Session) BusCommand(target client.Object, namespace string, action bus.Action) (*bus.Command, error) {
	if err := SetKinds(s.Scheme, target); err != nil {
		return nil, err
	}
	owner := metav1.NewControllerRef(target, target.GetObjectKind().GroupVersionKind())
	return &bus.Command{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: target.GetName() + "-" + strings.ToLower(string(action)) + "-", Namespace: namespace,
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		TargetObject: owner, Action: string(action), Reason: "CommandLine",
	}, nil
}

// ParseResources reads cpu=1,memory=1Gi.
func ParseResources(flag, text string) (corev1.ResourceList, error) {
	if text == "" {
		return nil, nil
	}
	list := corev1.ResourceList{}
	for part := range strings.SplitSeq(text, ",") {
		name, amount, ok := strings.Cut(part, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%s=%s: %q is not of the form RESOURCE=AMOUNT, such as cpu=2", flag, text, part)
		}
		quantity, err := bounds.ParseQuantity(amount)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %q is not an amount, such as 500m, 2 or 4Gi", flag, text, amount)
		}
		if quantity.Sign() < 0 {
			return nil, fmt.Errorf("%s=%s: %s is negative", flag, text, amount)
		}
		if _, isThere := list[corev1.ResourceName(name)]; isThere {
			return nil, fmt.Errorf("%s=%s: %s is there twice", flag, text, name)
		}
		list[corev1.ResourceName(name)] = quantity
	}
	return list, nil
}

// Pairs writes labels or annotations in one line.
func Pairs(all map[string]string) string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if key != corev1.LastAppliedConfigAnnotation {
			texts = append(texts, key+"="+all[key])
		}
	}
	return cmp.Or(strings.Join(texts, ","), "<none>")
}

// Amounts writes resources in one word: cpu and memory first.
func Amounts(list corev1.ResourceList) string {
	rank := map[corev1.ResourceName]int{corev1.ResourceCPU: -2, corev1.ResourceMemory: -1}
	names := slices.SortedFunc(maps.Keys(list), func(a, b corev1.ResourceName) int {
		return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(a, b))
	})
	var texts []string
	for _, name := range names {
		amount := list[name]
		texts = append(texts, string(name)+"="+amount.String())
	}
	return OrNone(strings.Join(texts, ","))
}

// OrNone is a text, or what stands for an empty one in a table.
func OrNone(text string) string {
	if text == "" {
		return None
	}
	return text
}

func humanDuration(since time.Duration) string { return duration.HumanDuration(since) }

// Age says how long ago something was.
func Age(at metav1.Time) string {
	if at.IsZero() {
		return None
	}
	return humanDuration(time.Since(at.Time))
}
