package answers

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/answers/gate"
	"hekla.sh/hekla/internal/explain/queued"
)

// The resources of Kueue's group for the places of Workloads. Only the subresource is served, as in Kueue.
const (
	clusterQueues    = "clusterqueues"
	localQueues      = "localqueues"
	pendingWorkloads = "pendingworkloads"
)

// pendingPage is how many Workloads an answer lists if the client does not say, and maxPending how many at most.
const pendingPage, maxPending = 1000, 10_000

// handleVisibility serves the group.
func (s *Server) handleVisibility(mux *http.ServeMux) {
	root := "/apis/" + api.VisibilityGroup
	mux.HandleFunc("GET "+root, s.known(func() any { return groupOf(api.VisibilityGroup, api.VisibilityVersions...) }))
	for _, version := range api.VisibilityVersions {
		path := root + "/" + version
		mux.HandleFunc("GET "+path, s.known(func() any { return visibilityResources(version) }))
		mux.HandleFunc("GET "+path+"/"+clusterQueues+"/{name}/"+pendingWorkloads, s.pending(version, clusterQueues))
		mux.HandleFunc("GET "+path+"/namespaces/{namespace}/"+localQueues+"/{name}/"+pendingWorkloads, s.pending(version, localQueues))
	}
}

func visibilityResources(version string) any {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: api.VisibilityGroup + "/" + version}
	for _, of := range []string{clusterQueues, localQueues} {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: of + "/" + pendingWorkloads, Namespaced: of == localQueues,
			Kind: api.PendingWorkloadsKind, Verbs: metav1.Verbs{"get"}})
	}
	return list
}

// pending answers which Workloads wait in a ClusterQueue or LocalQueue, to those who may get that subresource. The
// right to a ClusterQueue's is one to all of its Workloads, whichever namespaces they are in, as in Kueue.
func (s *Server) pending(version, resource string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		q := &question{ctx: ctx, request: r, writer: w, namespace: r.PathValue("namespace"), name: r.PathValue("name")}
		found, err := s.pendingOf(q, version, resource)
		if err != nil {
			write(w, nil, s.statusOf(err, api.Resource{Name: resource, Group: api.VisibilityGroup}, q))
			return
		}
		answer := api.PendingWorkloadsSummary{TypeMeta: metav1.TypeMeta{APIVersion: api.VisibilityGroup + "/" + version, Kind: api.PendingWorkloadsKind},
			Items: make([]api.PendingWorkload, len(found))}
		for i := range found {
			p := &found[i]
			answer.Items[i] = api.PendingWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID,
				CreationTimestamp: metav1.NewTime(p.Created), OwnerReferences: p.Owners}, Priority: p.Priority, LocalQueueName: p.LocalQueue,
				PositionInClusterQueue: int32(p.InClusterQueue), PositionInLocalQueue: int32(p.InLocalQueue)}
		}
		writePacked(w, r, answer)
	}
}

func (s *Server) pendingOf(q *question, version, resource string) ([]queued.Pending, error) {
	if err := s.know(q); err != nil {
		return nil, err
	}
	allowed, err := s.guard.May(q.ctx, q.who, gate.Access{Verb: "get", Group: api.VisibilityGroup, Version: version, Resource: resource,
		Subresource: pendingWorkloads, Namespace: q.namespace, Name: q.name, Path: q.request.URL.Path})
	switch {
	case err != nil:
		return nil, apierrors.NewServiceUnavailable("the API server could not be asked what " + q.who.GetName() + " may do: " + err.Error())
	case !allowed:
		return nil, apierrors.NewForbidden(schema.GroupResource{Group: api.VisibilityGroup, Resource: resource}, q.name,
			errors.New("user "+strconv.Quote(q.who.GetName())+" may not get its "+pendingWorkloads))
	}
	page := queued.Page{Limit: pendingPage}
	for name, value := range map[string]*int{"offset": &page.Offset, "limit": &page.Limit} {
		text := q.request.URL.Query().Get(name)
		if text == "" {
			continue
		}
		number, err := strconv.Atoi(text)
		if err != nil || number < 0 {
			return nil, apierrors.NewBadRequest(name + ": " + strconv.Quote(text) + " is no number from 0 on")
		}
		*value = number
	}
	if page.Limit == 0 {
		page.Limit = pendingPage
	}
	page.Limit = min(page.Limit, maxPending)
	if s.shares.of(q.who).all.Wait(q.ctx) != nil || s.all.Wait(q.ctx) != nil {
		return nil, tooMany()
	}
	return s.questions.PendingWorkloads(q.ctx, q.namespace, q.name, page)
}
