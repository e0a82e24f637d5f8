package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"

	"hekla.sh/hekla/pkg/apis/bounds"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// configuration is the file of --admission-conf, as Volcano reads it.
type configuration struct {
	ResourceGroups []resourceGroup `json:"resourceGroups"`
}

// resourceGroup is a set of nodes, and which pods go there.
type resourceGroup struct {
	// Name is what a pod asks for by the annotation volcano.sh/resource-group, if Object has no key.
	Name string `json:"resourceGroup"`

	// Object says by what else a pod belongs to the group: by its namespace or by an annotation.
	Object groupObject `json:"object"`

	// SchedulerName is the scheduler of the group; empty leaves that of the pod.
	SchedulerName string `json:"schedulerName"`

	// Tolerations are added to those of the pod.
	Tolerations []corev1.Toleration `json:"tolerations"`

	// Labels are those of the nodes, which the pod then selects.
	Labels map[string]string `json:"labels"`

	// Affinity, in JSON or YAML, is given to pods that have none.
	Affinity string `json:"affinity"`

	affinity    *corev1.Affinity
	namespaces  []string
	annotations map[string][]string
}

type groupObject struct {
	// Key is namespace, annotation, or empty for an annotation as well.
	Key string `json:"key"`

	// Value is namespaces, or annotations, each as "key: value".
	Value []string `json:"value"`
}

// readGroups reads the resource groups from a file; there are none in no file, and none in one that is not there: its
// ConfigMap is optional. It returns what the file holds, too.
func readGroups(file string) ([]resourceGroup, []byte, error) {
	if file == "" {
		return nil, nil, nil
	}
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the resource groups: %w", err)
	}
	groups, err := parseGroups(content)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	return groups, content, nil
}

func parseGroups(content []byte) ([]resourceGroup, error) {
	var parsed configuration
	if err := bounds.UnmarshalStrictYAML(content, &parsed); err != nil {
		return nil, err
	}
	for i := range parsed.ResourceGroups {
		if err := parsed.ResourceGroups[i].read(); err != nil {
			return nil, fmt.Errorf("resourceGroups[%d] (%s): %w", i, parsed.ResourceGroups[i].Name, err)
		}
	}
	return parsed.ResourceGroups, nil
}

// read works out what is written as text.
func (g *resourceGroup) read() error {
	if g.Affinity != "" {
		g.affinity = &corev1.Affinity{}
		if err := bounds.UnmarshalStrictYAML([]byte(g.Affinity), g.affinity); err != nil {
			return fmt.Errorf("affinity: %w", err)
		}
	}
	g.annotations = map[string][]string{}
	switch g.Object.Key {
	case "namespace":
		for _, name := range g.Object.Value {
			if messages := validation.IsDNS1123Label(name); len(messages) > 0 {
				return fmt.Errorf("object.value: %q is no name of a namespace: %s", name, messages[0])
			}
		}
		g.namespaces = g.Object.Value
		return nil
	case "annotation", "":
	default:
		return fmt.Errorf("object.key: %q is neither namespace nor annotation", g.Object.Key)
	}
	for _, text := range g.Object.Value {
		var pairs map[string]string
		if err := bounds.UnmarshalStrictYAML([]byte(text), &pairs); err != nil || len(pairs) == 0 {
			return fmt.Errorf("object.value: %q is no annotation; write it as %q", text, "key: value")
		}
		for key, value := range pairs {
			if messages := validation.IsQualifiedName(strings.ToLower(key)); len(messages) > 0 {
				return fmt.Errorf("object.value: %q is no key of an annotation: %s", key, messages[0])
			}
			g.annotations[key] = append(g.annotations[key], value)
		}
	}
	if g.Object.Key == "" && g.Name != "" {
		g.annotations[scheduling.ResourceGroupKey] = append(g.annotations[scheduling.ResourceGroupKey], g.Name)
	}
	return nil
}

// has reports whether the pod belongs to the group.
func (g *resourceGroup) has(pod *corev1.Pod) bool {
	if slices.Contains(g.namespaces, pod.Namespace) {
		return true
	}
	for key, values := range g.annotations {
		if value, is := pod.Annotations[key]; is && slices.Contains(values, value) {
			return true
		}
	}
	return false
}

// place sends the pod to the nodes of the group. Doing so twice changes nothing the second time.
func (g *resourceGroup) place(pod *corev1.Pod) {
	if len(g.Labels) > 0 {
		selector := maps.Clone(g.Labels)
		for key, value := range pod.Spec.NodeSelector {
			if _, isOurs := selector[key]; !isOurs {
				selector[key] = value
			}
		}
		pod.Spec.NodeSelector = selector
	}
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = g.affinity.DeepCopy()
	}
	for _, toleration := range g.Tolerations {
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return apiequality.Semantic.DeepEqual(t, toleration) }) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, *toleration.DeepCopy())
		}
	}
	if g.SchedulerName != "" {
		pod.Spec.SchedulerName = g.SchedulerName
	}
}

// inResourceGroupOrGated sends the pods that belong to a resource group, those of ours that ask for the gate of queue
// admission, and no others.
func inResourceGroupOrGated(s *settings) ([]admissionregistrationv1.MatchCondition, bool) {
	var belongs []string
	for i := range s.groups {
		group := &s.groups[i]
		if len(group.namespaces) > 0 {
			belongs = append(belongs, "request.namespace in "+literals(group.namespaces))
		}
		for _, key := range sortedKeys(group.annotations) {
			belongs = append(belongs, fmt.Sprintf("object.metadata.?annotations.orValue({}).exists(key, key == %s && object.metadata.annotations[key] in %s)",
				literal(key), literals(group.annotations[key])))
		}
	}
	if s.gatesPods {
		belongs = append(belongs, fmt.Sprintf("object.spec.?schedulerName.orValue('') in %s && object.metadata.?annotations[%s].orValue('') == 'true'",
			literals(s.schedulerNames), literal(scheduling.QueueAllocationGateKey)))
	}
	if len(belongs) == 0 {
		return nil, false
	}
	return []admissionregistrationv1.MatchCondition{{Name: "may-be-changed", Expression: strings.Join(belongs, " || ")}}, true
}

// literal writes a text as CEL reads it.
func literal(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // texts have a form in JSON
	}
	return string(quoted)
}

func literals(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = literal(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
