package framework

import (
	"errors"
	"fmt"

	"hekla.sh/hekla/pkg/conf"
)

// PluginFactory makes a plugin from its switches and arguments in a configuration. The arguments are already checked
// against Spec. New returns an error for what Spec cannot express.
type PluginFactory struct {
	Name string
	Spec conf.Spec
	New  func(on conf.Switches, arguments conf.Arguments) (Plugin, error)
}

// ActionFactory makes an action from its arguments in a configuration, see [PluginFactory].
type ActionFactory struct {
	Name string
	Spec conf.Spec
	New  func(arguments conf.Arguments) (Action, error)
}

// RefusalCache is an argument of Volcano's actions that has no effect here.
func RefusalCache() conf.Argument {
	return conf.Argument{Name: "predicateErrorCacheEnable", Kind: conf.Bool, Default: true, Doc: "Volcano's switch for remembering refusals.",
		NoEffect: "refusals are always remembered, per class of equal pods and only until the node changes"}
}

// Registry holds all known actions and plugins, also those from other modules.
type Registry struct {
	plugins map[string]PluginFactory
	actions map[string]ActionFactory
}

// NewRegistry returns a registry of these actions and plugins. A later entry replaces an earlier one of the same name.
// So a program that is built on Hekla can replace its actions and plugins.
func NewRegistry(actions []ActionFactory, plugins []PluginFactory) *Registry {
	r := &Registry{plugins: map[string]PluginFactory{}, actions: map[string]ActionFactory{}}
	for _, factory := range actions {
		r.actions[factory.Name] = factory
	}
	for _, factory := range plugins {
		r.plugins[factory.Name] = factory
	}
	return r
}

// Catalogue returns the actions and plugins that a configuration may name, with their arguments.
func (r *Registry) Catalogue() conf.Catalogue {
	catalogue := conf.Catalogue{Actions: map[string]conf.Spec{}, Plugins: map[string]conf.Spec{}}
	for name, factory := range r.actions {
		catalogue.Actions[name] = factory.Spec
	}
	for name, factory := range r.plugins {
		catalogue.Plugins[name] = factory.Spec
	}
	return catalogue
}

// Build turns a configuration into a policy. An error names the action or plugin.
func (r *Registry) Build(configuration *conf.Configuration) (*Policy, error) {
	return r.build(configuration, func(Plugin) bool { return true })
}

// build is Build with only those plugins that are wanted.
func (r *Registry) build(configuration *conf.Configuration, isWanted func(Plugin) bool) (*Policy, error) {
	p := &Policy{Configuration: configuration, registry: r}
	for _, name := range configuration.Actions {
		factory, ok := r.actions[name]
		if !ok {
			return nil, fmt.Errorf("action %q is not known", name)
		}
		action, err := factory.New(configuration.ActionArguments[name])
		if err != nil {
			return nil, fmt.Errorf("action %q: %w", name, err)
		}
		p.Actions = append(p.Actions, action)
	}
	for tier := range configuration.Tiers {
		for _, entry := range configuration.Tiers[tier].Plugins {
			factory, ok := r.plugins[entry.Name]
			if !ok {
				return nil, fmt.Errorf("plugin %q is not known", entry.Name)
			}
			plugin, err := factory.New(entry.Switches, entry.Arguments)
			if err != nil {
				return nil, fmt.Errorf("plugin %q: %w", entry.Name, err)
			}
			if isWanted(plugin) {
				if err := p.collect(tier, plugin, entry.Switches); err != nil {
					return nil, fmt.Errorf("plugin %q: %w", entry.Name, err)
				}
			}
		}
	}
	if err := p.checkShares(); err != nil {
		return nil, err
	}
	return p, nil
}

// Twin returns a policy of the same configuration with actions and plugins of its own. Questions to it do not change
// what the plugins of p have cached. It leaves out plugins that ask another process, and returns their names in
// without.
func (p *Policy) Twin() (twin *Policy, without []string, err error) {
	if p.registry == nil {
		return nil, nil, errors.New("the policy was not built by a registry")
	}
	twin, err = p.registry.build(p.Configuration, func(plugin Plugin) bool {
		_, isRemote := plugin.(RemotePlugin)
		if isRemote {
			without = append(without, plugin.Name())
		}
		return !isRemote
	})
	return twin, without, err
}
