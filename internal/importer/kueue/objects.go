package kueue

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hekla.sh/hekla/internal/importer/source"
	"hekla.sh/hekla/pkg/apis/bounds"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Unmanaged is the key of what is lost of objects that name a LocalQueue and would run without one.
const Unmanaged = "unmanaged"

// managed are the kinds of which Workloads are made by the label of the object itself.
var managed = []schema.GroupKind{{Group: "batch", Kind: "Job"}, {Kind: "Pod"}, {Group: "batch.volcano.sh", Kind: "Job"}}

// workloads are what Kueue has made.
var workloads = v1beta2.GroupVersion.WithKind("Workload").GroupKind()

// ReadObjects reads a text of objects as kubectl prints them, in several documents or as a list. An error names the
// document.
func ReadObjects(text io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for document, err := range bounds.Documents(text) {
		if err != nil {
			return nil, err
		}
		if objects, err = readDocument(objects, document.JSON); err != nil {
			return nil, document.Problem(err)
		}
	}
	return objects, nil
}

func readDocument(into []*unstructured.Unstructured, text []byte) ([]*unstructured.Unstructured, error) {
	var fields map[string]any
	if err := bounds.UnmarshalJSON(text, &fields); err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return into, nil
	}
	object := &unstructured.Unstructured{Object: fields}
	switch {
	case object.GetKind() == "":
		return nil, errors.New("it has no kind")
	case !object.IsList():
		return append(into, object), nil
	}
	err := object.EachListItem(func(item runtime.Object) error {
		if one, is := item.(*unstructured.Unstructured); is {
			into = append(into, one)
		}
		return nil
	})
	return into, err
}

// objects says of each object that names a LocalQueue whether it is queued. In Kueue the label of such an object queues
// it, or its pods.
func (i *importer) objects(objects []*unstructured.Unstructured) {
	leftOver := map[string]int{}
	for _, object := range objects {
		if object.GroupVersionKind().GroupKind() == workloads {
			if owner := settings.NotStarted(object, i.followed); owner != nil {
				leftOver[owner.APIVersion+" "+owner.Kind]++
			}
			continue
		}
		queue := object.GetLabels()[v1beta2.QueueNameLabel]
		if queue == "" || slices.Contains(managed, object.GroupVersionKind().GroupKind()) || isMade(object) {
			continue
		}
		f := source.Field{Path: fmt.Sprintf("%s/%s/%s", object.GetKind(), object.GetNamespace(), object.GetName()), Text: queue}
		templates, without := 0, []string(nil)
		eachTemplate(object.Object, "", func(path string, template map[string]any) {
			templates++
			if label, _, _ := unstructured.NestedString(template, "metadata", "labels", v1beta2.QueueNameLabel); label == "" {
				without = append(without, path)
			}
		})
		switch {
		case templates == 0:
			i.Lose(Unmanaged, f, "no Workload is made of this kind, and it would run unmanaged; it has no pod template for the label %s", v1beta2.QueueNameLabel)
		case len(without) > 0:
			i.Lose(Unmanaged, f, "no Workload is made of this kind, and its pods would run unmanaged; put the label %s on %s", v1beta2.QueueNameLabel, strings.Join(without, ", "))
		default:
			i.Keep(f, "its pods are queued, as their templates have the label")
		}
	}
	i.countLeftOver(leftOver)
}

// countLeftOver says how many Workloads would be admitted to no effect.
func (i *importer) countLeftOver(byKind map[string]int) {
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		i.Change(source.Field{Path: "Workloads of " + kind, Text: strconv.Itoa(byKind[kind])},
			"they hold no quota and are not admitted, since no controller would start their jobs; what of these jobs runs is not charged")
	}
}

// isMade reports whether an object is a part of another, which says how it is queued.
func isMade(object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller })
}

// isTemplate reports whether a mapping is a pod template: its spec has containers.
func isTemplate(fields map[string]any) bool {
	containers, found, err := unstructured.NestedSlice(fields, "spec", "containers")
	return err == nil && found && len(containers) > 0
}

// eachTemplate visits the pod templates below a value, in the order of their paths.
func eachTemplate(value any, path string, visit func(path string, template map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		if path != "" && isTemplate(value) {
			visit(path, value)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			below := name
			if path != "" {
				below = path + "." + name
			}
			eachTemplate(value[name], below, visit)
		}
	case []any:
		for n, element := range value {
			eachTemplate(element, fmt.Sprintf("%s[%d]", path, n), visit)
		}
	}
}
