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

func thisGroup() metav1.APIGroup {
	version := metav1.GroupVersionForDiscovery{GroupVersion: api.GroupVersion.String(), Version: api.GroupVersion.Version}
	return metav1.APIGroup{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: api.GroupVersion.Group,
		Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
}

func group() any { return thisGroup() }

func groups() any {
	return metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}, Groups: []metav1.APIGroup{thisGroup()}}
}

func resources() any {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: api.GroupVersion.String()}
	for _, r := range api.Resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: r.Name, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind,
			Verbs: metav1.Verbs{r.Verb}})
	}
	return list
}
