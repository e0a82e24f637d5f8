package yunikorn

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"hekla.sh/hekla/internal/importer/source"
	"hekla.sh/hekla/pkg/apis/yunikorn"
)

// partition is one partition of the configuration.
type partition struct {
	name       source.Field
	root       *queue
	rules      []*rule
	limits     []source.Field
	resolver   source.Field
	nodeOrder  nodeOrder
	preemption preemption
}

// nodeOrder is the key nodesortpolicy.
type nodeOrder struct {
	policy  source.Field
	weights []source.Entry
}

// preemption is the key preemption of a partition.
type preemption struct{ enabled, quota source.Field }

// queue is one queue, with those below it.
type queue struct {
	name   source.Field
	path   []string // in lower case, without root
	above  *queue
	queues []*queue

	parent                source.Field // whether it takes queues and no jobs
	guaranteed, max       []source.Entry
	submit, admin         source.Field
	limits                []source.Field
	template              *template
	settings              // of the queue itself
	guaranteedAt, maxAt   source.Field
	isMade, isWrittenRoot bool   // by a placement rule; in the text
	title                 string // the name of its Queue
}

// settings are what a queue and a template of queues have in common.
type settings struct {
	applications source.Field
	properties   []source.Entry
}

// template is the key childtemplate.
type template struct {
	source.Field
	settings
	guaranteed, max []source.Entry
}

// rule is a placement rule.
type rule struct {
	source.Field
	name, create, value source.Field
	filter              source.Field
	parent              *rule
}

// reader reads the text.
type reader struct{ *source.Reader }

// configuration reads the text.
func (r reader) configuration(text string) (partitions []*partition) {
	root := r.Document(text)
	if root != nil && source.ChildText(root, "kind") == "ConfigMap" {
		root = r.configMap(root)
	}
	if root == nil {
		return nil
	}
	r.Mapping(source.Value{Node: root, Field: source.Field{Number: root.Line}}, source.Keys{
		"partitions": func(v source.Value) {
			r.List(v, func(v source.Value) { partitions = append(partitions, r.partition(v)) })
		},
		"checksum": func(v source.Value) { r.Keep(r.Text(v), "it is only the checksum of the text") },
	})
	if len(partitions) == 0 && r.Err() == nil {
		r.Refuse(source.Field{Number: root.Line, Path: "partitions"}, "there is none")
	}
	seen := map[string]bool{}
	for _, p := range partitions {
		switch name := strings.ToLower(p.name.Text); {
		case name == "":
			r.Refuse(p.name, "a partition needs a name")
		case seen[name]:
			r.Refuse(p.name, "two partitions have this name")
		default:
			seen[name] = true
		}
	}
	return partitions
}

func (r reader) partition(v source.Value) *partition {
	name := source.ChildText(v.Node, "name")
	p := &partition{name: source.Field{Path: v.Path + ".name", Number: v.Number}}
	v.Path = fmt.Sprintf("partitions[%s]", name)
	var tops []*queue
	r.Mapping(v, source.Keys{
		"name": func(v source.Value) { p.name = r.Text(v) },
		"queues": func(v source.Value) {
			r.List(v, func(v source.Value) { tops = append(tops, r.queue(v, nil)) })
		},
		"placementrules": func(v source.Value) {
			r.List(v, func(v source.Value) { p.rules = append(p.rules, r.rule(v, 0)) })
		},
		"limits":            func(v source.Value) { p.limits = r.limits(v) },
		"usergroupresolver": func(v source.Value) { p.resolver = r.resolver(v) },
		"nodesortpolicy":    func(v source.Value) { p.nodeOrder = r.nodeOrder(v) },
		"preemption": func(v source.Value) {
			r.Mapping(v, source.Keys{
				"enabled":                func(v source.Value) { p.preemption.enabled = r.Flag(v) },
				"quotapreemptionenabled": func(v source.Value) { p.preemption.quota = r.Flag(v) },
			})
		},
	})
	if len(tops) == 0 {
		r.Refuse(source.Field{Path: v.Path + ".queues", Number: v.Number}, "there is none; YuniKorn needs at least root")
	}
	p.root = r.rootOf(tops, v.Number)
	return p
}

// rootOf returns the queue root. YuniKorn puts it above the queues of the first level if it is not the only one there.
func (r reader) rootOf(tops []*queue, number int) *queue {
	root := &queue{name: source.Field{Path: "queues[root].name", Number: number, Text: yunikorn.RootQueue}, queues: tops}
	if len(tops) == 1 && strings.EqualFold(tops[0].name.Text, yunikorn.RootQueue) {
		root = tops[0]
		root.isWrittenRoot = true
	}
	r.arrange(root, nil)
	return root
}

// arrange sets the paths of the queues below one.
func (r reader) arrange(q *queue, path []string) {
	q.path = path
	seen := map[string]bool{}
	for _, below := range q.queues {
		name := strings.ToLower(below.name.Text)
		if seen[name] {
			r.Refuse(below.name, "two queues of one parent have this name; YuniKorn does not tell upper case from lower case")
		}
		seen[name] = true
		below.above = q
		r.arrange(below, append(append([]string{}, path...), name))
	}
}

// queueNames are the names of queues that YuniKorn allows.
var queueNames = regexp.MustCompile(`^[a-zA-Z0-9_:#/@-]{1,64}$`)

// maxDepth bounds the levels of queues and of rules in rules that are read. Aliases may make a text endless.
const maxDepth = 100

func (r reader) queue(v source.Value, above []string) *queue {
	name := source.ChildText(v.Node, "name")
	full := append(append([]string{}, above...), name)
	q := &queue{name: source.Field{Path: v.Path + ".name", Number: v.Number}}
	path := strings.Join(full, ".")
	if first := strings.ToLower(full[0]); first != yunikorn.RootQueue {
		path = yunikorn.RootQueue + "." + path
	}
	v.Path = fmt.Sprintf("queues[%s]", path)
	r.Mapping(v, source.Keys{
		"name":   func(v source.Value) { q.name = r.Text(v) },
		"parent": func(v source.Value) { q.parent = r.Flag(v) },
		"resources": func(v source.Value) {
			r.resources(v, &q.guaranteed, &q.max)
			q.guaranteedAt, q.maxAt = below(v.Field, ".guaranteed"), below(v.Field, ".max")
		},
		"maxapplications": func(v source.Value) { q.applications = r.Text(v) },
		"properties":      func(v source.Value) { q.properties = r.Texts(v) },
		"adminacl":        func(v source.Value) { q.admin = r.Text(v) },
		"submitacl":       func(v source.Value) { q.submit = r.Text(v) },
		"limits":          func(v source.Value) { q.limits = r.limits(v) },
		"childtemplate":   func(v source.Value) { q.template = r.template(v) },
		"queues": func(v source.Value) {
			if len(full) == maxDepth {
				r.Refuse(v.Field, "there are more than %d levels of queues", maxDepth)
				return
			}
			r.List(v, func(v source.Value) { q.queues = append(q.queues, r.queue(v, full)) })
		},
	})
	switch {
	case q.name.Text == "":
		r.Refuse(q.name, "a queue needs a name")
	case !queueNames.MatchString(q.name.Text):
		r.Refuse(q.name, "%q is no name of a queue: up to 64 letters, digits and _ : # / @ -", source.Shorten(q.name.Text))
	}
	return q
}

// below returns a field at the same line, with a path below.
func below(f source.Field, suffix string) source.Field {
	f.Path += suffix
	return f
}

func (r reader) resources(v source.Value, guaranteed, max *[]source.Entry) {
	r.Mapping(v, source.Keys{
		"guaranteed": func(v source.Value) { *guaranteed = r.Texts(v) },
		"max":        func(v source.Value) { *max = r.Texts(v) },
	})
}

func (r reader) template(v source.Value) *template {
	t := &template{Field: v.Field}
	r.Mapping(v, source.Keys{
		"maxapplications": func(v source.Value) { t.applications = r.Text(v) },
		"properties":      func(v source.Value) { t.properties = r.Texts(v) },
		"resources":       func(v source.Value) { r.resources(v, &t.guaranteed, &t.max) },
	})
	return t
}

// limits reads what users and groups may hold, and returns a field for each limit.
func (r reader) limits(v source.Value) (limits []source.Field) {
	r.List(v, func(v source.Value) {
		limit := v.Field
		var said []string
		say := func(what, text string) {
			if text != "" {
				said = append(said, what+" "+text)
			}
		}
		r.Mapping(v, source.Keys{
			"limit":           func(v source.Value) { r.Text(v) },
			"users":           func(v source.Value) { say("users", r.Words(v)) },
			"groups":          func(v source.Value) { say("groups", r.Words(v)) },
			"maxapplications": func(v source.Value) { say("maxapplications", readNumber(r.Report, r.Text(v))) },
			"maxresources": func(v source.Value) {
				amounts := readAmounts(r.Report, r.Texts(v))
				say("maxresources", describe(amounts))
			},
		})
		limit.Text = strings.Join(said, ", ")
		limits = append(limits, limit)
	})
	return limits
}

// number checks a number from 0 up, and returns it.
func readNumber(r *source.Report, f source.Field) string {
	if _, err := strconv.ParseUint(f.Text, 10, 31); err != nil {
		r.Refuse(f, "is %q, allowed is a number from 0 up", source.Shorten(f.Text))
		return ""
	}
	return f.Text
}

func (r reader) resolver(v source.Value) (resolver source.Field) {
	resolver = v.Field
	r.Mapping(v, source.Keys{"type": func(v source.Value) { resolver.Text = r.Text(v).Text }})
	return resolver
}

func (r reader) nodeOrder(v source.Value) (o nodeOrder) {
	r.Mapping(v, source.Keys{
		"type":            func(v source.Value) { o.policy = r.Text(v) },
		"resourceweights": func(v source.Value) { o.weights = r.Texts(v) },
	})
	return o
}

// ruleNames are the names of placement rules that YuniKorn allows.
var ruleNames = regexp.MustCompile(`^[_a-zA-Z][a-zA-Z0-9_]*$`)

func (r reader) rule(v source.Value, depth int) *rule {
	q := &rule{Field: v.Field, name: source.Field{Path: v.Path + ".name", Number: v.Number}}
	r.Mapping(v, source.Keys{
		"name":   func(v source.Value) { q.name = r.Text(v) },
		"create": func(v source.Value) { q.create = r.Flag(v) },
		"value":  func(v source.Value) { q.value = r.Text(v) },
		"filter": func(v source.Value) { q.filter = r.filter(v) },
		"parent": func(v source.Value) {
			if depth == maxDepth {
				r.Refuse(v.Field, "there are more than %d rules in each other", maxDepth)
				return
			}
			q.parent = r.rule(v, depth+1)
		},
	})
	if !ruleNames.MatchString(q.name.Text) {
		r.Refuse(q.name, "%q is no name of a placement rule, such as provided, tag, fixed or user", source.Shorten(q.name.Text))
	}
	q.name.Text = strings.ToLower(q.name.Text)
	return q
}

func (r reader) filter(v source.Value) (filter source.Field) {
	filter = v.Field
	var said []string
	r.Mapping(v, source.Keys{
		"type": func(v source.Value) {
			f := r.Text(v)
			if kind := strings.ToLower(f.Text); kind != "" && kind != "allow" && kind != "deny" {
				r.Refuse(f, "is %q, allowed is allow or deny", source.Shorten(f.Text))
			}
			said = append(said, f.Text)
		},
		"users":  func(v source.Value) { said = append(said, "users "+r.Words(v)) },
		"groups": func(v source.Value) { said = append(said, "groups "+r.Words(v)) },
	})
	filter.Text = strings.Join(said, " ")
	return filter
}
