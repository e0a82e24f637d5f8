package differential

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
)

// scenario is a cluster to begin with and what happens in it, one thing after another, most of them when the one before
// has come to rest. It is plain data, so that parts of it can be left out.
type scenario struct {
	configuration configuration
	objects       []runtime.Object
	changes       []timed
	// policies are what becomes of gangs, by name, of which a pod is evicted.
	policies map[string]restartPolicy
	// replaced is how pods are made again, zero for at once and under the same name. A name is what is added to the old
	// one.
	replaced simulator.Successor
	// overlook makes the model forget causes to wake jobs; nil forgets none.
	overlook func(wake.Cause) bool
}

// change is something that happens outside of the scheduler. What it is about may be gone by then: then nothing
// happens.
type change struct {
	name  string
	apply func(*run)
}

// timed is a change and when it comes: once the scenario rests or, if it is sudden, so many cycles after the one
// before.
type timed struct {
	change
	isSudden bool
	cycles   int
}

// configuration is what the scheduler is told to do, as far as scenarios differ in it.
type configuration struct {
	actions string
	plugins []string // of the second tier
	sharer  string   // proportion, capacity, "" for none
	tree    bool     // queues form one
	whole   bool     // whole gangs may go
	// upstream are the switches for users of Volcano that are on.
	upstream []string
	preset   string // of preempt, "" for the usual
	// subtree is the queue below which shares are guaranteed, in addition to those of the sharer; "" for none.
	subtree string
	delay   string // of guaranteed shares, "" for the usual
	// asInstalled says that the configuration is that of a new installation, and nothing else counts.
	asInstalled bool
}

func (c *configuration) hasGuarantees() bool {
	return c.sharer == "guaranteed-shares" || c.subtree != ""
}

// actionLists are the pipelines that scenarios run under, the plainest first.
var actionLists = []string{"enqueue, allocate, preempt, reclaim, backfill", "allocate, backfill", "enqueue, allocate, backfill",
	"allocate, preempt, reclaim", "enqueue, reclaim, preempt, allocate, backfill"}

func (c configuration) yaml() string {
	if c.asInstalled {
		return installed()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "actions: %q\ntiers:\n- plugins:\n  - {name: priority}\n  - {name: gang}\n  - {name: conformance}\n", c.actions)
	for _, name := range []string{"cdp", "pdb"} {
		if slices.Contains(c.plugins, name) {
			fmt.Fprintf(&b, "  - {name: %s}\n", name)
		}
	}
	b.WriteString("- plugins:\n  - {name: predicates}\n  - {name: nodeorder}\n")
	for _, name := range c.plugins {
		switch name {
		case "cdp", "pdb":
		case "extender":
			// A loaded machine takes its time.
			fmt.Fprintf(&b, "  - {name: extender, arguments: {extender.urlPrefix: %q, extender.httpTimeout: 1m, extender.predicateVerb: predicate, "+
				"extender.preemptableVerb: victims, extender.reclaimableVerb: victims}}\n", outside())
		case "tdm":
			// It begins open, and closes a few minutes later.
			fmt.Fprintf(&b, "  - {name: tdm, arguments: {tdm.revocable-zone.lent: \"%s-%s\"}}\n",
				beginning.Add(-time.Hour).Format("15:04"), beginning.Add(3*time.Minute).Format("15:04"))
		default:
			fmt.Fprintf(&b, "  - {name: %s}\n", name)
		}
	}
	guarantees := func(arguments ...string) {
		if c.delay != "" {
			arguments = append(arguments, "preemptionDelay: "+c.delay)
		}
		fmt.Fprintf(&b, "  - {name: guaranteed-shares, arguments: {%s}}\n", strings.Join(arguments, ", "))
	}
	if c.subtree != "" {
		guarantees("subtrees: [" + c.subtree + "]")
	}
	switch {
	case c.sharer == "guaranteed-shares":
		guarantees()
	case c.sharer != "" && c.tree:
		fmt.Fprintf(&b, "  - {name: %s, enableHierarchy: true}\n", c.sharer)
	case c.sharer != "":
		fmt.Fprintf(&b, "  - {name: %s}\n", c.sharer)
	}
	var arguments []string
	for _, action := range []string{"preempt", "reclaim"} {
		preset := ""
		if action == "preempt" && c.preset != "" {
			preset = ", preset: " + c.preset
		}
		if strings.Contains(c.actions, action) {
			arguments = append(arguments, fmt.Sprintf("{name: %s, arguments: {allowWholeGang: %t%s}}", action, c.whole, preset))
		}
	}
	if slices.Contains(c.plugins, "usage") {
		b.WriteString("metrics: {type: metrics_server}\n")
	}
	if len(c.upstream) > 0 {
		fmt.Fprintf(&b, "compatibility: {%s}\n", strings.Join(c.upstream, ", "))
	}
	fmt.Fprintf(&b, "configurations: [%s]\n", strings.Join(arguments, ", "))
	return b.String()
}

var registry = scheduler.NewRegistry()

// parsedOnes are the configurations that were read already, by their text.
var parsedOnes sync.Map

// policy is the configuration as a scheduler needs it; each needs one of its own.
func (c configuration) policy() *framework.Policy {
	text := c.yaml()
	parsed, known := parsedOnes.Load(text)
	if !known {
		var err error
		if parsed, err = conf.Parse([]byte(text), registry.Catalogue()); err != nil {
			panic(err.Error() + "\n" + text)
		}
		parsedOnes.Store(text, parsed)
	}
	policy, err := registry.Build(parsed.(*conf.Configuration))
	if err != nil {
		panic(err)
	}
	return policy
}

// chooser makes all random choices of a scenario.
type chooser struct{ *rand.Rand }

func newChooser(seed uint64) chooser { return chooser{rand.New(rand.NewPCG(seed, 9))} }

func (c chooser) oneOf(words ...string) string { return words[c.IntN(len(words))] }

// once reports true once in so many times.
func (c chooser) once(in int) bool { return c.IntN(in) == 0 }

// beginning is when scenarios begin.
var beginning = fixture.Birth.Add(time.Hour)
