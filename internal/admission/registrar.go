package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"hekla.sh/hekla/internal/admission/certificates"
	"hekla.sh/hekla/internal/admission/held"
)

const (
	// retryInterval is how soon is looked again after something went wrong.
	retryInterval = time.Second

	// firstRegistration is how long after its start a server behind a Service registers webhooks where there are none:
	// until then nothing is asked, and the Service may not lead to it yet.
	firstRegistration = 15 * time.Second
)

// registrar keeps certificates, registration, resource groups and what is known of workloads as they should be. Each
// replica has one; they write the same, and only over what they have read.
type registrar struct {
	api     client.Client
	live    client.Reader
	options Options
	enabled []*service
	server  *server
	keeper  *certificates.Keeper
	config  []byte // what the file with the resource groups held when it was last read
	log     logr.Logger
	started time.Time
	held    *held.Watch
	// isRegistered says that the API server has been told of the webhooks.
	isRegistered atomic.Bool
}

// NeedLeaderElection is false: every replica serves.
func (*registrar) NeedLeaderElection() bool { return false }

// Start works until the context ends. What goes wrong is tried again.
func (c *registrar) Start(ctx context.Context) error {
	ctx = logf.IntoContext(ctx, c.log)
	c.started = time.Now()
	for {
		wait := c.options.Interval
		if err := c.step(ctx); err != nil && ctx.Err() == nil {
			c.log.Error(err, "Will try again")
			wait = min(wait, retryInterval)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.held.Wake():
		case <-time.After(wait):
		}
	}
}

// step does all that is due. The bundle is registered after the certificates are, so that no API server is told of an
// authority that is lost when the Secret cannot be written.
func (c *registrar) step(ctx context.Context) error {
	return errors.Join(c.reload(), c.look(ctx), c.keeper.Step(ctx), c.register(ctx))
}

// reload reads the resource groups again if their file has changed. A bad file changes nothing.
func (c *registrar) reload() error {
	groups, content, err := readGroups(c.options.ConfigFile)
	if err != nil || bytes.Equal(content, c.config) {
		return err
	}
	c.config = content
	c.server.settings.Store(c.options.settings(groups, c.server.settings.Load().workloads))
	c.log.Info("Read the resource groups", "file", c.options.ConfigFile, "groups", len(groups))
	return nil
}

// look learns whether workloads are held back, and which.
func (c *registrar) look(ctx context.Context) error {
	now := c.server.settings.Load()
	known, err := c.held.Look(ctx, now.workloads)
	if known != now.workloads {
		c.server.settings.Store(c.options.settings(now.groups, known))
		c.log.Info("Workloads of kueue.x-k8s.io", "heldBack", known.AreAdmitted(), "kueueRuns", known.KueueRuns, "defaultQueues", known.HaveDefaultQueue)
	}
	return err
}

// register fills in the two configurations, which must exist: they are installed empty, so that the controllers need no
// right to create any, and so that they go when Hekla is removed.
func (c *registrar) register(ctx context.Context) error {
	bundle := c.keeper.Bundle()
	if bundle == nil {
		return nil // why there is none has been said
	}
	mutating, validating := c.options.webhooks(c.enabled, c.server.settings.Load(), bundle)
	name := client.ObjectKey{Name: ConfigurationName}
	mutations := &admissionregistrationv1.MutatingWebhookConfiguration{}
	validations := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	isEarly := c.options.URL == "" && time.Since(c.started) < firstRegistration
	err := errors.Join(
		c.fill(ctx, name, mutations, func() bool { return replaced(&mutations.Webhooks, mutating, isEarly) }),
		c.fill(ctx, name, validations, func() bool { return replaced(&validations.Webhooks, validating, isEarly) }),
	)
	if err == nil {
		c.isRegistered.Store(true)
	}
	return err
}

// fill reads a configuration, lets it be edited, and writes it if that has changed it.
func (c *registrar) fill(ctx context.Context, name client.ObjectKey, configuration client.Object, edit func() bool) error {
	if err := c.live.Get(ctx, name, configuration); err != nil {
		return fmt.Errorf("registering the webhooks: %w", err)
	}
	if !edit() {
		return nil
	}
	if err := c.api.Update(ctx, configuration); err != nil {
		return fmt.Errorf("registering the webhooks: %w", err)
	}
	c.log.Info("Registered the webhooks", "in", fmt.Sprintf("%T", configuration))
	return nil
}

// replaced puts what should be in the place of what is, and says whether the two differ. Early on, nothing is put where
// nothing is.
func replaced[T any](current *[]T, wanted []T, isEarly bool) bool {
	if len(*current) == 0 && (isEarly || len(wanted) == 0) || apiequality.Semantic.DeepEqual(*current, wanted) {
		return false
	}
	*current = wanted
	return true
}

// ready says whether the server can answer.
func (c *registrar) ready(*http.Request) error {
	if c.keeper.Bundle() == nil {
		return errors.New("there is no certificate yet")
	}
	if c.options.URL != "" && !c.isRegistered.Load() { // a Service leads to a server that is ready, and the API server is told later
		return errors.New("the webhooks are not registered yet")
	}
	return nil
}
