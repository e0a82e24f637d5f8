package framework

import (
	"errors"
	"fmt"

	"hekla.sh/hekla/pkg/conf"
)

// PluginFactory makes a plugin from the switches and arguments it has in a configuration. The arguments were checked
// against the factory's schema; what the schema cannot express is an error here.
type PluginFactory struct {
	Name string
	Spec conf.Spec
	New  func(on conf.Switches, arguments conf.Arguments) (Plugin, error)
}

// ActionFactory makes an action from the arguments it has in a configuration, see PluginFactory.
type ActionFactory struct {
	Name string
	Spec conf.Spec
	New  func(arguments conf.Arguments) (Action, error)
}

// RefusalCache is an argument that Volcano's actions have and that is not needed here.
func RefusalCache() conf.Argument {
	return conf.Argument{Name: "predicateErrorCacheEnable", Kind: conf.Bool, Default: true, Doc: "Volcano's switch for remembering refusals.",
		NoEffect: "refusals are always remembered, per class of equal pods and only until the node changes"}
}

// Registry knows the actions and plugins there are, those from outside the tree included.
type Registry struct {
	plugins map[string]PluginFactory
	actions map[string]ActionFactory
}

// NewRegistry returns a registry of these actions and plugins. One that comes later replaces one of the same name, so
// that a program built on Hekla can put its own in place of ours.
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

// Catalogue returns what a configuration may name.
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

// Build turns a configuration into a policy. Its errors name the action or plugin.
func (r *Registry) Build(configuration *conf.Configuration) (*Policy, error) {
	return r.build(configuration, func(Plugin) bool { return true })
}

// build is Build with those plugins only that are wanted.
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
				p.collect(tier, plugin, entry.Switches)
			}
		}
	}
	return p, nil
}

// Twin returns a policy of the same configuration with actions and plugins of its own: what it is asked changes nothing that this
// one has found out. Plugins that ask another process are left out of it; without are their names.
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
