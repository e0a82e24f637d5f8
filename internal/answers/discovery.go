package answers

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/answers/api"
)

// known answers all whom the API server knows: which questions there are is no secret. It is also how the API server
// finds out that this server runs.
func (s *Server) known(answer func() any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, ok, err := s.guard.User(r); err != nil || !ok {
			write(w, nil, apierrors.NewUnauthorized("no credentials that the API server knows"))
			return
		}
		write(w, answer(), nil)
	}
}

func thisGroup() metav1.APIGroup { return groupOf(api.GroupVersion.Group, api.GroupVersion.Version) }

// groupOf is a group with versions, the preferred one first.
func groupOf(name string, versions ...string) metav1.APIGroup {
	group := metav1.APIGroup{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: name}
	for _, version := range versions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + version, Version: version})
	}
	group.PreferredVersion = group.Versions[0]
	return group
}

func group() any { return thisGroup() }

func groups() any {
	return metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"},
		Groups: []metav1.APIGroup{thisGroup(), groupOf(api.VisibilityGroup, api.VisibilityVersions...)}}
}

func resources() any {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: api.GroupVersion.String()}
	for _, r := range api.Resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: r.Name, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind,
			Verbs: metav1.Verbs{r.Verb}})
	}
	return list
}
