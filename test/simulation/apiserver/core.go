package apiserver

import (
	"context"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	api "k8s.io/kubernetes/pkg/apis/core"
	kubeletclient "k8s.io/kubernetes/pkg/kubelet/client"
	endpointsstore "k8s.io/kubernetes/pkg/registry/core/endpoint/storage"
	limitrangestore "k8s.io/kubernetes/pkg/registry/core/limitrange/storage"
	nodestore "k8s.io/kubernetes/pkg/registry/core/node/storage"
	pvstore "k8s.io/kubernetes/pkg/registry/core/persistentvolume/storage"
	pvcstore "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim/storage"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	podtemplatestore "k8s.io/kubernetes/pkg/registry/core/podtemplate/storage"
	controllerstore "k8s.io/kubernetes/pkg/registry/core/replicationcontroller/storage"
	corerest "k8s.io/kubernetes/pkg/registry/core/rest"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"
)

// eventLife is how long Events are kept.
const eventLife = time.Hour

// coreGroup is the resources of the group "". Kubernetes' own list of them wants repair loops for the addresses of
// Services, so that this one is put together here.
type coreGroup struct{ server *Server }

// GroupName returns "".
func (*coreGroup) GroupName() string { return api.GroupName }

// NewRESTStorage returns the resources.
func (c *coreGroup) NewRESTStorage(source serverstorage.APIResourceConfigSource, options generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error) {
	base := corerest.GenericConfig{EventTTL: eventLife, StorageFactory: c.server.factory, LoopbackClientConfig: c.server.loopback()}
	group, err := base.NewRESTStorage(source, options)
	if err != nil {
		return group, err
	}
	served := group.VersionedResourcesStorageMap[corev1.SchemeGroupVersion.Version]
	if served["podtemplates"], err = podtemplatestore.NewREST(options); err != nil {
		return group, err
	}
	if served["limitranges"], err = limitrangestore.NewREST(options); err != nil {
		return group, err
	}
	if served["persistentvolumes"], served["persistentvolumes/status"], err = pvstore.NewREST(options); err != nil {
		return group, err
	}
	if served["persistentvolumeclaims"], served["persistentvolumeclaims/status"], err = pvcstore.NewREST(options); err != nil {
		return group, err
	}
	controllers, err := controllerstore.NewStorage(options)
	if err != nil {
		return group, err
	}
	served["replicationcontrollers"], served["replicationcontrollers/status"] = controllers.Controller, controllers.Status
	served["replicationcontrollers/scale"] = controllers.Scale
	return group, c.addPods(group, options)
}

// addPods adds nodes, pods and Services, which refer to each other.
func (c *coreGroup) addPods(group genericapiserver.APIGroupInfo, options generic.RESTOptionsGetter) error {
	served := group.VersionedResourcesStorageMap[corev1.SchemeGroupVersion.Version]
	nodes, err := nodestore.NewStorage(options, kubeletclient.KubeletClientConfig{Port: 10250, PreferredAddressTypes: []string{string(corev1.NodeInternalIP)}}, nil)
	if err != nil {
		return err
	}
	served["nodes"], served["nodes/status"] = nodes.Node, nodes.Status
	budgets, err := policyclient.NewForConfig(c.server.loopback())
	if err != nil {
		return err
	}
	pods, err := podstore.NewStorage(options, nodes.KubeletConnectionInfo, nil, budgets, c.server.options.Authorize)
	if err != nil {
		return err
	}
	served["pods"], served["pods/status"], served["pods/resize"] = pods.Pod, pods.Status, pods.Resize
	served["pods/binding"], served["pods/eviction"], served["bindings"] = pods.Binding, pods.Eviction, pods.LegacyBinding
	served["pods/ephemeralcontainers"] = pods.EphemeralContainers
	endpoints, err := endpointsstore.NewREST(options)
	if err != nil {
		return err
	}
	served["endpoints"] = endpoints
	_, addresses, err := net.ParseCIDR("10.96.0.0/16")
	if err != nil {
		return err
	}
	ips, err := ipallocator.NewInMemory(addresses)
	if err != nil {
		return err
	}
	ports, err := portallocator.NewInMemory(utilnet.PortRange{Base: 30000, Size: 2768})
	if err != nil {
		return err
	}
	services, status, _, err := servicestore.NewREST(options, api.IPv4Protocol, map[api.IPFamily]ipallocator.Interface{api.IPv4Protocol: ips}, ports, endpoints, pods.Pod, nil)
	served["services"], served["services/status"] = services, status
	return err
}

// noRules is for reviews of rules, of which there are none to list.
type noRules struct{}

// RulesFor returns nothing.
func (noRules) RulesFor(context.Context, user.Info, string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	return nil, nil, true, nil
}
