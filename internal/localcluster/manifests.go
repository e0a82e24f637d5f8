package localcluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"hekla.sh/hekla/pkg/apis/bounds"
)

const (
	// fieldManager owns what is applied.
	fieldManager = "hekla"
	// installingPatience is how long a definition may say that it is being installed before it is touched.
	installingPatience = 3 * time.Second
	// touchedAnnotation is what a definition is touched by: when that was.
	touchedAnnotation = "hekla.sh/touched"
)

// ReadManifests reads every .yaml file of a tree, in the order of the paths. A document that is no Kubernetes object is
// an error that names file and document.
func ReadManifests(tree fs.FS) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".yaml" {
			return err
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		read, err := parseManifests(content)
		if err != nil {
			return fmt.Errorf("%s, %w", name, err)
		}
		objects = append(objects, read...)
		return nil
	})
	return objects, err
}

// WithoutPods leaves out what is for our pods on a cluster: a user who runs the programs as processes outside it has no
// use for that.
func WithoutPods(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
		return slices.Contains([]string{"Deployment", "Service", "EndpointSlice", "APIService", "PodDisruptionBudget"}, object.GetKind())
	})
}

// parseManifests splits a YAML file into its objects; empty documents are left out.
func parseManifests(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for document, err := range bounds.Documents(bytes.NewReader(content)) {
		if err != nil {
			return nil, err
		}
		object := new(unstructured.Unstructured)
		if err := bounds.UnmarshalKubernetesJSON(document.JSON, &object.Object); err != nil {
			return nil, document.Problem(err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
			return nil, document.Problem(errors.New("apiVersion, kind and metadata.name must all be there"))
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// Apply applies objects on the server's side and takes over fields that others have set; it returns when every
// CustomResourceDefinition among them is served. Namespaces and definitions go first, the rest keeps its order. A
// ConfigMap that is there already is left as it is: it is what users edit.
func (c *Cluster) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	if len(objects) == 0 {
		return nil
	}
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return err
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return err
	}
	a := applier{cluster: c, client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))}
	ordered := slices.Clone(objects)
	slices.SortStableFunc(ordered, func(x, y *unstructured.Unstructured) int {
		return cmp.Compare(applyRank(x), applyRank(y))
	})
	var definitions []*unstructured.Unstructured
	for _, object := range ordered {
		if applyRank(object) > definitionRank {
			if err := a.awaitServed(ctx, definitions); err != nil {
				return err
			}
			definitions = nil
		}
		if err := a.apply(ctx, object); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), objectName(object), err)
		}
		if applyRank(object) == definitionRank {
			definitions = append(definitions, object)
		}
	}
	return a.awaitServed(ctx, definitions)
}

// The ranks in which objects are applied.
const namespaceRank, definitionRank, otherRank = 0, 1, 2

func applyRank(object *unstructured.Unstructured) int {
	switch object.GroupVersionKind().GroupKind().String() {
	case "Namespace":
		return namespaceRank
	case "CustomResourceDefinition.apiextensions.k8s.io":
		return definitionRank
	}
	return otherRank
}

func objectName(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}

// applier applies one object after the other.
type applier struct {
	cluster *Cluster
	client  dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

// await waits for something that the API server does.
func (a *applier) await(ctx context.Context, what string, condition func(context.Context) error) error {
	return a.cluster.Await(ctx, what, condition, "kube-apiserver")
}

// resource returns where objects of this kind live.
func (a *applier) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return a.client.Resource(mapping.Resource), nil
	}
	return a.client.Resource(mapping.Resource).Namespace(cmp.Or(object.GetNamespace(), metav1.NamespaceDefault)), nil
}

func (a *applier) apply(ctx context.Context, object *unstructured.Unstructured) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	isForced := true
	return a.await(ctx, object.GetKind()+" "+objectName(object), func(ctx context.Context) error {
		resource, err := a.resource(object)
		if err != nil {
			return passing(err)
		}
		if object.GroupVersionKind().GroupKind().String() == "ConfigMap" {
			if _, err = resource.Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager}); apierrors.IsAlreadyExists(err) {
				err = nil
			}
			return passing(err)
		}
		_, err = resource.Patch(ctx, object.GetName(), types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: fieldManager, Force: &isForced})
		return passing(err)
	})
}

// isNotYetJudged reports whether the API server refuses an object only because it has not read the parameters of an
// admission policy yet, which it lists some time after the policy has come. The reason that it gives is that of a
// policy that names none: Invalid.
func isNotYetJudged(err error) bool {
	return err != nil && strings.Contains(err.Error(), "not yet synced to use for admission")
}

// awaitServed waits until the definitions are established and discovery knows their kinds: the two do not happen at the
// same moment.
func (a *applier) awaitServed(ctx context.Context, definitions []*unstructured.Unstructured) error {
	for _, definition := range definitions {
		touched := time.Now()
		err := a.await(ctx, "CustomResourceDefinition "+definition.GetName(), func(ctx context.Context) error {
			err := a.checkServed(ctx, definition)
			if err != nil {
				a.mapper.Reset()
			}
			if errors.Is(err, errNotEstablished) && time.Since(touched) > installingPatience {
				touched = time.Now()
				err = errors.Join(err, a.touch(ctx, definition))
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("CustomResourceDefinition %s is not served: %w", definition.GetName(), err)
		}
	}
	return nil
}

// errNotEstablished says that the API server has not taken a definition up yet.
var errNotEstablished = errors.New("it is not established")

// touch changes a definition in what means nothing. An API server that was ended while it installed a definition goes
// on with that only when the definition changes.
func (a *applier) touch(ctx context.Context, definition *unstructured.Unstructured) error {
	resource, err := a.resource(definition)
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, touchedAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
	_, err = resource.Patch(ctx, definition.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return err
}

func (a *applier) checkServed(ctx context.Context, definition *unstructured.Unstructured) error {
	resource, err := a.resource(definition)
	if err != nil {
		return err
	}
	current, err := resource.Get(ctx, definition.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(current.Object, "status", "conditions")
	if err != nil {
		return err
	}
	isEstablished := slices.ContainsFunc(conditions, func(entry any) bool {
		condition, isMap := entry.(map[string]any)
		return isMap && condition["type"] == "Established" && condition["status"] == "True"
	})
	if !isEstablished {
		return fmt.Errorf("%w; its conditions are %v", errNotEstablished, conditions)
	}
	group, _, err := unstructured.NestedString(current.Object, "spec", "group")
	if err != nil {
		return err
	}
	kind, _, err := unstructured.NestedString(current.Object, "spec", "names", "kind")
	if err != nil {
		return err
	}
	_, err = a.mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind})
	return err
}
