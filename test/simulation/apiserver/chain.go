package apiserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	kubeadmission "k8s.io/kubernetes/pkg/kubeapiserver/admission"
	kubeoptions "k8s.io/kubernetes/pkg/kubeapiserver/options"
)

// now is the time of the process, or of the bubble of testing/synctest.
func now() time.Time { return time.Now() }

type serverKey struct{}

// asServer marks requests that the server makes to itself.
func asServer(ctx context.Context) context.Context { return context.WithValue(ctx, serverKey{}, true) }

// nested is the context of such a request.
func nested() context.Context { return asServer(context.Background()) }

// chain puts those of the API server's filters around its handlers that have work here.
func (s *Server) chain(handler http.Handler, config *genericapiserver.Config) http.Handler {
	handler = filters.WithAuthorization(handler, s.options.Authorize, config.Serializer)
	if s.options.Audit != nil {
		handler = filters.WithAudit(handler, sink{s}, sink{s}, config.LongRunningFunc)
	}
	handler = s.withUser(handler)
	handler = filters.WithWarningRecorder(handler)
	handler = filters.WithRequestInfo(handler, config.RequestInfoResolver)
	handler = filters.WithRequestReceivedTimestamp(handler)
	return filters.WithAuditInit(handler)
}

// withUser says who makes a request.
func (s *Server) withUser(handler http.Handler) http.Handler {
	admin := &user.DefaultInfo{Name: "system:admin", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
	own := &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var who user.Info = admin
		switch {
		case request.Context().Value(serverKey{}) != nil:
			who = own
		case s.options.User != nil:
			who = s.options.User(request)
		}
		handler.ServeHTTP(w, request.WithContext(apirequest.WithUser(request.Context(), who)))
	})
}

// sink takes the events of the audit log, and all requests at one level.
type sink struct{ server *Server }

var (
	_ audit.Sink                = sink{}
	_ audit.PolicyRuleEvaluator = sink{}
)

// ProcessEvents hands events over.
func (k sink) ProcessEvents(events ...*auditinternal.Event) bool {
	for _, event := range events {
		k.server.options.Audit(event)
	}
	return true
}

// EvaluatePolicyRule returns the level.
func (k sink) EvaluatePolicyRule(authorizer.Attributes) audit.RequestAuditConfig {
	level := k.server.options.Level
	if level == "" {
		level = auditinternal.LevelRequestResponse
	}
	return audit.RequestAuditConfig{Level: level, OmitStages: []auditinternal.Stage{auditinternal.StageRequestReceived}}
}

// replaced are plugins of kube-apiserver that are on by default, and left out or replaced here, with the reason.
var replaced = map[string]string{
	"ServiceAccount":                "accounts and their tokens are made by controllers",
	"ResourceQuota":                 "its evaluator works in goroutines; quotas do the same at once",
	"MutatingAdmissionPolicy":       "it reads policies in goroutines",
	"ValidatingAdmissionPolicy":     "it reads policies in goroutines; policies make it read them at once",
	"CertificateApproval":           "certificates are not served",
	"CertificateSigning":            "certificates are not served",
	"CertificateSubjectRestriction": "certificates are not served",
	"ClusterTrustBundleAttest":      "certificates are not served",
}

// lastWebhook is the plugin that comes after policies.
const lastWebhook = "ValidatingAdmissionWebhook"

// admission makes the plugins that are on in a kube-apiserver by default, in their order.
func (s *Server) admission(config *genericapiserver.Config, client kubernetes.Interface) (admission.Interface, error) {
	off := kubeoptions.DefaultOffAdmissionPlugins()
	var names []string
	for _, name := range kubeoptions.AllOrderedPlugins {
		if _, isReplaced := replaced[name]; !isReplaced && !off.Has(name) && name != lastWebhook && s.wants(name) {
			names = append(names, name)
		}
	}
	for _, name := range s.options.WithoutPlugins {
		if !slices.Contains(kubeoptions.AllOrderedPlugins, name) {
			return nil, fmt.Errorf("the API server has no admission plugin %q", name)
		}
	}
	first, err := s.plugins(config, client, names...)
	if err != nil {
		return nil, err
	}
	chain := []admission.Interface{first}
	if s.options.Admission != nil {
		chain = append(chain, s.options.Admission)
	}
	if s.wants("ValidatingAdmissionPolicy") {
		if s.policies, err = newPolicies(s, config, client); err != nil {
			return nil, err
		}
		chain = append(chain, s.policies)
	}
	if s.wants(lastWebhook) {
		last, err := s.plugins(config, client, lastWebhook)
		if err != nil {
			return nil, err
		}
		chain = append(chain, last)
	}
	if s.wants("ResourceQuota") {
		charged, err := newQuotas(s, client, config.MergedResourceConfig)
		if err != nil {
			return nil, err
		}
		chain = append(chain, charged)
	}
	return admission.NewChainHandler(chain...), nil
}

func (s *Server) wants(plugin string) bool { return !slices.Contains(s.options.WithoutPlugins, plugin) }

// plugins makes plugins by their names.
func (s *Server) plugins(config *genericapiserver.Config, client kubernetes.Interface, names ...string) (admission.Interface, error) {
	known := admission.NewPlugins()
	genericapiserver.RegisterAllAdmissionPlugins(known)
	kubeoptions.RegisterAllAdmissionPlugins(known)
	common := initializer.New(client, nil, s.informers, s.options.Authorize, feature.DefaultFeatureGate, config.EffectiveVersion, nil, nil)
	return known.NewFromPlugins(names, noConfiguration{}, admission.PluginInitializers{common, kubeadmission.NewPluginInitializer(), s.webhooks()}, nil)
}

// noConfiguration lets all plugins have their defaults.
type noConfiguration struct{}

// ConfigFor returns nothing.
func (noConfiguration) ConfigFor(string) (io.Reader, error) { return nil, nil }
