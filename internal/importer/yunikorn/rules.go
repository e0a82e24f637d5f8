package yunikorn

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/importer/source"
	"hekla.sh/hekla/pkg/apis/yunikorn"
)

// The placement rules that have a counterpart.
const (
	ruleProvided = "provided"
	ruleTag      = "tag"
	ruleFixed    = "fixed"
)

// The tags that have a counterpart.
const (
	tagNamespace   = "namespace"
	tagParentQueue = "namespace.parentqueue"
)

// placer puts Namespaces into queues by placement rules.
type placer struct{ *importer }

// place puts the Namespaces into queues by the placement rules, and makes the queues that are missing. It says what
// becomes of each rule.
func (i placer) place(rules []*rule) {
	for at, q := range rules {
		i.loseFilters(q)
		switch {
		case q.name.Text == ruleProvided:
			i.placeProvided(q)
		case q.name.Text == ruleTag && q.value.Text == tagNamespace && i.isStatic(q.parent):
			i.placeByNamespace(q)
			i.sayLabelsCount(rules[:at], q)
		case q.name.Text == ruleFixed && at == len(rules)-1 && i.isStatic(q.parent):
			i.placeRest(q)
		case q.name.Text == ruleFixed && at < len(rules)-1:
			i.loseRule(q, "pods that name no queue go where their Namespace says; put the rule last, where YuniKorn stops at it, too")
		default:
			i.loseRule(q, "a scheduler does not see users and tags; name the queue on pods or Namespaces by scheduling.volcano.sh/queue-name")
		}
	}
}

// isStatic reports whether the rules for the queue above are among those that have a counterpart.
func (i placer) isStatic(q *rule) bool {
	if q == nil {
		return true
	}
	isKnown := q.name.Text == ruleFixed || q.name.Text == ruleTag && (q.value.Text == tagParentQueue || q.value.Text == tagNamespace)
	return isKnown && i.isStatic(q.parent)
}

func (i placer) placeProvided(q *rule) {
	switch {
	case q.parent != nil:
		i.loseRule(q, "a label names the whole path; a queue that is not below root itself is not looked for below the parent of the rule")
	case q.create.IsTrue():
		i.eachKey(q, func(f source.Field) {
			i.Change(f, "labels of pods name their queues, and a queue that does not exist is not made: its pods wait until it is")
		})
	default:
		i.eachKey(q, func(f source.Field) { i.Keep(f, "labels of pods name their queues") })
	}
}

// sayLabelsCount says that labels count though YuniKorn would not read them here.
func (i placer) sayLabelsCount(before []*rule, q *rule) {
	if !slices.ContainsFunc(before, func(q *rule) bool { return q.name.Text == ruleProvided }) {
		i.Change(q.name, "queues that labels of pods name count first; YuniKorn does not read them before this rule")
	}
}

// placeByNamespace makes a queue for each Namespace that has none yet.
func (i placer) placeByNamespace(q *rule) {
	i.eachKey(q, func(f source.Field) {
		i.Change(f, "a Queue for each Namespace given with -f; a Namespace made later needs a Queue and the annotation %s", queueNameKey)
	})
	for _, namespace := range i.namespaces {
		if i.placed[namespace.Name] != nil {
			continue
		}
		above, ok := i.parentPath(q.parent, namespace)
		if !ok {
			continue
		}
		path := append(slices.Clone(above), strings.ToLower(namespace.Name))
		switch found := i.find(path); {
		case found != nil && len(found.queues) > 0:
			i.Lose(keyNamespaces, namespaceField(namespace, "", ""), "%s has queues below it, so it takes no pods; name another Queue by the annotation %s",
				fullPath(path), queueNameKey)
		case found != nil:
			i.placed[namespace.Name] = found
		case q.create.IsTrue():
			i.placed[namespace.Name] = i.make(path, namespace)
		}
	}
}

// placeRest puts the Namespaces that no rule has placed into one queue.
func (i placer) placeRest(q *rule) {
	if q.parent != nil && i.namesNamespace(q.parent) {
		i.loseRule(q, "below a tag there is a queue for each Namespace; name it on the Namespaces by %s", queueNameKey)
		return
	}
	above, _ := i.parentPath(q.parent, nil)
	path := pathOf(q.value.Text, above)
	found := i.find(path)
	switch {
	case found == nil && !q.create.IsTrue():
		i.Refuse(q.value, "there is no queue %s, and create is not true", fullPath(path))
		return
	case found != nil && (len(found.queues) > 0 || len(path) == 0):
		i.Refuse(q.value, "%s has queues below it, so it takes no pods", fullPath(path))
		return
	case found == nil:
		if found = i.make(path, nil); found == nil {
			return // it has said why
		}
	}
	i.eachKey(q, func(f source.Field) {
		i.Change(f, "pods that name no queue go to Queue %s: by the annotation %s of the Namespaces given with -f, and elsewhere if the "+
			"scheduler and the controllers are started with --default-queue=%s", found.title, queueNameKey, found.title)
	})
	for _, namespace := range i.namespaces {
		if i.placed[namespace.Name] == nil {
			i.placed[namespace.Name] = found
		}
	}
}

func (i placer) namesNamespace(q *rule) bool {
	return q != nil && (q.name.Text == ruleTag || i.namesNamespace(q.parent))
}

// parentPath returns the path of the queue below which a rule puts the queue of a Namespace. It is not ok if the
// Namespace does not name one.
func (i placer) parentPath(q *rule, namespace *corev1.Namespace) (path []string, ok bool) {
	if namespace != nil && (q == nil || q.name.Text == ruleTag && q.value.Text == tagParentQueue) {
		if named := namespace.Annotations[yunikorn.ParentQueueKey]; named != "" {
			i.Keep(namespaceField(namespace, yunikorn.ParentQueueKey, named), "the Queue of the Namespace is below it")
			path := pathOf(named, nil)
			if slices.ContainsFunc(path, func(part string) bool { return !queueNames.MatchString(part) }) {
				i.Refuse(namespaceField(namespace, yunikorn.ParentQueueKey, named), "is %q, allowed is the path of a queue, such as root.a.b", source.Shorten(named))
				return nil, false
			}
			return path, true
		}
		return nil, q == nil
	}
	if q == nil {
		return nil, true
	}
	above, ok := i.parentPath(q.parent, namespace)
	if !ok {
		return nil, false
	}
	if q.name.Text == ruleTag { // its value is namespace
		if namespace == nil {
			return nil, false
		}
		return append(slices.Clone(above), strings.ToLower(namespace.Name)), true
	}
	return pathOf(q.value.Text, above), true
}

// pathOf returns the path, without root, that a text names. A path that does not begin with root is below another.
func pathOf(text string, above []string) []string {
	parts := strings.Split(strings.ToLower(text), ".")
	if parts[0] == yunikorn.RootQueue {
		return parts[1:]
	}
	return append(slices.Clone(above), parts...)
}

// find returns the queue of a path, nil if there is none.
func (i placer) find(path []string) *queue {
	at := i.config.root
	for _, name := range path {
		index := slices.IndexFunc(at.queues, func(q *queue) bool { return strings.EqualFold(q.name.Text, name) })
		if index < 0 {
			return nil
		}
		at = at.queues[index]
	}
	return at
}

// make makes the queue of a Namespace, or without one of a rule, and all queues above it that are missing. It returns
// nil, after it has said why, if a queue above it takes pods.
func (i placer) make(path []string, namespace *corev1.Namespace) *queue {
	at := i.config.root
	for depth, name := range path {
		if found := i.find(path[:depth+1]); found != nil {
			at = found
			continue
		}
		where := source.Field{Path: "queue " + fullPath(path)}
		if namespace != nil {
			where = namespaceField(namespace, "", "")
		}
		if at != i.config.root && len(at.queues) == 0 && !at.parent.IsTrue() {
			i.Lose(keyNamespaces, where, "no queue is made below %s, which takes pods; set parent: true there", fullPath(at.path))
			return nil
		}
		made := &queue{above: at, path: path[:depth+1], isMade: true, name: where, guaranteedAt: where, maxAt: where}
		made.name.Text = name
		if depth < len(path)-1 {
			made.parent.Text = "true" // it is above the one that is asked for; not written, so there is no line for it
		}
		i.nameQueue(made)
		at.queues = append(at.queues, made)
		at = made
	}
	i.fill(at, namespace)
	return at
}

// nearestTemplate returns the template for queues below one: the nearest on the way up.
func (q *queue) nearestTemplate() *template {
	for ; q != nil; q = q.above {
		if q.template != nil {
			return q.template
		}
	}
	return nil
}

// loseFilters says that the filters of a rule, and of the rules in it, are lost.
func (i placer) loseFilters(q *rule) {
	for ; q != nil; q = q.parent {
		if q.filter.IsWritten() {
			i.Lose(keyRules, q.filter, "a scheduler does not see users; the rule holds for all pods")
		}
	}
}

// loseRule says that a rule, and the rules in it, are lost.
func (i placer) loseRule(q *rule, format string, arguments ...any) {
	i.eachKey(q, func(f source.Field) { i.Lose(keyRules, f, format, arguments...) })
}

// eachKey calls a function with each key of a rule and of the rules in it, but for filters.
func (i placer) eachKey(q *rule, say func(f source.Field)) {
	for ; q != nil; q = q.parent {
		for _, f := range []source.Field{q.name, q.value, q.create} {
			if f.IsWritten() {
				say(f)
			}
		}
	}
}

// namespaceField is a place in a Namespace.
func namespaceField(namespace *corev1.Namespace, key, text string) source.Field {
	path := "Namespace " + namespace.Name
	if key != "" {
		path = fmt.Sprintf("%s, annotation %s", path, key)
	}
	return source.Field{Path: path, Text: text}
}
