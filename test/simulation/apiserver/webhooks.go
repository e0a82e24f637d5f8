package apiserver

import (
	"errors"
	"net/http"
	"net/url"

	"k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	"k8s.io/apiserver/pkg/util/webhook"
	restclient "k8s.io/client-go/rest"
)

// errNoWebhook is what a webhook is answered with where there are none.
var errNoWebhook = errors.New("connect: connection refused")

// refused is a transport to webhooks that are not there.
type refused struct{}

// RoundTrip fails.
func (refused) RoundTrip(*http.Request) (*http.Response, error) { return nil, errNoWebhook }

// webhooks lets the API server's plugins call webhooks by [Options.Webhooks].
func (s *Server) webhooks() *initializer.PluginInitializer {
	transport := s.options.Webhooks
	if transport == nil {
		transport = refused{}
	}
	config := &restclient.Config{WrapTransport: func(http.RoundTripper) http.RoundTripper { return transport }}
	resolver := &webhook.AuthenticationInfoResolverDelegator{
		ClientConfigForFunc:        func(string) (*restclient.Config, error) { return config, nil },
		ClientConfigForServiceFunc: func(string, string, int) (*restclient.Config, error) { return config, nil },
	}
	wrap := func(webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver { return resolver }
	return initializer.NewPluginInitializer(wrap, unresolved{})
}

// unresolved resolves no service: nothing is dialled.
type unresolved struct{}

// ResolveEndpoint fails.
func (unresolved) ResolveEndpoint(string, string, int32) (*url.URL, error) { return nil, errNoWebhook }
