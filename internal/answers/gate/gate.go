// Package gate finds out who asks and what they may: from the API server.
//
// Main type: a [Gate]. It knows two ways to authenticate. A request that the API server passes on names its user in
// headers, and comes with the API server's own client certificate. Any other request has a bearer token, which the API
// server reviews.
//
// Invariants:
//
//  1. Headers count only with a certificate of the API server's authority and one of the names that it allows.
//  2. What the API server does not permit is refused, and so is everything if it cannot be asked.
//
// It must not know questions and answers.
package gate

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
)

// The ConfigMap in which the API server says how it passes requests on.
const proxyNamespace, proxyName = "kube-system", "extension-apiserver-authentication"

// How long answers of the API server are used again. A right that is taken away is in force after that time.
const (
	tokenLife   = time.Minute
	allowedLife = 30 * time.Second
	deniedLife  = 5 * time.Second
	// patience bounds one review.
	patience = 10 * time.Second
)

// Gate authenticates and authorizes.
type Gate struct {
	authenticator authenticator.Request
	authorizer    authorizer.Authorizer
	authority     *dynamiccertificates.ConfigMapCAController
	headers       *headerrequest.RequestHeaderAuthRequestController
}

// New returns a gate that asks an API server. Before [Gate.Run] it knows tokens only.
func New(client kubernetes.Interface) (*Gate, error) {
	g := &Gate{}
	var err error
	g.authority, err = dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", proxyNamespace, proxyName,
		"requestheader-client-ca-file", client)
	if err != nil {
		return nil, err
	}
	g.headers = headerrequest.NewRequestHeaderAuthRequestController(proxyName, proxyNamespace, client, "requestheader-username-headers",
		"requestheader-uid-headers", "requestheader-group-headers", "requestheader-extra-headers-prefix", "requestheader-allowed-names")
	provider := func(of func() []string) headerrequest.StringSliceProvider {
		return headerrequest.StringSliceProviderFunc(of)
	}
	backoff := &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 4}
	g.authenticator, _, err = authenticatorfactory.DelegatingAuthenticatorConfig{
		TokenAccessReviewClient: client.AuthenticationV1(), TokenAccessReviewTimeout: patience, WebhookRetryBackoff: backoff, CacheTTL: tokenLife,
		RequestHeaderConfig: &authenticatorfactory.RequestHeaderConfig{
			UsernameHeaders: provider(g.headers.UsernameHeaders), UIDHeaders: provider(g.headers.UIDHeaders), GroupHeaders: provider(g.headers.GroupHeaders),
			ExtraHeaderPrefixes: provider(g.headers.ExtraHeaderPrefixes), AllowedClientNames: provider(g.headers.AllowedClientNames), CAContentProvider: g.authority,
		},
	}.New()
	if err != nil {
		return nil, err
	}
	g.authorizer, err = authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(), AllowCacheTTL: allowedLife, DenyCacheTTL: deniedLife, WebhookRetryBackoff: backoff,
	}.New()
	return g, err
}

// Run follows how the API server passes requests on, until the context ends.
func (g *Gate) Run(ctx context.Context) {
	_ = g.authority.RunOnce(ctx) // a failure is tried again below
	_ = g.headers.RunOnce(ctx)
	go g.authority.Run(ctx, 1)
	g.headers.Run(ctx, 1)
}

// User returns who sends a request; ok is false if it does not say, or not credibly.
func (g *Gate) User(r *http.Request) (who user.Info, ok bool, err error) {
	response, ok, err := g.authenticator.AuthenticateRequest(r)
	if err != nil || !ok {
		return nil, false, err
	}
	return response.User, true, nil
}

// Access is what a user wants to do with a resource of the API. An empty namespace is that of the cluster, or all.
type Access struct {
	Verb, Group, Version, Resource, Subresource, Namespace, Name, Path string
}

// May reports whether a user may do something.
func (g *Gate) May(ctx context.Context, who user.Info, what Access) (bool, error) {
	decision, _, err := g.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: who, Verb: what.Verb, APIGroup: what.Group, APIVersion: what.Version, Resource: what.Resource, Subresource: what.Subresource, Namespace: what.Namespace,
		Name: what.Name, Path: what.Path, ResourceRequest: true,
	})
	return decision == authorizer.DecisionAllow, err
}
