package yunikorn

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"hekla.sh/hekla/internal/importer/source"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
)

// annotations are those of a Queue that stand for YuniKorn's properties.
var annotations = map[string]string{
	"preemption.policy":         scheduling.PreemptionPolicyKey,
	"preemption.delay":          scheduling.PreemptionDelayKey,
	"priority.policy":           scheduling.PriorityPolicyKey,
	"priority.offset":           scheduling.PriorityOffsetKey,
	"application.sort.policy":   scheduling.ApplicationSortPolicyKey,
	"application.sort.priority": scheduling.ApplicationSortPriorityKey,
	"quota.preemption.delay":    scheduling.QuotaPreemptionDelayKey,
}

// Names of what may be lost, for --accept.
const (
	keyPartitions = "partitions"
	keySubmit     = "submitacl"
	keyAdmin      = "adminacl"
	keyLimits     = "limits"
	keyResolver   = "usergroupresolver"
	keyTemplate   = "childtemplate"
	keyRules      = "placementrules"
	keyBackoff    = "application.unschedasks.backoff"
	keyNamespaces = "namespaces"
)

// acceptedByDefault are those whose loss changes nothing.
var acceptedByDefault = []string{keyBackoff, keyBackoff + ".delay"}

// Losable returns the names that --accept takes, besides the path of a line.
func Losable() []string {
	return []string{keyPartitions, keySubmit, keyAdmin, keyLimits, keyResolver, keyTemplate, keyRules, keyNamespaces,
		keyBackoff, keyBackoff + ".delay", "service", "log", "admissionController", "kubernetes"}
}

func isUnneeded(property string) bool { return slices.Contains(acceptedByDefault, property) }

// fullPath is a path as YuniKorn writes it.
func fullPath(path []string) string {
	return strings.Join(append([]string{yunikorn.RootQueue}, path...), ".")
}

// nameQueues gives all queues below one the names of their Queues.
func (i *importer) nameQueues(q *queue) {
	for _, below := range q.queues {
		i.nameQueue(below)
		i.nameQueues(below)
	}
}

// nameQueue gives one queue the name of its Queue, which no other may have.
func (i *importer) nameQueue(q *queue) {
	q.title = yunikorn.QueueName(fullPath(q.path))
	switch problems := validation.IsDNS1123Subdomain(q.title); {
	case len(problems) > 0:
		i.Refuse(q.name, "no Queue can be named %q: %s", source.Shorten(q.title), problems[0])
	case q.title == i.options.Parent || q.title == scheduling.RootQueue:
		i.Refuse(q.name, "its Queue would be %s, which is the Queue above all; rename it", q.title)
	case i.titles[q.title] != nil:
		i.Refuse(q.name, "its Queue would be %s, which is that of %s; rename one of them", q.title, fullPath(i.titles[q.title].path))
	default:
		i.titles[q.title] = q
	}
}

// queueObjects makes the Queues below one, each after the Queue above it.
func (i *importer) queueObjects(q *queue) (objects []*scheduling.Queue) {
	for _, below := range q.queues {
		objects = append(objects, i.queueObject(below))
		objects = append(objects, i.queueObjects(below)...)
	}
	return objects
}

func (i *importer) queueObject(q *queue) *scheduling.Queue {
	above := i.options.Parent
	if q.above != nil && q.above.title != "" {
		above = q.above.title
	}
	object := newQueue(q.title, above, fullPath(q.path))
	if q.isMade {
		// What it holds stands in a template or in a Namespace, which have lines of their own.
		quiet := *i
		quiet.checker = checker{&source.Report{}}
		i = &quiet
	}
	i.sayName(q)
	if q.parent.IsWritten() {
		if q.parent.IsTrue() && len(q.queues) == 0 {
			i.Change(q.parent, "Queue %s takes jobs until there is a Queue below it", q.title)
		} else {
			i.Keep(q.parent, "a Queue takes jobs unless there are Queues below it")
		}
	}
	if guaranteed := readAmounts(i.Report, q.guaranteed); len(guaranteed) > 0 {
		object.Spec.Guarantee.Resource = guaranteed
		for _, e := range q.guaranteed {
			i.Keep(e.Field, "spec.guarantee.resource[%s]", resourceName(e.Key))
		}
	}
	if max := readAmounts(i.Report, q.max); isZero(max) {
		for _, e := range q.max {
			i.Change(e.Field, "zero of everything sets no limit, so there is no spec.capability")
		}
	} else if len(max) > 0 {
		object.Spec.Capability = max
		for _, e := range q.max {
			i.Keep(e.Field, "spec.capability[%s]", resourceName(e.Key))
		}
	}
	i.annotate(object.Annotations, q.settings)
	i.sayAccess(q)
	for _, limit := range q.limits {
		i.loseLimit(limit)
	}
	return object
}

func newQueue(name, above, path string) *scheduling.Queue {
	return &scheduling.Queue{
		TypeMeta:   metav1.TypeMeta{APIVersion: scheduling.SchemeGroupVersion.String(), Kind: "Queue"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{scheduling.QueuePathKey: path}},
		Spec:       scheduling.QueueSpec{Parent: above},
	}
}

func (i *importer) sayName(q *queue) {
	if q.title == strings.Join(q.path, ".") {
		i.Keep(q.name, "Queue %s", q.title)
		return
	}
	i.Change(q.name, "Queue %s; pods find it by the annotation %s", q.title, scheduling.QueuePathKey)
}

// annotate writes what a queue or a template sets.
func (i *importer) annotate(to map[string]string, s settings) {
	if number := applicationsOf(s); number > 0 {
		to[scheduling.MaxApplicationsKey] = s.applications.Text
		i.Keep(s.applications, "annotation %s", scheduling.MaxApplicationsKey)
	} else if s.applications.IsWritten() {
		i.Keep(s.applications, "0 sets no limit")
	}
	for _, e := range s.properties {
		key := annotations[e.Key]
		switch {
		case isUnneeded(e.Key):
			i.Lose(e.Key, e.Field, "not needed: a refused job is not looked at again until something has changed that could help it")
		case key == "":
		case key == scheduling.QuotaPreemptionDelayKey && !i.config.preemption.quota.IsTrue():
			i.Change(e.Field, "left out, because preemption.quotapreemptionenabled is not true")
		default:
			to[key] = e.Text
			i.Keep(e.Field, "annotation %s", key)
		}
	}
}

// sayAccess says what becomes of the users who may use a queue.
func (i *importer) sayAccess(q *queue) {
	for _, acl := range []struct {
		source.Field
		key, what string
	}{{q.submit, keySubmit, "create pods"}, {q.admin, keyAdmin, "delete pods"}} {
		switch {
		case !acl.IsWritten():
		case acl.Text == "*":
			i.Keep(acl.Field, "all users, as without it")
		case strings.TrimSpace(acl.Text) == "":
			i.Keep(acl.Field, "the same as without it")
		default:
			i.Lose(acl.key, acl.Field, "a scheduler does not see users; grant them the right to %s in the namespaces of Queue %s by a RoleBinding, "+
				"and restrict the Queue to those namespaces by the label %s=%s and the annotation %s",
				acl.what, q.title, scheduling.QueueAccessLabelKey, scheduling.QueueAccessRestricted, scheduling.QueueNamespacesAnnotationKey)
		}
	}
}

func (i *importer) loseLimit(limit source.Field) {
	i.Lose(keyLimits, limit, "a scheduler does not see users; give each of them a queue of their own, with what they may hold as its max")
}

// parentObject makes the Queue that takes the place of root, nil if nothing is to be said of it.
func (i *importer) parentObject(root *queue) *scheduling.Queue {
	object := newQueue(i.options.Parent, "", yunikorn.RootQueue)
	if i.options.Parent != scheduling.RootQueue {
		object.Spec.Parent = scheduling.RootQueue
	}
	if i.options.ParentQueue != nil {
		object.Labels = maps.Clone(i.options.ParentQueue.Labels)
		object.Spec = *i.options.ParentQueue.Spec.DeepCopy()
		maps.Copy(object.Annotations, i.options.ParentQueue.Annotations)
		delete(object.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	before := len(object.Annotations)
	if root.isWrittenRoot {
		i.Keep(root.name, "Queue %s", i.options.Parent)
	}
	if root.parent.IsWritten() {
		i.Keep(root.parent, "Queue %s has the others below it", i.options.Parent)
	}
	own := root.settings
	own.properties = slices.DeleteFunc(slices.Clone(own.properties), func(e source.Entry) bool {
		isPolicy := e.Key == "preemption.policy"
		if isPolicy {
			i.handDown(root, e)
		}
		return isPolicy
	})
	i.annotate(object.Annotations, own)
	for _, acl := range []source.Field{root.submit, root.admin} {
		if acl.IsWritten() {
			i.Keep(acl, "who may create pods is for the API server to say, by RBAC")
		}
	}
	for _, limit := range root.limits {
		i.loseLimit(limit)
	}
	if i.options.Parent == scheduling.RootQueue && len(object.Annotations) == before {
		return nil // it exists in every cluster
	}
	return object
}

// handDown writes the policy of root on the queues below it, since that of the Queue above all has no effect.
func (i *importer) handDown(root *queue, policy source.Entry) {
	if policy.Text != "disabled" {
		i.Keep(policy.Field, "no effect on root, as in YuniKorn")
		return
	}
	i.Change(policy.Field, "written on the Queues below root that set no policy of their own")
	for _, below := range root.queues {
		isSet := slices.ContainsFunc(below.properties, func(e source.Entry) bool { return e.Key == policy.Key })
		if !isSet {
			below.properties = append(below.properties, source.Entry{Key: policy.Key,
				Field: source.Field{Path: strings.TrimSuffix(below.name.Path, ".name") + ".properties[" + policy.Key + "]", Number: policy.Number, Text: policy.Text}})
		}
	}
}
