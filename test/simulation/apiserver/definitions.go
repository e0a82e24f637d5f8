package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	apiextensionsinformers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions/apiextensions/v1"
	apiextensionslisters "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/tools/cache"
)

// cleanup is the finalizer that holds a definition until its objects are gone.
const cleanup = apiextensionsv1.CustomResourceCleanupFinalizer

// definitions serve custom resources: the handler of Kubernetes' own server for them, and at once what its controllers
// do some time later: they accept names, establish a definition, delete the objects of one that is deleted, and publish
// it in discovery.
type definitions struct {
	server   *Server
	informer *informer
	next     http.Handler // the handler of custom resources
	missing  http.Handler

	changed map[string]bool // the names of definitions to look at
	touched time.Time       // when one changed last
}

var _ apiextensionsinformers.CustomResourceDefinitionInformer = (*definitions)(nil)

func newDefinitions(s *Server) *definitions {
	d := &definitions{server: s, informer: newInformer(), missing: http.NotFoundHandler(), changed: map[string]bool{}}
	d.informer.empty = func() runtime.Object { return &apiextensionsv1.CustomResourceDefinition{} }
	return d
}

// Informer returns the informer of the definitions.
func (d *definitions) Informer() cache.SharedIndexInformer { return d.informer }

// Lister returns the lister of the definitions.
func (d *definitions) Lister() apiextensionslisters.CustomResourceDefinitionLister {
	return apiextensionslisters.NewCustomResourceDefinitionLister(d.informer.indexer)
}

// take takes a change of a definition in.
func (d *definitions) take(by *objects, made *change) error {
	object, previous, err := made.decode(by)
	if err != nil {
		return err
	}
	isThere := object != nil
	if !isThere {
		object = previous
	}
	external := &apiextensionsv1.CustomResourceDefinition{}
	if err := apiextensionsapiserver.Scheme.Convert(object, external, nil); err != nil {
		return err
	}
	d.changed[external.Name] = true
	if !isThere {
		d.touched = now()
		err := d.informer.remove(external)
		d.publish(external.Spec.Group)
		return err
	}
	if made.previous != nil {
		d.touched = now()
	}
	// The handler waits two seconds for other API servers after a definition was established; there are none.
	for i := range external.Status.Conditions {
		external.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	if err := d.informer.put(external); err != nil {
		return err
	}
	d.publish(external.Spec.Group)
	return nil
}

// teardown is how long the handler of custom resources keeps what served an older definition.
const teardown = time.Second

// close waits for the goroutines that remove what served older definitions.
func (d *definitions) close() {
	if left := d.touched.Add(teardown + time.Millisecond).Sub(now()); left > 0 {
		time.Sleep(left)
	}
}

// settle does what the controllers of definitions would do.
func (s *Server) settle() {
	d := s.definitions
	for len(d.changed) > 0 {
		names := make([]string, 0, len(d.changed))
		for name := range d.changed {
			names = append(names, name)
		}
		slices.Sort(names)
		d.changed = map[string]bool{}
		for _, name := range names {
			definition, err := d.Lister().Get(name)
			if err != nil {
				continue // it is gone
			}
			if definition.DeletionTimestamp == nil {
				d.establish(definition.DeepCopy())
			} else if slices.Contains(definition.Finalizers, cleanup) {
				d.clean(definition.DeepCopy())
			}
		}
	}
}

// establish accepts the names of a definition unless another of the group has them.
func (d *definitions) establish(definition *apiextensionsv1.CustomResourceDefinition) {
	isAccepted, isEstablished := apihelpers.IsCRDConditionTrue(definition, apiextensionsv1.NamesAccepted), apihelpers.IsCRDConditionTrue(definition, apiextensionsv1.Established)
	names := definition.Spec.Names
	accepted := definition.Status.AcceptedNames
	if isAccepted && isEstablished && accepted.Plural == names.Plural && accepted.Kind == names.Kind && accepted.ListKind == names.ListKind &&
		accepted.Singular == names.Singular && slices.Equal(accepted.ShortNames, names.ShortNames) && slices.Equal(accepted.Categories, names.Categories) {
		return
	}
	for _, other := range d.all(definition.Spec.Group) {
		if other.Name == definition.Name || !apihelpers.IsCRDConditionTrue(other, apiextensionsv1.NamesAccepted) {
			continue
		}
		if other.Status.AcceptedNames.Kind == names.Kind || other.Status.AcceptedNames.ListKind == names.ListKind {
			d.condition(definition, apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionFalse, "KindConflict", fmt.Sprintf("%q is already in use", names.Kind))
			d.condition(definition, apiextensionsv1.Established, apiextensionsv1.ConditionFalse, "NotAccepted", "not all names are accepted")
			d.putStatus(definition)
			return
		}
	}
	definition.Status.AcceptedNames = names
	d.condition(definition, apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionTrue, "NoConflicts", "no conflicts found")
	d.condition(definition, apiextensionsv1.Established, apiextensionsv1.ConditionTrue, "InitialNamesAccepted", "the initial names have been accepted")
	d.putStatus(definition)
}

func (d *definitions) condition(of *apiextensionsv1.CustomResourceDefinition, kind apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus, reason, message string) {
	apihelpers.SetCRDCondition(of, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
	})
	for i := range of.Status.Conditions {
		if of.Status.Conditions[i].LastTransitionTime.IsZero() {
			of.Status.Conditions[i].LastTransitionTime = metav1.Now()
		}
	}
}

// clean deletes the objects of a definition that is deleted, and lets it go when there are none.
func (d *definitions) clean(definition *apiextensionsv1.CustomResourceDefinition) {
	keys := d.server.database.keysBelow(registry + definition.Spec.Group + "/" + definition.Spec.Names.Plural + "/")
	spaces := map[string]bool{}
	for _, key := range keys {
		parts := strings.Split(key, "/")
		spaces[parts[len(parts)-2]] = true
	}
	base := ""
	for _, v := range definition.Spec.Versions {
		if v.Served && base == "" {
			base = "/apis/" + definition.Spec.Group + "/" + v.Name
		}
	}
	names := make([]string, 0, len(spaces))
	for name := range spaces {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		path := base + "/" + definition.Spec.Names.Plural
		if definition.Spec.Scope == apiextensionsv1.NamespaceScoped {
			path = base + "/namespaces/" + name + "/" + definition.Spec.Names.Plural
		}
		d.server.own(http.MethodDelete, path, nil)
	}
	if len(d.server.database.keysBelow(registry+definition.Spec.Group+"/"+definition.Spec.Names.Plural+"/")) > 0 {
		return // their finalizers hold them; the next deletion of one comes back here
	}
	definition.Finalizers = slices.DeleteFunc(definition.Finalizers, func(f string) bool { return f == cleanup })
	d.condition(definition, apiextensionsv1.Terminating, apiextensionsv1.ConditionFalse, "InstanceDeletionCompleted", "removed all instances")
	d.putStatus(definition)
}

// putStatus writes the status of a definition, and its finalizers.
func (d *definitions) putStatus(definition *apiextensionsv1.CustomResourceDefinition) {
	definition.APIVersion, definition.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
	d.server.own(http.MethodPut, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+definition.Name+"/status", definition)
}

// own makes a request of the server to itself.
func (s *Server) own(method, path string, object any) *Response {
	body, err := json.Marshal(object)
	if err != nil {
		panic(err) // the object is one of Kubernetes
	}
	if object == nil {
		body = nil
	}
	request, err := http.NewRequestWithContext(nested(), method, path, bytes.NewReader(body))
	if err != nil {
		panic(err) // the path is one of ours
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "kube-apiserver")
	return s.serve(request)
}

// all returns the definitions of a group, in the order of their names.
func (d *definitions) all(group string) []*apiextensionsv1.CustomResourceDefinition {
	var found []*apiextensionsv1.CustomResourceDefinition
	for _, object := range d.informer.indexer.List() {
		if definition, ok := object.(*apiextensionsv1.CustomResourceDefinition); ok && definition.Spec.Group == group {
			found = append(found, definition)
		}
	}
	slices.SortFunc(found, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// versions returns the served versions of a group, the preferred one first.
func (d *definitions) versions(group string) []metav1.GroupVersionForDiscovery {
	var found []metav1.GroupVersionForDiscovery
	for _, definition := range d.all(group) {
		if !apihelpers.IsCRDConditionTrue(definition, apiextensionsv1.Established) {
			continue
		}
		for _, v := range definition.Spec.Versions {
			served := metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + v.Name, Version: v.Name}
			if v.Served && !slices.Contains(found, served) {
				found = append(found, served)
			}
		}
	}
	slices.SortFunc(found, func(a, b metav1.GroupVersionForDiscovery) int {
		return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
	})
	return found
}

// publish brings discovery of a group up to date.
func (d *definitions) publish(group string) {
	manager := d.server.generic.AggregatedDiscoveryGroupManager
	d.server.generic.DiscoveryGroupManager.RemoveGroup(group)
	manager.RemoveGroup(group)
	versions := d.versions(group)
	if len(versions) == 0 {
		return
	}
	d.server.generic.DiscoveryGroupManager.AddGroup(metav1.APIGroup{Name: group, Versions: versions, PreferredVersion: versions[0]})
	for _, v := range versions {
		manager.AddGroupVersion(group, apidiscoveryv2.APIVersionDiscovery{
			Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Version: v.Version, Resources: aggregated(group, v.Version, d.resources(group, v.Version)),
		})
		manager.SetGroupVersionPriority(metav1.GroupVersion{Group: group, Version: v.Version}, 1000, 100)
	}
}

// resources returns what a version of a group serves.
func (d *definitions) resources(group, of string) []metav1.APIResource {
	var found []metav1.APIResource
	for _, definition := range d.all(group) {
		isServed := slices.ContainsFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == of && v.Served
		})
		if !isServed || !apihelpers.IsCRDConditionTrue(definition, apiextensionsv1.Established) {
			continue
		}
		names, isNamespaced := definition.Status.AcceptedNames, definition.Spec.Scope == apiextensionsv1.NamespaceScoped
		verbs := metav1.Verbs{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
		if apihelpers.IsCRDConditionTrue(definition, apiextensionsv1.Terminating) {
			verbs = metav1.Verbs{"delete", "deletecollection", "get", "list", "watch"}
		}
		found = append(found, metav1.APIResource{
			Name: names.Plural, SingularName: names.Singular, Namespaced: isNamespaced, Kind: names.Kind, Verbs: verbs,
			ShortNames: names.ShortNames, Categories: names.Categories, StorageVersionHash: storageHash(definition),
		})
		parts, err := apihelpers.GetSubresourcesForVersion(definition, of)
		if err != nil || parts == nil {
			continue
		}
		if parts.Status != nil {
			found = append(found, metav1.APIResource{Name: names.Plural + "/status", Namespaced: isNamespaced, Kind: names.Kind, Verbs: metav1.Verbs{"get", "patch", "update"}})
		}
		if parts.Scale != nil {
			found = append(found, metav1.APIResource{
				Group: "autoscaling", Version: "v1", Kind: "Scale", Name: names.Plural + "/scale", Namespaced: isNamespaced, Verbs: metav1.Verbs{"get", "patch", "update"},
			})
		}
	}
	return found
}

func storageHash(definition *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range definition.Spec.Versions {
		if v.Storage {
			return discovery.StorageVersionHash(definition.Spec.Group, v.Name, definition.Spec.Names.Kind)
		}
	}
	return ""
}

// aggregated is the same for aggregated discovery.
func aggregated(group, of string, resources []metav1.APIResource) []apidiscoveryv2.APIResourceDiscovery {
	var found []apidiscoveryv2.APIResourceDiscovery
	for _, r := range resources {
		kind := &metav1.GroupVersionKind{Group: group, Version: of, Kind: r.Kind}
		if r.Version != "" {
			kind.Group, kind.Version = r.Group, r.Version
		}
		if name, part, isPart := strings.Cut(r.Name, "/"); isPart {
			for i := range found {
				if found[i].Resource == name {
					found[i].Subresources = append(found[i].Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: part, ResponseKind: kind, Verbs: r.Verbs})
				}
			}
			continue
		}
		scope := apidiscoveryv2.ScopeCluster
		if r.Namespaced {
			scope = apidiscoveryv2.ScopeNamespace
		}
		found = append(found, apidiscoveryv2.APIResourceDiscovery{
			Resource: r.Name, SingularResource: r.SingularName, Scope: scope, ResponseKind: kind, Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		})
	}
	return found
}

// ServeHTTP serves what no group of Kubernetes serves: custom resources and their discovery.
func (d *definitions) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	info, ok := apirequest.RequestInfoFrom(request.Context())
	if !ok || !strings.HasPrefix(request.URL.Path, "/apis/") {
		d.missing.ServeHTTP(w, request)
		return
	}
	if info.IsResourceRequest {
		d.next.ServeHTTP(w, request)
		return
	}
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	versions := d.versions(parts[min(1, len(parts)-1)])
	switch {
	case len(parts) == 2 && len(versions) > 0:
		group := metav1.APIGroup{Name: parts[1], Versions: versions, PreferredVersion: versions[0]}
		discovery.NewAPIGroupHandler(apiextensionsapiserver.Codecs, group).ServeHTTP(w, request)
	case len(parts) == 3 && slices.ContainsFunc(versions, func(v metav1.GroupVersionForDiscovery) bool { return v.Version == parts[2] }):
		lister := discovery.APIResourceListerFunc(func() []metav1.APIResource { return d.resources(parts[1], parts[2]) })
		discovery.NewAPIVersionHandler(apiextensionsapiserver.Codecs, schema.GroupVersion{Group: parts[1], Version: parts[2]}, lister).ServeHTTP(w, request)
	default:
		d.missing.ServeHTTP(w, request)
	}
}
