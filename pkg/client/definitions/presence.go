package definitions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// PresencePeriod is how often a program looks which of the kinds that it needs the API server has.
const PresencePeriod = 5 * time.Second

// Presence knows which of the kinds that a program needs the API server does not have, as after their definitions were deleted.
type Presence struct {
	api     discovery.DiscoveryInterface
	wanted  []schema.GroupVersionResource
	logger  logr.Logger
	back    func()
	missing atomic.Pointer[[]string]
}

// NewPresence returns a Presence of some resources, of which none is missing before [Presence.Run] has looked. The log says when others are
// missing than before. Back is called when some are there again.
func NewPresence(api discovery.DiscoveryInterface, wanted []schema.GroupVersionResource, logger logr.Logger, back func()) *Presence {
	return &Presence{api: api, wanted: wanted, logger: logger, back: back}
}

// Run looks at once and then after each period, until the context ends.
func (p *Presence) Run(ctx context.Context, period time.Duration) {
	for {
		p.look()
		select {
		case <-ctx.Done():
			return
		case <-time.After(period):
		}
	}
}

// look learns which kinds are missing. What cannot be asked stays as it was.
func (p *Presence) look() {
	served := map[schema.GroupVersion]*metav1.APIResourceList{}
	missing := []string{}
	for _, resource := range p.wanted {
		version := resource.GroupVersion()
		list, isKnown := served[version]
		if !isKnown {
			var err error
			if list, err = p.api.ServerResourcesForGroupVersion(version.String()); apierrors.IsNotFound(err) {
				list = &metav1.APIResourceList{}
			} else if err != nil {
				return
			}
			served[version] = list
		}
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }) {
			missing = append(missing, Name(resource))
		}
	}
	slices.Sort(missing)
	var before []string
	if known := p.missing.Swap(&missing); known != nil {
		before = *known
	}
	if slices.Equal(before, missing) {
		return
	}
	if len(missing) > 0 {
		p.logger.Error(errors.New("the API server does not have them: apply Hekla's definitions (installer/crds)"), "Kinds are not served", "kinds", missing)
	} else {
		p.logger.Info("All kinds are served again")
	}
	if slices.ContainsFunc(before, func(name string) bool { return !slices.Contains(missing, name) }) {
		p.back()
	}
}

// Check is an error that names the missing kinds, nil if there are none.
func (p *Presence) Check() error {
	if missing := p.missing.Load(); missing != nil && len(*missing) > 0 {
		return fmt.Errorf("not served, because the API server does not have the kinds: %s", strings.Join(*missing, ", "))
	}
	return nil
}

// CheckRequest is Check as a check of a health server.
func (p *Presence) CheckRequest(*http.Request) error { return p.Check() }
