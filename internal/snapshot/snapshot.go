package snapshot

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"hekla.sh/hekla/pkg/apis/bounds"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"

	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/pkg/apis"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	kueuev1beta1 "hekla.sh/hekla/pkg/apis/kueue/v1beta1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// NewScheme returns the kinds that decisions depend on, with those from which users and controllers make them.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, nodev1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme, schedulingv1.AddToScheme,
		storagev1.AddToScheme, resourcev1.AddToScheme, resourcev1beta2.AddToScheme, apis.AddToScheme, kueuev1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic("invariant: the API types can be registered: " + err.Error())
		}
	}
	return scheme
}

// APIVersion and Kind are at the beginning of every snapshot.
const APIVersion, Kind = "answers.hekla.sh/v1alpha1", "Snapshot"

// Header is a snapshot without its objects.
type Header struct {
	metav1.TypeMeta `json:",inline"`
	// Taken is when, Cycle the number of the last cycle before it.
	Taken time.Time `json:"taken"`
	Cycle uint64    `json:"cycle"`
	// Version is that of the scheduler.
	Version string `json:"version"`
	// SchedulerNames, DefaultQueue and OpensQueueGates are settings of its command line.
	SchedulerNames  []string `json:"schedulerNames"`
	DefaultQueue    string   `json:"defaultQueue,omitempty"`
	OpensQueueGates bool     `json:"opensQueueGates,omitempty"`
	// Configuration is what is in force, as YAML with the default of every argument, and without passwords.
	Configuration string `json:"configuration"`
	// NamesHidden says that names were replaced.
	NamesHidden bool            `json:"namesHidden,omitempty"`
	Journal     []journal.Entry `json:"journal"` // the oldest first
}

// Snapshot is what a scheduler knows.
type Snapshot struct {
	Header `json:",inline"`
	// Objects are those of the cluster.
	Objects []runtime.Object `json:"-"`
}

// encodedObjects is the name under which objects are in the file, after the header.
const encodedObjects = `"objects":[`

// Write writes a snapshot. The objects have their kinds filled in, and are not changed.
func Write(to io.Writer, header *Header, objects iter.Seq[runtime.Object]) error {
	scheme := NewScheme()
	w := bufio.NewWriterSize(to, 1<<16)
	header.APIVersion, header.Kind = APIVersion, Kind
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	_, _ = w.Write(text[:len(text)-1]) // an error comes back from Flush
	_, _ = w.WriteString("," + encodedObjects)
	isFirst := true
	for o := range objects {
		text, err := encode(o, scheme)
		if err != nil {
			return err
		}
		if !isFirst {
			_, _ = w.WriteString(",")
		}
		isFirst = false
		_, _ = w.WriteString("\n")
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	_, _ = w.WriteString("\n]}\n")
	return w.Flush()
}

// encode returns an object as JSON, without what a snapshot must not have.
func encode(o runtime.Object, scheme *runtime.Scheme) ([]byte, error) {
	kinds, _, err := scheme.ObjectKinds(o)
	if err != nil {
		return nil, err
	}
	o = o.DeepCopyObject()
	o.GetObjectKind().SetGroupVersionKind(kinds[0])
	if m, ok := o.(metav1.Object); ok {
		m.SetManagedFields(nil)
		if annotations := m.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
			delete(annotations, corev1.LastAppliedConfigAnnotation)
			m.SetAnnotations(annotations)
		}
	}
	switch o := o.(type) {
	case *corev1.Pod:
		clean(&o.Spec)
	case *batchv1alpha1.Job:
		o.Spec.Plugins = nil
		for i := range o.Spec.Tasks {
			clean(&o.Spec.Tasks[i].Template.Spec)
		}
	case *batchv1.Job:
		clean(&o.Spec.Template.Spec)
	case *v1beta2.Workload:
		cleanWorkload(o)
	}
	return json.Marshal(o)
}

// cleanWorkload drops what the containers of its pods run, and names each of its nodes in full: the shorter form has
// beginnings and ends of names, which can be neither hidden nor found.
func cleanWorkload(w *v1beta2.Workload) {
	for i := range w.Spec.PodSets {
		clean(&w.Spec.PodSets[i].Template.Spec)
	}
	if w.Status.Admission == nil {
		return
	}
	for i := range w.Status.Admission.PodSetAssignments {
		p := &w.Status.Admission.PodSetAssignments[i]
		if nodes, err := settings.Nodes(p.TopologyAssignment); err == nil { // otherwise no node is known of it
			p.TopologyAssignment = settings.Topology(nodes)
		}
	}
}

// clean drops what containers run.
func clean(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			c.Command, c.Args, c.Env, c.EnvFrom, c.Lifecycle, c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = nil, nil, nil, nil, nil, nil, nil, nil
		}
	}
	spec.EphemeralContainers = nil
}

// Read reads a snapshot. Objects of kinds that are not known are left out, and named once each.
func Read(from io.Reader) (s *Snapshot, leftOut []string, err error) {
	r := bufio.NewReader(from)
	if magic, err := r.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(r)
		if err != nil {
			return nil, nil, fmt.Errorf("the file is compressed and broken: %w", err)
		}
		r = bufio.NewReader(unzipped)
	}
	var read struct {
		Header
		Objects []json.RawMessage `json:"objects"`
	}
	decoder := json.NewDecoder(r)
	if err := decoder.Decode(&read); err != nil {
		return nil, nil, fmt.Errorf("this is no snapshot, or a part of one: %w", err)
	}
	if read.Kind != Kind || read.APIVersion != APIVersion {
		return nil, nil, fmt.Errorf("this is %s of %s, and a snapshot is %s of %s", orNothing(read.Kind), orNothing(read.APIVersion), Kind, APIVersion)
	}
	if len(read.SchedulerNames) == 0 || read.Configuration == "" {
		return nil, nil, errors.New("this snapshot lacks schedulerNames or configuration")
	}
	s = &Snapshot{Header: read.Header}
	kinds := NewScheme()
	objects := serializer.NewCodecFactory(kinds).UniversalDeserializer()
	seen := map[string]bool{}
	for i, text := range read.Objects {
		var o runtime.Object
		kind, err := jsonserializer.DefaultMetaFactory.Interpret(text)
		if err == nil {
			o, err = bounds.DecodeObject(text, *kind, kinds, objects)
		}
		if runtime.IsNotRegisteredError(err) && kind != nil {
			if name := kind.Kind + " of " + kind.GroupVersion().String(); !seen[name] {
				seen[name] = true
				leftOut = append(leftOut, name)
			}
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("objects[%d]: %w", i, err)
		}
		s.Objects = append(s.Objects, o)
	}
	return s, leftOut, nil
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}
