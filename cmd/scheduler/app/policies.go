package app

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
)

// document is what a source holds at some time.
type document struct {
	// place names the source, for a person.
	place string
	text  []byte
	// problem is why there is no text.
	problem error
	// isAbsent says that the ConfigMap does not exist, or was deleted: that asks for the default. Other
	// problems ask for nothing.
	isAbsent bool
	// isDefault says that it is the one that is built in.
	isDefault bool
	// object is the ConfigMap the text is from, nil if it is from a file.
	object *corev1.ObjectReference
}

// judge counts what becomes of configurations; metrics.Metrics does.
type judge interface {
	ConfigurationUsed()
	ConfigurationRefused()
}

// policies turns documents into policies and keeps the last good one in force.
type policies struct {
	registry  *framework.Registry
	catalogue conf.Catalogue
	logger    logr.Logger
	judge     judge
	offer     func(*framework.Policy) // hands a policy to the loop
	show      func(decision.Notice)
	isStrict  bool // there is no default
	// self is the pod that this process runs in, nil if it is not known. On it is shown what is wrong with a file, or
	// with rights.
	self *corev1.ObjectReference

	mutex   sync.Mutex
	latest  document
	problem string              // what is wrong with what the source holds, "" if nothing is
	offered *conf.Configuration // handed to the loop last, nil if the loop could not use it
}

// begin puts the first configuration in force: what the document says, or the default if it cannot be used. A document
// without place asks for the default. If there is no default, the error says what is wrong.
func (p *policies) begin(d document) error {
	if d.place != "" {
		err := p.use(d)
		if err == nil {
			return nil
		}
		if p.isStrict {
			return fmt.Errorf("%s cannot be used, and the default is disabled by --disable-default-scheduler-config: %w", d.place, err)
		}
		p.refuse(d, err, theDefault)
	} else if p.isStrict {
		return errors.New("neither --scheduler-conf nor --scheduler-configmap names a configuration, " +
			"and the default is disabled by --disable-default-scheduler-config")
	} else {
		p.judge.ConfigurationUsed()
	}
	return p.useDefault()
}

// inForce is the configuration that is in force in place of one that cannot be used, as users read it.
type inForce string

const (
	theDefault   inForce = "the default configuration"
	theOneBefore inForce = "the configuration before it"
)

func (p *policies) useDefault() error {
	return p.put(document{place: string(theDefault), isDefault: true}, conf.Default(p.catalogue))
}

// update takes in what the source holds now.
func (p *policies) update(d document) {
	if err := p.use(d); err != nil {
		p.refuse(d, err, theOneBefore)
	}
}

func (p *policies) use(d document) error {
	if d.isAbsent && !p.isStrict {
		p.logger.Info("There is no ConfigMap with a configuration; the default is in force until there is", "place", d.place)
		if err := p.useDefault(); err != nil {
			return err
		}
		p.judge.ConfigurationUsed()
		return nil
	}
	if d.problem != nil {
		return d.problem
	}
	configuration, err := conf.Parse(d.text, p.catalogue)
	if err != nil {
		return err
	}
	if err := p.put(d, configuration); err != nil {
		return err
	}
	p.judge.ConfigurationUsed()
	p.setProblem("")
	return nil
}

func (p *policies) setProblem(problem string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.problem = problem
}

// warning says what is wrong with what the source holds and what is in force instead, "" if nothing is wrong.
func (p *policies) warning() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.problem
}

// put hands a configuration to the loop, unless it is the one that the loop has.
func (p *policies) put(d document, configuration *conf.Configuration) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.offered != nil && configuration.Equal(p.offered) {
		p.latest = d
		return nil
	}
	policy, err := p.registry.Build(configuration)
	if err != nil {
		return err
	}
	p.latest, p.offered = d, configuration
	for _, notice := range configuration.Notices {
		p.logger.Info("Part of the configuration has no effect", "place", d.place, "notice", notice.String())
	}
	p.logger.Info("Configuration will be in force from the next cycle on", "place", d.place, "actions", configuration.Actions,
		"plugins", plugins(configuration))
	p.offer(policy)
	return nil
}

// plugins are the names of the plugins, in order.
func plugins(configuration *conf.Configuration) []string {
	var names []string
	for _, tier := range configuration.Tiers {
		for _, plugin := range tier.Plugins {
			names = append(names, plugin.Name)
		}
	}
	return names
}

// rejected says that the loop could not use what it was offered last, and whether it has another one in force. If it
// has none it gets the default.
func (p *policies) rejected(err error, isAnyInForce bool) {
	p.mutex.Lock()
	d := p.latest
	p.offered = nil
	p.mutex.Unlock()
	if isAnyInForce {
		p.refuse(d, err, theOneBefore)
		return
	}
	if p.isStrict || d.isDefault {
		p.refuse(d, err, "nothing")
		return
	}
	p.refuse(d, err, theDefault)
	if err := p.useDefault(); err != nil {
		p.logger.Error(err, "The default configuration cannot be used")
	}
}

func (p *policies) refuse(d document, err error, instead inForce) {
	p.judge.ConfigurationRefused()
	p.logger.Error(err, "Configuration cannot be used", "place", d.place, "inForce", instead)
	p.setProblem(fmt.Sprintf("%s cannot be used, and %s is in force: %s", d.place, instead, err))
	regarding, what := d.object, configurationKey
	if regarding == nil {
		regarding, what = p.self, d.place
	}
	verb := "is"
	if instead == theOneBefore {
		verb = "stays"
	}
	if regarding != nil {
		p.show(decision.Notice{
			Regarding: *regarding, Type: corev1.EventTypeWarning, Reason: "InvalidConfiguration",
			Message: fmt.Sprintf("%s %s in force. %s: %s", upperFirst(string(instead)), verb, what, err),
		})
	}
}

func upperFirst(sentence string) string { return strings.ToUpper(sentence[:1]) + sentence[1:] }
