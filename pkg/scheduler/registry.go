package scheduler

import (
	"hekla.sh/hekla/pkg/actions/admit"
	"hekla.sh/hekla/pkg/actions/allocate"
	"hekla.sh/hekla/pkg/actions/backfill"
	"hekla.sh/hekla/pkg/actions/enqueue"
	"hekla.sh/hekla/pkg/actions/preempt"
	"hekla.sh/hekla/pkg/actions/reclaim"
	"hekla.sh/hekla/pkg/actions/shuffle"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/binpack"
	"hekla.sh/hekla/pkg/plugins/capacity"
	"hekla.sh/hekla/pkg/plugins/cdp"
	"hekla.sh/hekla/pkg/plugins/cohorts"
	"hekla.sh/hekla/pkg/plugins/conformance"
	"hekla.sh/hekla/pkg/plugins/drf"
	"hekla.sh/hekla/pkg/plugins/extender"
	"hekla.sh/hekla/pkg/plugins/gang"
	"hekla.sh/hekla/pkg/plugins/guaranteedshares"
	"hekla.sh/hekla/pkg/plugins/networktopology"
	"hekla.sh/hekla/pkg/plugins/nodegroup"
	"hekla.sh/hekla/pkg/plugins/nodeorder"
	"hekla.sh/hekla/pkg/plugins/overcommit"
	"hekla.sh/hekla/pkg/plugins/pdb"
	"hekla.sh/hekla/pkg/plugins/predicates"
	"hekla.sh/hekla/pkg/plugins/priority"
	"hekla.sh/hekla/pkg/plugins/proportion"
	"hekla.sh/hekla/pkg/plugins/rescheduling"
	"hekla.sh/hekla/pkg/plugins/resourcequota"
	"hekla.sh/hekla/pkg/plugins/resourcestrategyfit"
	"hekla.sh/hekla/pkg/plugins/sla"
	"hekla.sh/hekla/pkg/plugins/tasktopology"
	"hekla.sh/hekla/pkg/plugins/tdm"
	"hekla.sh/hekla/pkg/plugins/usage"
)

// Extension adds actions and plugins that a configuration may name.
type Extension func(actions *[]framework.ActionFactory, plugins *[]framework.PluginFactory)

// WithAction adds an action, or replaces one of the same name.
func WithAction(factory framework.ActionFactory) Extension {
	return func(actions *[]framework.ActionFactory, _ *[]framework.PluginFactory) {
		*actions = append(*actions, factory)
	}
}

// WithPlugin adds a plugin, or replaces one of the same name.
func WithPlugin(factory framework.PluginFactory) Extension {
	return func(_ *[]framework.ActionFactory, plugins *[]framework.PluginFactory) {
		*plugins = append(*plugins, factory)
	}
}

// NewRegistry returns all actions and plugins of Hekla, and those of the extensions.
func NewRegistry(extensions ...Extension) *framework.Registry {
	actions := []framework.ActionFactory{enqueue.Factory(), admit.Factory(), allocate.Factory(), backfill.Factory(), preempt.Factory(),
		reclaim.Factory(), shuffle.Factory(),
		{Name: "gangpreempt", Spec: conf.Spec{AliasOf: preempt.Name}}, {Name: "gangreclaim", Spec: conf.Spec{AliasOf: reclaim.Name}}}
	plugins := []framework.PluginFactory{priority.Factory(), gang.Factory(), conformance.Factory(), drf.Factory(),
		proportion.Factory(), capacity.Factory(), overcommit.Factory(), predicates.Factory(), nodeorder.Factory(),
		binpack.Factory(), pdb.Factory(), cdp.Factory(), resourcequota.Factory(), sla.Factory(), tdm.Factory(), extender.Factory(),
		nodegroup.Factory(), networktopology.Factory(), resourcestrategyfit.Factory(), tasktopology.Factory(), usage.Factory(),
		rescheduling.Factory(), guaranteedshares.Factory(), cohorts.Factory()}
	for name, reason := range laterPlugins {
		plugins = append(plugins, framework.PluginFactory{Name: name, Spec: conf.Spec{NoEffect: reason}})
	}
	for _, extend := range extensions {
		extend(&actions, &plugins)
	}
	return framework.NewRegistry(actions, plugins)
}

const notYet = "Hekla does not have it yet"

// laterPlugins are Volcano's plugins that Hekla does not have yet. They are left out with a notice, so that Volcano's
// configurations can be used as they are.
var laterPlugins = map[string]string{"numa-aware": notYet, "deviceshare": notYet}
