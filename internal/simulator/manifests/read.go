package manifests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"hekla.sh/hekla/internal/snapshot"
	"hekla.sh/hekla/pkg/apis/bounds"
	kueuev1beta1 "hekla.sh/hekla/pkg/apis/kueue/v1beta1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// ConfigurationKey is the key of the ConfigMap under which the scheduler's configuration stands.
const ConfigurationKey = "volcano-scheduler.conf"

// ReadConfiguration reads a file with the scheduler's configuration, or with the ConfigMap that holds it.
func ReadConfiguration(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, fmt.Errorf("%s: the file is empty", path)
	}
	holder := &corev1.ConfigMap{}
	// What is no YAML is left to the reader of configurations, which says where.
	if bounds.UnmarshalYAML(text, holder) != nil || holder.Kind != "ConfigMap" {
		return text, nil
	}
	if holder.Data[ConfigurationKey] == "" {
		return nil, fmt.Errorf("%s: data of ConfigMap %s has no key %s", path, holder.Name, ConfigurationKey)
	}
	return []byte(holder.Data[ConfigurationKey]), nil
}

// Object is one object of the input and where it stands.
type object struct {
	runtime.Object
	place string
}

// reader collects objects.
type reader struct {
	scheme  *runtime.Scheme
	decoder runtime.Decoder
	objects []object
	seen    map[string]string // kind, namespace and name → place
	unnamed []int             // of objects: those that have a generateName only
	stdin   io.Reader
}

func newReader(stdin io.Reader) *reader {
	scheme := NewScheme()
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	return &reader{scheme: scheme, decoder: codecs.UniversalDeserializer(), seen: map[string]string{}, stdin: stdin}
}

// NewScheme returns the kinds of a virtual cluster.
func NewScheme() *runtime.Scheme { return snapshot.NewScheme() }

// kinds are those that a simulation understands, as "group/version Kind".
var kinds = map[string]bool{
	"v1 Node": true, "v1 Pod": true, "v1 Namespace": true, "v1 ResourceQuota": true, "v1 PersistentVolume": true,
	"v1 PersistentVolumeClaim": true, "v1 ConfigMap": true, "storage.k8s.io/v1 StorageClass": true,
	"storage.k8s.io/v1 CSINode": true, "storage.k8s.io/v1 CSIDriver": true, "storage.k8s.io/v1 CSIStorageCapacity": true,
	"storage.k8s.io/v1 VolumeAttachment": true, "resource.k8s.io/v1 ResourceClaim": true,
	"resource.k8s.io/v1 ResourceClaimTemplate": true, "resource.k8s.io/v1 ResourceSlice": true, "resource.k8s.io/v1 DeviceClass": true,
	"resource.k8s.io/v1beta2 DeviceTaintRule": true,
	"v1 LimitRange": true, "node.k8s.io/v1 RuntimeClass": true,
	"scheduling.k8s.io/v1 PriorityClass": true, "policy/v1 PodDisruptionBudget": true,
	"scheduling.volcano.sh/v1beta1 Queue": true, "scheduling.volcano.sh/v1beta1 PodGroup": true,
	"batch.volcano.sh/v1alpha1 Job": true, "batch/v1 Job": true, "topology.volcano.sh/v1alpha1 HyperNode": true,
}

func init() {
	for _, kind := range []string{"ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "Workload", "WorkloadPriorityClass", "AdmissionCheck"} {
		for _, version := range []schema.GroupVersion{kueuev1beta1.GroupVersion, v1beta2.GroupVersion} {
			kinds[version.String()+" "+kind] = true
		}
	}
}

// readPath reads a file, all YAML and JSON files below a folder, or with "-" the standard input.
func (r *reader) readPath(path string) error {
	if path == "-" {
		return r.readDocuments("standard input", r.stdin)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return r.readFile(path)
	}
	found := false
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)) {
			return err
		}
		found = true
		return r.readFile(file)
	})
	if err == nil && !found {
		err = fmt.Errorf("%s holds no .yaml, .yml or .json file", path)
	}
	return err
}

func (r *reader) readFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return r.readDocuments(path, file)
}

func (r *reader) readDocuments(name string, from io.Reader) error {
	for document, err := range bounds.Documents(from) {
		if err != nil {
			return fmt.Errorf("%s, %w", name, err)
		}
		if err := r.readObject(fmt.Sprintf("%s, document %d", name, document.Number), document.JSON); err != nil {
			return err
		}
	}
	return nil
}

// header is what every object begins with, and what a list holds.
type header struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      []json.RawMessage `json:"items"`
	Metadata   struct {
		Namespace    string `json:"namespace"`
		Name         string `json:"name"`
		GenerateName string `json:"generateName"`
	} `json:"metadata"`
}

func (r *reader) readObject(place string, text []byte) error {
	var h header
	if err := bounds.UnmarshalJSON(text, &h); err != nil {
		return fmt.Errorf("%s: this is no Kubernetes object: %w", place, err)
	}
	if h.Kind == "" || h.APIVersion == "" {
		return fmt.Errorf("%s: apiVersion or kind is missing", place)
	}
	if strings.HasSuffix(h.Kind, "List") {
		for i, item := range h.Items {
			if err := r.readObject(fmt.Sprintf("%s, items[%d]", place, i), item); err != nil {
				return err
			}
		}
		return nil
	}
	if !kinds[h.APIVersion+" "+h.Kind] {
		return fmt.Errorf("%s: a simulation knows no kind %s of %s", place, h.Kind, h.APIVersion)
	}
	place = fmt.Sprintf("%s, %s %s", place, h.Kind, strings.TrimPrefix(h.Metadata.Namespace+"/"+cmp.Or(h.Metadata.Name, h.Metadata.GenerateName), "/"))
	decoded, err := r.decode(text, schema.FromAPIVersionAndKind(h.APIVersion, h.Kind))
	if err != nil {
		return fmt.Errorf("%s: %s", place, strings.TrimPrefix(err.Error(), "strict decoding error: "))
	}
	return r.add(place, decoded)
}

// decode decodes an object; a field that its kind does not have, and a quantity that costs too much, is an error.
func (r *reader) decode(text []byte, kind schema.GroupVersionKind) (runtime.Object, error) {
	empty, err := r.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	if _, decodesItself := empty.(bounds.Strict); decodesItself {
		if err := bounds.CheckFields(text, empty); err != nil {
			return nil, err
		}
	}
	return bounds.DecodeObject(text, kind, r.scheme, r.decoder)
}

func (r *reader) add(place string, decoded runtime.Object) error {
	kind := decoded.GetObjectKind().GroupVersionKind().Kind
	accessor, err := meta.Accessor(decoded)
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	if accessor.GetName() == "" && accessor.GetGenerateName() == "" {
		return fmt.Errorf("%s: metadata.name is missing", place)
	}
	if clusterScoped[kind] {
		accessor.SetNamespace("")
	} else if accessor.GetNamespace() == "" {
		accessor.SetNamespace(corev1.NamespaceDefault)
	}
	if accessor.GetName() == "" {
		r.unnamed = append(r.unnamed, len(r.objects))
	} else if key := keyOf(decoded, accessor); r.seen[key] != "" {
		return fmt.Errorf("%s: given twice, first in %s", place, r.seen[key])
	} else {
		r.seen[key] = place
	}
	if config, ok := decoded.(*corev1.ConfigMap); ok && config.Data[ConfigurationKey] == "" {
		return fmt.Errorf("%s: data has no key %s; a simulation has no use for other ConfigMaps", place, ConfigurationKey)
	}
	r.objects = append(r.objects, object{Object: decoded, place: place})
	return nil
}

// keyOf tells objects apart.
func keyOf(o runtime.Object, accessor metav1.Object) string {
	kind := o.GetObjectKind().GroupVersionKind()
	return kind.Group + " " + kind.Kind + " " + accessor.GetNamespace() + "/" + accessor.GetName()
}

// maxGeneratedName is how much of a generateName the API server takes, so that five characters still fit into a label.
const maxGeneratedName = 58

// nameAll gives the objects that have a generateName only their names: five digits in the place of the API
// server's five random characters, counted in the order in which they were read.
func (r *reader) nameAll() {
	for _, i := range r.unnamed {
		o := r.objects[i]
		accessor, _ := meta.Accessor(o.Object)
		base := accessor.GetGenerateName()
		base = base[:min(len(base), maxGeneratedName)]
		for n := 1; accessor.GetName() == "" || r.seen[keyOf(o.Object, accessor)] != ""; n++ {
			accessor.SetName(fmt.Sprintf("%s%05d", base, n))
		}
		r.seen[keyOf(o.Object, accessor)] = o.place
	}
	r.unnamed = nil
}

var clusterScoped = map[string]bool{"Node": true, "Namespace": true, "PersistentVolume": true, "StorageClass": true,
	"PriorityClass": true, "Queue": true, "CSINode": true, "CSIDriver": true, "VolumeAttachment": true, "ResourceSlice": true, "DeviceClass": true,
	"DeviceTaintRule": true, "ClusterQueue": true, "Cohort": true, "ResourceFlavor": true, "WorkloadPriorityClass": true, "AdmissionCheck": true}
