package simulation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hekla.sh/hekla/test/simulation/apiserver"
)

// observed are the resources that the rules, the kubelets and the garbage collector look at: all that may be owned, and
// all that says what may run. Each is the path of its collection.
var observed = []string{
	"/api/v1/namespaces", "/api/v1/nodes", "/api/v1/pods", "/api/v1/configmaps", "/api/v1/secrets", "/api/v1/services",
	"/apis/batch/v1/jobs", "/apis/policy/v1/poddisruptionbudgets",
	"/apis/apps/v1/deployments", "/apis/apps/v1/replicasets", "/apis/apps/v1/statefulsets", "/apis/apps/v1/controllerrevisions", "/api/v1/persistentvolumeclaims", "/apis/resource.k8s.io/v1/resourceclaims",
	"/apis/batch.volcano.sh/v1alpha1/jobs", "/apis/batch.volcano.sh/v1alpha1/cronjobs", "/apis/flow.volcano.sh/v1alpha1/jobflows", "/apis/flow.volcano.sh/v1alpha1/jobtemplates", "/apis/scheduling.volcano.sh/v1beta1/podgroups", "/apis/scheduling.volcano.sh/v1beta1/queues",
	"/apis/jobset.x-k8s.io/v1alpha2/jobsets", "/apis/kueue.x-k8s.io/v1beta2/workloads", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues", "/apis/kueue.x-k8s.io/v1beta2/localqueues",
}

// object is one of them as it is in the API server.
type object struct {
	collection string
	unstructured.Unstructured
	pod  *corev1.Pod
	node *corev1.Node
}

func (o *object) id() string { return o.collection + " " + o.GetNamespace() + "/" + o.GetName() }

// path is where the object is in the API.
func (o *object) path() string { return pathOf(o.collection, o.GetNamespace(), o.GetName()) }

// pathOf returns the path of an object, or of the collection in a namespace if there is no name.
func pathOf(collection, namespace, name string) string {
	if namespace != "" {
		i := strings.LastIndex(collection, "/")
		collection = collection[:i] + "/namespaces/" + namespace + collection[i:]
	}
	if name == "" {
		return collection
	}
	return collection + "/" + name
}

// observer keeps what the API server holds, by watches that are read to their end after each step.
type observer struct {
	server  *apiserver.Server
	cursors map[string]*apiserver.Cursor
	objects map[string]*object
	sorted  map[string][]string // ids by collection, nil if it is to be sorted again
	seen    []func(before, now *object)
}

func newObserver(server *apiserver.Server) (*observer, error) {
	o := &observer{server: server, cursors: map[string]*apiserver.Cursor{}, objects: map[string]*object{}, sorted: map[string][]string{}}
	for _, collection := range observed {
		if err := o.open(collection); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (o *observer) open(collection string) error {
	r, err := http.NewRequest(http.MethodGet, "http://hekla.test"+collection+"?watch=true&resourceVersion=0", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	cursor, response := o.server.Watch(r)
	if cursor == nil {
		return fmt.Errorf("watching %s: %d %s", collection, response.Code, response.Body)
	}
	o.cursors[collection] = cursor
	return nil
}

// openAgain watches again what was not served for a while.
func (o *observer) openAgain() {
	for _, collection := range observed {
		if o.cursors[collection].IsClosed() {
			must(o.open(collection) == nil, "watching "+collection)
		}
	}
}

// drain takes in all that has changed.
func (o *observer) drain() {
	for _, collection := range observed {
		cursor := o.cursors[collection]
		for cursor.Pending() > 0 {
			frame, ok := cursor.Next()
			if !ok {
				break
			}
			o.read(collection, frame)
		}
	}
}

func (o *observer) read(collection string, frame []byte) {
	var event struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(frame, &event); err != nil {
		panic(fmt.Sprintf("%s: %v: %s", collection, err, frame))
	}
	now := &object{collection: collection}
	if err := json.Unmarshal(event.Object, &now.Object); err != nil {
		panic(fmt.Sprintf("%s: %v", collection, err))
	}
	switch event.Type {
	case "ADDED", "MODIFIED", "DELETED":
	case "BOOKMARK":
		return
	default:
		panic(fmt.Sprintf("%s: %s", collection, frame))
	}
	var err error
	switch collection {
	case "/api/v1/pods":
		now.pod = &corev1.Pod{}
		err = json.Unmarshal(event.Object, now.pod)
	case "/api/v1/nodes":
		now.node = &corev1.Node{}
		err = json.Unmarshal(event.Object, now.node)
	}
	if err != nil {
		panic(fmt.Sprintf("%s: %v", collection, err))
	}
	id := now.id()
	before := o.objects[id]
	if event.Type == "DELETED" {
		delete(o.objects, id)
		delete(o.sorted, collection)
		now = nil
	} else {
		if before == nil {
			delete(o.sorted, collection)
		}
		o.objects[id] = now
	}
	if before == nil && now == nil {
		return
	}
	for _, f := range o.seen {
		f(before, now)
	}
}

// all returns the objects of a collection in the order of their names.
func (o *observer) all(collection string) []*object {
	ids, ok := o.sorted[collection]
	if !ok {
		for id := range o.objects {
			if strings.HasPrefix(id, collection+" ") {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		o.sorted[collection] = ids
	}
	objects := make([]*object, 0, len(ids))
	for _, id := range ids {
		objects = append(objects, o.objects[id])
	}
	return objects
}

func (o *observer) get(collection, namespace, name string) *object {
	return o.objects[collection+" "+namespace+"/"+name]
}

// owner returns the controller that owns an object, nil if there is none.
func owner(o *object) *metav1.OwnerReference {
	return metav1.GetControllerOf(&o.Unstructured)
}
