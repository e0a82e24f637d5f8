package apiserver

import (
	"context"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	kubeadmission "k8s.io/kubernetes/pkg/kubeapiserver/admission"
)

// never is how often the plugin of policies looks whether they have changed.
const never = 100 * 365 * 24 * time.Hour

// policies evaluate ValidatingAdmissionPolicies with the API server's plugin. The plugin reads policies in a goroutine
// once a second. Here a new one is made for the first request after a change, so that a change counts at once.
type policies struct {
	*admission.Handler

	server  *Server
	config  *genericapiserver.Config
	client  kubernetes.Interface
	dynamic dynamic.Interface

	isStale bool
	plugin  *validating.Plugin
	stop    chan struct{}
}

var _ admission.ValidationInterface = (*policies)(nil)

func newPolicies(s *Server, config *genericapiserver.Config, client kubernetes.Interface) (*policies, error) {
	generic.SetPolicyRefreshIntervalForTests(never)
	of, err := dynamic.NewForConfig(s.loopback())
	p := &policies{
		Handler: admission.NewHandler(admission.Connect, admission.Create, admission.Delete, admission.Update),
		server:  s, config: config, client: client, dynamic: of, isStale: true,
	}
	s.informers.Admissionregistration().V1().ValidatingAdmissionPolicyBindings().Informer()
	return p, err
}

// Validate refuses what a policy refuses.
func (p *policies) Validate(ctx context.Context, attributes admission.Attributes, interfaces admission.ObjectInterfaces) error {
	if len(p.server.informers.Admissionregistration().V1().ValidatingAdmissionPolicies().Informer().GetStore().ListKeys()) == 0 {
		return nil
	}
	if p.isStale {
		p.isStale = false
		if err := p.renew(); err != nil {
			return err
		}
	}
	return p.plugin.Validate(ctx, attributes, interfaces)
}

// renew makes a plugin that has the policies of now.
func (p *policies) renew() error {
	p.close()
	made, err := validating.NewPlugin(nil)
	if err != nil {
		return err
	}
	p.plugin, p.stop = made, make(chan struct{})
	client, err := kubernetes.NewForConfig(p.server.loopback())
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	compiled := make(chan struct{})
	informers := &policyInformers{informers: p.server.informers, compiled: compiled}
	initializer.New(p.client, p.dynamic, informers, p.server.options.Authorize, feature.DefaultFeatureGate, p.config.EffectiveVersion, p.stop, mapper).Initialize(made)
	kubeadmission.NewPluginInitializer().Initialize(made)
	if err := made.ValidateInitialization(); err != nil {
		return err
	}
	<-compiled
	return nil
}

// close ends the goroutines of the plugin.
func (p *policies) close() {
	if p.stop != nil {
		close(p.stop)
		p.stop = nil
	}
}

// policyInformers tell when the plugin has compiled the policies: it asks to be told about later ones then.
type policyInformers struct {
	*informers

	compiled chan struct{}
}

// Admissionregistration returns informers that tell it.
func (f *policyInformers) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(f, "", nil)
}

// InformerFor returns an informer that tells it.
func (f *policyInformers) InformerFor(object runtime.Object, make internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	of := f.informers.InformerFor(object, make)
	switch object.(type) {
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		return &toldInformer{SharedIndexInformer: of, told: f.compiled}
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		return &toldInformer{SharedIndexInformer: of}
	}
	return of
}

// toldInformer has no use for handlers, and tells when the first one comes.
type toldInformer struct {
	cache.SharedIndexInformer

	told chan struct{}
}

// AddEventHandler tells that there is a handler.
func (i *toldInformer) AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	if i.told != nil {
		close(i.told)
	}
	return registration{}, nil
}
