package rules

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
)

// setting is a configuration, as far as a judge has to know it.
type setting struct {
	actions              []string
	sharer               string // the plugin that divides the cluster, "" if none does
	tree                 bool   // queues form one
	subtrees             bool   // shares are guaranteed below the queue [subtree], next to the sharer
	gang, conformance    bool
	pdb, drf             bool
	onlyStarving         bool // a gang that has its minimum takes nothing
	whole                bool // allowWholeGang
	preset               string
	overcommit, priority bool
}

// yaml is the setting as a configuration file.
func (s setting) yaml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "actions: %q\ntiers:\n- plugins:\n", strings.Join(s.actions, ", "))
	plugin := func(on bool, text string) {
		if on {
			b.WriteString("  - {name: " + text + "}\n")
		}
	}
	plugin(s.priority, "priority")
	plugin(s.gang && s.onlyStarving, "gang")
	plugin(s.gang && !s.onlyStarving, "gang, enableJobStarving: false")
	plugin(s.conformance, "conformance")
	plugin(s.pdb, "pdb")
	b.WriteString("- plugins:\n  - {name: predicates}\n  - {name: nodeorder}\n")
	plugin(s.drf, "drf")
	plugin(s.overcommit, "overcommit")
	plugin(s.guarantees(), fmt.Sprintf("%s, arguments: {preemptionDelay: %s}", guaranteedShares, askDelay))
	plugin(s.subtrees, fmt.Sprintf("%s, arguments: {subtrees: [%s], preemptionDelay: %s}", guaranteedShares, subtree, askDelay))
	plugin(s.sharer != "" && !s.guarantees() && s.tree, s.sharer+", enableHierarchy: true")
	plugin(s.sharer != "" && !s.guarantees() && !s.tree, s.sharer)
	b.WriteString("configurations:\n")
	for _, action := range []string{"preempt", "reclaim"} {
		if slices.Contains(s.actions, action) {
			fmt.Fprintf(&b, "- name: %s\n  arguments: {allowWholeGang: %t, preset: %s}\n", action, s.whole, s.preset)
		}
	}
	return b.String()
}

// plain is the setting for most of the rules.
var plain = setting{actions: words("enqueue allocate preempt reclaim backfill"), sharer: "capacity", gang: true, conformance: true,
	onlyStarving: true, whole: true, preset: "kube-1.36", priority: true}

func words(text string) []string { return strings.Fields(text) }

// settings are those that a cluster may be led under, the plainest first.
func settings() []setting {
	vary := func(how func(*setting)) setting {
		s := plain
		how(&s)
		return s
	}
	return []setting{
		plain,
		vary(func(s *setting) { s.sharer = "proportion" }),
		vary(func(s *setting) { s.tree = true }),
		vary(func(s *setting) { s.onlyStarving, s.whole = false, false }),
		vary(func(s *setting) {
			s.actions = words("enqueue preempt reclaim allocate backfill")
			s.onlyStarving = false
		}),
		vary(func(s *setting) { s.sharer, s.preset = "", "kube-1.8" }),
		vary(func(s *setting) { s.pdb, s.actions = true, words("enqueue allocate backfill reclaim preempt") }),
		vary(func(s *setting) { s.sharer, s.drf, s.overcommit = "proportion", true, true }),
		vary(func(s *setting) { s.actions = words("allocate preempt"); s.preset = "kube-1.8" }),
		vary(func(s *setting) { s.actions, s.tree = words("enqueue allocate reclaim backfill"), true }),
		vary(func(s *setting) { s.sharer, s.onlyStarving = "proportion", false }),
		vary(func(s *setting) { s.sharer = guaranteedShares }),
		vary(func(s *setting) { s.sharer, s.tree, s.whole = guaranteedShares, true, false }),
	}
}

// registry has the plugins and actions of Hekla, and read the configurations that were read before.
var (
	registry = sync.OnceValue(func() *framework.Registry { return scheduler.NewRegistry() })
	read     = map[string]*conf.Configuration{}
)

// policies are the settings as policies in force need them; each is made once for each scheduler.
func (s setting) policy() *framework.Policy {
	text := s.yaml()
	parsed := read[text]
	if parsed == nil {
		var err error
		if parsed, err = conf.Parse([]byte(text), registry().Catalogue()); err != nil {
			panic(err)
		}
		read[text] = parsed
	}
	policy, err := registry().Build(parsed)
	if err != nil {
		panic(err)
	}
	return policy
}

// start returns a scheduler that knows nothing yet.
func (s setting) start() *scheduler.Scheduler {
	started := scheduler.New(scheduler.Options{Cluster: cache.Options{SchedulerNames: []string{"volcano"}}})
	if err := started.Use(s.policy()); err != nil {
		panic(err)
	}
	return started
}
