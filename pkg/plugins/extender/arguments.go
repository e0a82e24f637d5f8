package extender

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/extender/callout"
)

// Name is the name of the plugin in the configuration.
const Name = "extender"

// The arguments.
const (
	prefixKey    = "extender.urlPrefix"
	timeoutKey   = "extender.httpTimeout"
	ignorableKey = "extender.ignorable"
	managedKey   = "extender.managedResources"
)

// The arguments that name verbs.
const (
	predicate      = "extender.predicateVerb"
	preemptable    = "extender.preemptableVerb"
	reclaimable    = "extender.reclaimableVerb"
	jobEnqueueable = "extender.jobEnqueueableVerb"
	queueOverused  = "extender.queueOverusedVerb"
	jobReady       = "extender.jobReadyVerb"
	onSessionOpen  = "extender.onSessionOpenVerb"
	allocateFunc   = "extender.allocateFuncVerb"
	deallocateFunc = "extender.deallocateFuncVerb"
)

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	arguments := []conf.Argument{
		{Name: prefixKey, Kind: conf.String, Default: "", Doc: "Where the extender is, a URL; needed if any verb is given."},
		{Name: timeoutKey, Kind: conf.Duration, Default: time.Second, Check: aboveZero, Doc: "How long a cycle waits for an answer."},
		{Name: ignorableKey, Kind: conf.Bool, Default: false, Doc: "Whether an extender that does not answer has no say, instead of refusing everything."},
		{Name: managedKey, Kind: conf.Any, Default: "", Doc: "Resources, a list or separated by commas: only pods that request one of them are asked about."},
	}
	for _, v := range verbs {
		arguments = append(arguments, conf.Argument{Name: v.key, Kind: conf.String, Default: "", Doc: v.doc})
	}
	for _, v := range mute {
		arguments = append(arguments, conf.Argument{Name: v.key, Kind: conf.String, NoEffect: v.doc, Doc: "Part of the URL in Volcano."})
	}
	return framework.PluginFactory{Name: Name, Spec: conf.Spec{Arguments: arguments}, New: newPlugin}
}

type verb struct{ key, doc string }

var verbs = []verb{
	{predicate, "Asked whether a pod may be placed on the node that would be chosen."},
	{preemptable, "Asked whether pods may leave for another of their queue."},
	{reclaimable, "Asked whether pods may leave for another queue."},
	{jobEnqueueable, "Asked whether a job may be admitted."},
	{queueOverused, "Asked whether a queue has enough."},
	{jobReady, "Asked whether a job may start."},
	{onSessionOpen, "Told of the cluster when a cycle begins."},
	{allocateFunc, "Told of a pod that is placed, or promised room."},
	{deallocateFunc, "Told of a pod that is evicted, or whose placement is taken back."},
}

// mute are verbs that have no effect, with the reason.
var mute = []verb{
	{"extender.prioritizeVerb", "nodes are scored one by one, and a call for each of them would take longer than all else"},
	{"extender.jobEnqueuedVerb", "that a job was admitted shows in its PodGroup"},
	{"extender.onSessionCloseVerb", "what a cycle has decided is told when the next one begins"},
}

func aboveZero(value any) error {
	if timeout, ok := value.(time.Duration); ok && timeout <= 0 {
		return errors.New("above zero")
	}
	return nil
}

func newPlugin(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
	p := &plugin{verbs: map[string]string{}, ignorable: arguments.Bool(ignorableKey)}
	var err error
	if p.managed, err = names(arguments.Any(managedKey)); err != nil {
		return nil, fmt.Errorf("%s must be %w", managedKey, err)
	}
	for _, v := range verbs {
		if path := arguments.String(v.key); path != "" {
			p.verbs[v.key] = path
		}
	}
	prefix := arguments.String(prefixKey)
	if prefix == "" && len(p.verbs) == 0 {
		return p, nil
	}
	if p.extender, err = callout.New(prefix, arguments.Duration(timeoutKey)); err != nil {
		return nil, fmt.Errorf("%s: %w", prefixKey, err)
	}
	return p, nil
}

// names reads a list of names, or names separated by commas.
func names(value any) ([]corev1.ResourceName, error) {
	var texts []string
	switch value := value.(type) {
	case nil:
	case string:
		texts = strings.Split(value, ",")
	case []any:
		for _, element := range value {
			text, ok := element.(string)
			if !ok {
				return nil, fmt.Errorf("a list of names of resources; %v is none", element)
			}
			texts = append(texts, text)
		}
	default:
		return nil, fmt.Errorf("a list of names of resources, not %v", value)
	}
	var all []corev1.ResourceName
	for _, text := range texts {
		if text = strings.TrimSpace(text); text != "" {
			all = append(all, corev1.ResourceName(text))
		}
	}
	return all, nil
}
