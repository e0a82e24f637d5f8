package yunikorn

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/importer/source"
	"hekla.sh/hekla/pkg/apis/bounds"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
)

const queueNameKey = scheduling.QueueNameAnnotationKey

// fill sets what a queue that was made may hold: what its Namespace says, else what the nearest template says.
func (i *importer) fill(q *queue, namespace *corev1.Namespace) {
	if t := q.above.nearestTemplate(); t != nil {
		i.used[t] = true
		q.guaranteed, q.max, q.settings = t.guaranteed, t.max, t.settings
	}
	if namespace == nil {
		return
	}
	if guaranteed := i.quantities(namespace, yunikorn.NamespaceGuaranteedKey); guaranteed != nil {
		q.guaranteed = guaranteed
	}
	if max := i.quotaOf(namespace); max != nil {
		q.max = i.withinAbove(q, max)
	}
	if text, isSet := namespace.Annotations[yunikorn.NamespaceMaxAppsKey]; isSet {
		q.applications = namespaceField(namespace, yunikorn.NamespaceMaxAppsKey, text)
		readNumber(i.Report, q.applications)
		i.Keep(q.applications, "annotation %s of Queue %s", scheduling.MaxApplicationsKey, q.title)
	}
}

// withinAbove lowers what a queue may hold to what those above it may hold, because no Queue may have a larger
// capability.
func (i *importer) withinAbove(q *queue, max []source.Entry) []source.Entry {
	quiet := &source.Report{} // what cannot be read is a problem where it is checked
	if isZero(readAmounts(quiet, max)) {
		return max
	}
	bound := corev1.ResourceList{}
	for above := q.above; above != nil; above = above.above {
		if list := readAmounts(quiet, above.max); !isZero(list) {
			bound = lowest(bound, list)
		}
	}
	max = slices.Clone(max)
	for at, e := range max {
		name, has, limit, found := exceeding(readAmounts(quiet, []source.Entry{e}), bound)
		if found {
			max[at].Text = limit.String()
			i.Change(e.Field, "%s %s lowered to the %s that the queues above may hold", name, has.String(), limit.String())
		}
	}
	return max
}

// quotaOf returns the most that the queue of a Namespace may hold, nil if it does not say.
func (i *importer) quotaOf(namespace *corev1.Namespace) []source.Entry {
	var old []source.Entry
	for _, at := range []struct{ key, resource string }{{yunikorn.NamespaceMaxCPUKey, vcore}, {yunikorn.NamespaceMaxMemoryKey, "memory"}} {
		if text, isSet := namespace.Annotations[at.key]; isSet {
			old = append(old, source.Entry{Key: at.resource, Field: namespaceField(namespace, at.key, text)})
		}
	}
	max := i.quantities(namespace, yunikorn.NamespaceQuotaKey)
	for _, e := range old {
		if max == nil {
			i.Keep(e.Field, "spec.capability[%s] of its Queue", resourceName(e.Key))
		} else {
			i.Keep(e.Field, "%s counts before it, as in YuniKorn", yunikorn.NamespaceQuotaKey)
		}
	}
	if max == nil {
		return old
	}
	return max
}

// quantities reads an annotation of a Namespace, a JSON object of quantities. It is nil if the annotation is not there.
func (i *importer) quantities(namespace *corev1.Namespace, key string) []source.Entry {
	text, isSet := namespace.Annotations[key]
	if !isSet {
		return nil
	}
	at := namespaceField(namespace, key, text)
	var values map[string]any
	if err := bounds.UnmarshalJSON([]byte(text), &values); err != nil || values == nil {
		i.Refuse(at, "is %q, allowed is a JSON object of quantities, such as {\"cpu\": \"64\", \"memory\": \"100G\"}", source.Shorten(text))
		return nil
	}
	entries := []source.Entry{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		quantity, isText := values[name].(string)
		if !isText {
			number, err := json.Marshal(values[name])
			if _, isNumber := values[name].(float64); err != nil || !isNumber {
				i.Refuse(at, "%s is no quantity", name)
				continue
			}
			quantity = string(number)
		}
		e := source.Entry{Key: name, Field: at}
		e.Text = quantity
		entries = append(entries, e)
	}
	what := "spec.capability"
	if key == yunikorn.NamespaceGuaranteedKey {
		what = "spec.guarantee.resource"
	}
	i.Keep(at, "%s of its Queue", what)
	return entries
}

// sayUnused says of each annotation of a Namespace that no rule has read what became of it.
func (i *importer) sayUnused() {
	keys := []string{yunikorn.ParentQueueKey, yunikorn.NamespaceQuotaKey, yunikorn.NamespaceGuaranteedKey, yunikorn.NamespaceMaxAppsKey,
		yunikorn.NamespaceMaxCPUKey, yunikorn.NamespaceMaxMemoryKey}
	for _, namespace := range i.namespaces {
		for _, key := range keys {
			text, isSet := namespace.Annotations[key]
			at := namespaceField(namespace, key, text)
			isSaid := i.Has(at.Path)
			if !isSet || isSaid {
				continue
			}
			i.Lose(keyNamespaces, at, "no rule makes a queue for this Namespace; set what it says on a Queue")
		}
	}
}

// namespaceObjects returns the Namespaces, each with the Queue of its pods.
func (i *importer) namespaceObjects() (objects []*corev1.Namespace) {
	for _, namespace := range i.namespaces {
		object := &corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: namespace.Name, Labels: namespace.Labels, Annotations: maps.Clone(namespace.Annotations)},
		}
		delete(object.Annotations, corev1.LastAppliedConfigAnnotation)
		if q := i.placed[namespace.Name]; q != nil && q.title != "" {
			at := namespaceField(namespace, queueNameKey, object.Annotations[queueNameKey])
			if at.Text != "" && at.Text != q.title {
				i.Change(at, "it stays, though a placement rule puts the Namespace into Queue %s", q.title)
			} else {
				metav1.SetMetaDataAnnotation(&object.ObjectMeta, queueNameKey, q.title)
				i.Keep(namespaceField(namespace, "", ""), "Queue %s, by the annotation %s", q.title, queueNameKey)
			}
		}
		objects = append(objects, object)
	}
	return objects
}
