package definitions

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/bounds"
	flow "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topology "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

// DroppedReason is the reason of the Event of a definition that drops fields.
const DroppedReason = "FieldsDropped"

// specs are the kinds whose specs users write.
var specs = map[schema.GroupVersionResource]reflect.Type{
	batch.GroupVersion.WithResource("jobs"):           reflect.TypeFor[batch.JobSpec](),
	batch.GroupVersion.WithResource("cronjobs"):       reflect.TypeFor[batch.CronJobSpec](),
	flow.GroupVersion.WithResource("jobflows"):        reflect.TypeFor[flow.JobFlowSpec](),
	flow.GroupVersion.WithResource("jobtemplates"):    reflect.TypeFor[batch.JobSpec](),
	scheduling.GroupVersion.WithResource("podgroups"): reflect.TypeFor[scheduling.PodGroupSpec](),
	scheduling.GroupVersion.WithResource("queues"):    reflect.TypeFor[scheduling.QueueSpec](),
	topology.GroupVersion.WithResource("hypernodes"):  reflect.TypeFor[topology.HyperNodeSpec](),
}

// served is the part of a published schema that says which fields there are.
type served struct {
	Kinds      []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
	Properties map[string]served         `json:"properties"`
	Items      *served                   `json:"items"`
	Additional json.RawMessage           `json:"additionalProperties"`
	Keeps      bool                      `json:"x-kubernetes-preserve-unknown-fields"`
}

// Dropped returns, for each resource that the API server has, the fields of specs that its definition does not know. The API server
// drops them from what users write: a definition of an older version may have been left, or applied again.
func Dropped(api discovery.DiscoveryInterface) (map[schema.GroupVersionResource][]string, error) {
	paths, err := api.OpenAPIV3().Paths()
	if err != nil {
		return nil, fmt.Errorf("asking the API server for its schemas: %w", err)
	}
	dropped := map[schema.GroupVersionResource][]string{}
	for resource, spec := range specs {
		group, isServed := paths["apis/"+resource.GroupVersion().String()]
		if !isServed {
			continue
		}
		raw, err := group.Schema(runtime.ContentTypeJSON)
		if err != nil {
			return nil, fmt.Errorf("asking the API server for its schemas of %s: %w", resource.GroupVersion(), err)
		}
		var document struct {
			Components struct {
				Schemas map[string]served `json:"schemas"`
			} `json:"components"`
		}
		if err := bounds.UnmarshalJSON(raw, &document); err != nil {
			return nil, fmt.Errorf("reading the schemas of %s: %w", resource.GroupVersion(), err)
		}
		for _, published := range document.Components.Schemas {
			if len(published.Kinds) == 1 && strings.ToLower(published.Kinds[0].Kind)+"s" == resource.Resource {
				if lacks := missing(spec, published.Properties["spec"], "spec"); len(lacks) > 0 {
					dropped[resource] = lacks
				}
			}
		}
	}
	return dropped, nil
}

// missing returns the fields of a type of ours that a schema lacks, in the order of the type; of a field that it lacks, those below
// are not named.
func missing(typ reflect.Type, in served, path string) []string {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case in.Keeps:
		return nil
	case typ.Kind() == reflect.Slice && in.Items != nil:
		return missing(typ.Elem(), *in.Items, path+"[]")
	case typ.Kind() == reflect.Map && len(in.Additional) > 0:
		var values served
		if bounds.UnmarshalJSON(in.Additional, &values) != nil {
			return nil // any value will do
		}
		return missing(typ.Elem(), values, path+"[]")
	case typ.Kind() != reflect.Struct || !strings.HasPrefix(typ.PkgPath(), "hekla.sh/hekla/pkg/apis/"):
		return nil // what is Kubernetes' own is for Kubernetes to define
	}
	var lacks []string
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") {
			lacks = append(lacks, missing(field.Type, in, path)...)
		}
		if name == "" || name == "-" {
			continue
		}
		below, is := in.Properties[name]
		if !is {
			lacks = append(lacks, path+"."+name)
			continue
		}
		lacks = append(lacks, missing(field.Type, below, path+"."+name)...)
	}
	return lacks
}

// WatchFields looks at once and then after each period, until the context ends, and tells of each resource that drops fields when it
// is first seen to, and again if it drops others. Schemas are large: they are read again only when one of them has changed.
func WatchFields(ctx context.Context, api discovery.DiscoveryInterface, period time.Duration, tell func(schema.GroupVersionResource, []string)) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	var last string
	told := map[schema.GroupVersionResource]string{}
	for {
		// What could not be asked is asked again next time.
		if version, err := version(api); err == nil && version != last {
			if dropped, err := Dropped(api); err == nil {
				last = version
				for resource := range specs {
					fields := strings.Join(dropped[resource], ", ")
					if fields != "" && fields != told[resource] {
						tell(resource, dropped[resource])
					}
					told[resource] = fields
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// version changes whenever a schema does.
func version(api discovery.DiscoveryInterface) (string, error) {
	paths, err := api.OpenAPIV3().Paths()
	if err != nil {
		return "", err
	}
	var versions []string
	for _, group := range []schema.GroupVersion{batch.GroupVersion, flow.GroupVersion, scheduling.GroupVersion, topology.GroupVersion} {
		if path, is := paths["apis/"+group.String()]; is {
			versions = append(versions, path.ServerRelativeURL()) // with a hash of the schema
		}
	}
	return strings.Join(versions, " "), nil
}

// maxNamed is how many fields a message names.
const maxNamed = 20

// DroppedMessage says what a definition drops, and how it is mended.
func DroppedMessage(resource schema.GroupVersionResource, fields []string) string {
	named := strings.Join(fields[:min(len(fields), maxNamed)], ", ")
	if more := len(fields) - maxNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("the definition %s is not that of this version: what is written to %s is dropped; apply Hekla's definition (installer/crds) to mend it",
		Name(resource), named)
}
