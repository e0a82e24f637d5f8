package apiserver

import (
	"fmt"
	"net/http"
	"sync"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
	"k8s.io/kubernetes/pkg/kubeapiserver"
	admissionregistrationrest "k8s.io/kubernetes/pkg/registry/admissionregistration/rest"
	appsrest "k8s.io/kubernetes/pkg/registry/apps/rest"
	authorizationrest "k8s.io/kubernetes/pkg/registry/authorization/rest"
	batchrest "k8s.io/kubernetes/pkg/registry/batch/rest"
	coordinationrest "k8s.io/kubernetes/pkg/registry/coordination/rest"
	discoveryrest "k8s.io/kubernetes/pkg/registry/discovery/rest"
	eventsrest "k8s.io/kubernetes/pkg/registry/events/rest"
	networkingrest "k8s.io/kubernetes/pkg/registry/networking/rest"
	noderest "k8s.io/kubernetes/pkg/registry/node/rest"
	policyrest "k8s.io/kubernetes/pkg/registry/policy/rest"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	resourcerest "k8s.io/kubernetes/pkg/registry/resource/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
	storagerest "k8s.io/kubernetes/pkg/registry/storage/rest"
)

// address is where the server would be; nothing listens there.
const address = "apiserver.invalid:443"

// prepare sets up what the process has once.
var prepare = sync.OnceFunc(func() {
	capabilities.Setup(true, 0) // as clusters have it: containers may be privileged
	// One of the handlers of errors slows down who has many. It keeps the time of the last one from bubble to bubble,
	// and would wait for years.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:min(1, len(utilruntime.ErrorHandlers))]
})

// New returns a server with the namespaces and priority classes that every cluster has, or with what a snapshot has. In
// a bubble of testing/synctest it belongs to the bubble in which it is made.
func New(options Options) (*Server, error) {
	prepare()
	if options.Authorize == nil {
		options.Authorize = authorizerfactory.NewAlwaysAllowAuthorizer()
	}
	s := &Server{
		options: options, database: newDatabase(), stored: map[string]*objects{}, cursors: map[*Cursor]bool{},
	}
	s.client = s.database.client()
	s.database.committed = s.commit
	s.definitions = newDefinitions(s)
	if err := s.build(); err != nil {
		return nil, err
	}
	s.begin()
	defer s.finish()
	if options.From != nil {
		s.restore(options.From)
		return s, nil
	}
	return s, s.bootstrap()
}

// commit takes in what the server itself has to know of a change.
func (s *Server) commit(made *change) {
	by := s.storedAt(made.key)
	if by == nil {
		return
	}
	switch by.resource.Resource {
	case "customresourcedefinitions", "validatingadmissionpolicies", "validatingadmissionpolicybindings":
		if s.policies != nil {
			s.policies.isStale = true
		}
	}
	var err error
	switch {
	case by.resource == apiextensions.Resource("customresourcedefinitions"):
		err = s.definitions.take(by, made)
	default:
		if made.value == nil && len(s.definitions.all(by.resource.Group)) > 0 {
			s.definitions.changed[by.resource.String()] = true // it may have been the last one that held its definition
		}
		err = s.informers.changed(by, made)
	}
	if err != nil {
		panic(fmt.Sprintf("key %s: what was just encoded cannot be decoded: %v", made.key, err))
	}
}

// build puts the parts of the API server together.
func (s *Server) build() error {
	config := genericapiserver.NewConfig(legacyscheme.Codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.ExternalAddress = address
	config.MergedResourceConfig = controlplane.DefaultAPIResourceConfigSource()
	config.LoopbackClientConfig = s.loopback()
	config.MinRequestTimeout = 0 // no watch ends by itself
	config.EnableIndex, config.EnableProfiling, config.EnableMetrics, config.SkipOpenAPIInstallation = false, false, false, true
	config.StorageObjectCountTracker = nil
	config.Authorization.Authorizer = s.options.Authorize
	definitions := openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generatedopenapi.GetOpenAPIDefinitions)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, openapinamer.NewDefinitionNamer(legacyscheme.Scheme, apiextensionsapiserver.Scheme))
	config.BuildHandlerChainFunc = s.chain

	var err error
	if s.factory, err = storageFactory(config); err != nil {
		return err
	}
	config.RESTOptionsGetter = (*kubernetesOptions)(s)
	client, err := kubernetes.NewForConfig(s.loopback())
	if err != nil {
		return err
	}
	s.informers = newInformers(s, client)
	if config.AdmissionControl, err = s.admission(config, client); err != nil {
		return err
	}
	s.generic, err = config.Complete(nil).New("simulated", genericapiserver.NewEmptyDelegateWithCustomHandler(s.definitions))
	if err != nil {
		return err
	}
	s.handler = s.generic.Handler
	if err := s.installKubernetes(client, config); err != nil {
		return err
	}
	return s.installDefinitions(config)
}

func storageFactory(config *genericapiserver.Config) (*serverstorage.DefaultStorageFactory, error) {
	of := kubeapiserver.NewStorageFactoryConfigEffectiveVersion(config.EffectiveVersion)
	of.APIResourceConfig = config.MergedResourceConfig
	of.DefaultResourceEncoding.SetEffectiveVersion(config.EffectiveVersion)
	options := genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(registry, nil))
	options.DefaultStorageMediaType = runtime.ContentTypeProtobuf
	return of.Complete(options).New()
}

// installKubernetes installs the groups of Kubernetes. Their order is that of kube-apiserver, which discovery shows.
func (s *Server) installKubernetes(client *kubernetes.Clientset, config *genericapiserver.Config) error {
	allow := s.options.Authorize
	installed := controlplaneapiserver.Server{
		GenericAPIServer: s.generic, APIResourceConfigSource: config.MergedResourceConfig, RESTOptionsGetter: config.RESTOptionsGetter,
	}
	return installed.InstallAPIs(
		&coreGroup{server: s},
		authorizationrest.RESTStorageProvider{Authorizer: allow, RuleResolver: noRules{}},
		batchrest.RESTStorageProvider{},
		coordinationrest.RESTStorageProvider{},
		discoveryrest.StorageProvider{},
		networkingrest.RESTStorageProvider{},
		noderest.RESTStorageProvider{},
		policyrest.RESTStorageProvider{},
		rbacrest.RESTStorageProvider{Authorizer: allow},
		schedulingrest.RESTStorageProvider{},
		storagerest.RESTStorageProvider{},
		appsrest.StorageProvider{},
		admissionregistrationrest.RESTStorageProvider{Authorizer: allow, DiscoveryClient: client.Discovery()},
		eventsrest.RESTStorageProvider{TTL: eventLife},
		resourcerest.RESTStorageProvider{NamespaceClient: client.CoreV1().Namespaces(), Authorizer: allow},
	)
}

// installDefinitions installs CustomResourceDefinitions and the handler of their objects.
func (s *Server) installDefinitions(config *genericapiserver.Config) error {
	group := genericapiserver.NewDefaultAPIGroupInfo(apiextensions.GroupName, apiextensionsapiserver.Scheme, metav1.ParameterCodec, apiextensionsapiserver.Codecs)
	store, err := customresourcedefinition.NewREST(apiextensionsapiserver.Scheme, (*definitionOptions)(s))
	if err != nil {
		return err
	}
	group.VersionedResourcesStorageMap[apiextensionsv1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"customresourcedefinitions":        store,
		"customresourcedefinitions/status": customresourcedefinition.NewStatusREST(apiextensionsapiserver.Scheme, store),
	}
	if err := s.generic.InstallAPIGroup(&group); err != nil {
		return err
	}
	s.definitions.next, err = apiextensionsapiserver.NewCustomResourceDefinitionHandler(nil, nil, s.definitions, s.definitions.missing,
		(*customOptions)(s), config.AdmissionControl, nil, nil, nil, 1, s.options.Authorize, config.RequestTimeout, 0, group.StaticOpenAPISpec, config.MaxRequestBodyBytes)
	return err
}

// kubernetesOptions, definitionOptions and customOptions say how resources of Kubernetes, definitions and custom
// resources are stored.
type (
	kubernetesOptions Server
	definitionOptions Server
	customOptions     Server
)

// GetRESTOptions returns how a resource of Kubernetes is stored.
func (s *kubernetesOptions) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	config, err := s.factory.NewConfig(resource, example)
	return (*Server)(s).restOptions(config, s.factory.ResourcePrefix(resource)), err
}

// GetRESTOptions returns how definitions are stored.
func (s *definitionOptions) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	// In kube-apiserver, too, the older version is preferred.
	config := storagebackend.NewDefaultConfig(registry, apiextensionsapiserver.Codecs.LegacyCodec(apiextensionsv1beta1.SchemeGroupVersion, apiextensionsv1.SchemeGroupVersion)).ForResource(resource)
	config.EncodeVersioner = runtime.NewMultiGroupVersioner(apiextensionsv1beta1.SchemeGroupVersion, schema.GroupKind{Group: apiextensions.GroupName})
	return (*Server)(s).restOptions(config, resource.Group+"/"+resource.Resource), nil
}

// GetRESTOptions returns how custom resources are stored.
func (s *customOptions) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	config := storagebackend.NewDefaultConfig(registry, unstructured.UnstructuredJSONScheme).ForResource(resource)
	return (*Server)(s).restOptions(config, resource.Group+"/"+resource.Resource), nil
}

func (s *Server) restOptions(config *storagebackend.ConfigForResource, prefix string) generic.RESTOptions {
	return generic.RESTOptions{
		StorageConfig: config, Decorator: s.decorate, EnableGarbageCollection: true, DeleteCollectionWorkers: 1, ResourcePrefix: prefix,
	}
}

// loopback is how the server is its own client.
func (s *Server) loopback() *restclient.Config {
	return &restclient.Config{
		Host: "http://" + address, QPS: -1, Transport: loopback{s}, UserAgent: "kube-apiserver",
		ContentConfig: restclient.ContentConfig{ContentType: runtime.ContentTypeProtobuf},
	}
}

// loopback serves requests that the server makes while it serves another.
type loopback struct{ server *Server }

// RoundTrip serves a request.
func (l loopback) RoundTrip(request *http.Request) (*http.Response, error) {
	return l.server.serve(request.WithContext(asServer(request.Context()))).HTTP(request), nil
}
