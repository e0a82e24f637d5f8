package apiserver

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/client/clientset/versioned"
	"hekla.sh/hekla/pkg/client/clientset/versioned/scheme"
	scheduling "hekla.sh/hekla/pkg/client/clientset/versioned/typed/scheduling/v1beta1"
)

// quickClients are the clients of our own kinds, with a quicker decoder for PodGroups and Queues. A cluster of single
// pods has as many PodGroups as pods, and the standard decoder parses each of them five times.
type quickClients struct {
	versioned.Interface
	scheduling *scheduling.SchedulingV1beta1Client
}

func (c quickClients) SchedulingV1beta1() scheduling.SchedulingV1beta1Interface { return c.scheduling }

func newQuickClients(config *rest.Config, transport *http.Client) (versioned.Interface, error) {
	standard, err := versioned.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, err
	}
	quick := rest.CopyConfig(config)
	quick.GroupVersion, quick.APIPath = &v1beta1.SchemeGroupVersion, "/apis"
	quick.NegotiatedSerializer = quickSerializer{scheme.Codecs.WithoutConversion()}
	if quick.UserAgent == "" {
		quick.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	client, err := rest.RESTClientForConfigAndClient(quick, transport)
	if err != nil {
		return nil, err
	}
	return quickClients{standard, scheduling.New(client)}, nil
}

// quickSerializer is the standard serializer but for the decoding of JSON.
type quickSerializer struct{ runtime.NegotiatedSerializer }

func (s quickSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	supported := slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes()) // it is shared
	for i := range supported {
		if supported[i].MediaType != runtime.ContentTypeJSON {
			continue
		}
		supported[i].Serializer = quickJSON{supported[i].Serializer}
		stream := *supported[i].StreamSerializer
		stream.Serializer = quickJSON{stream.Serializer}
		supported[i].StreamSerializer = &stream
	}
	return supported
}

// quickJSON decodes events of a watch, objects that decode themselves, and lists of PodGroups, as the API server writes
// them. There the type of an event comes first, and so do the version and kind of an object. It leaves everything else
// to the standard serializer.
type quickJSON struct{ runtime.Serializer }

func (q quickJSON) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	switch into := into.(type) {
	case *metav1.WatchEvent:
		if q.cutEvent(data, into) {
			return into, &schema.GroupVersionKind{}, nil
		}
	case *v1beta1.PodGroupList:
		if kind, isRead := q.decodeList(data, defaults, into); isRead {
			return into, kind, nil
		}
	case nil:
		if kind, isFound := kindOf(data); isFound {
			o, err := scheme.Scheme.New(kind)
			if decoder, decodesItself := o.(json.Unmarshaler); err == nil && decodesItself {
				if err := decoder.UnmarshalJSON(data); err != nil {
					return nil, &kind, err
				}
				return o, &kind, nil
			}
		}
	}
	return q.Serializer.Decode(data, defaults, into)
}

// The beginnings of what the API server writes.
var (
	typeMark, objectMark  = []byte(`{"type":"`), []byte(`","object":{`)
	versionMark, kindMark = []byte(`{"apiVersion":"`), []byte(`","kind":"`)
)

// cutEvent finds the type and the object of an event, which the caller decodes before it reuses the data.
func (quickJSON) cutEvent(data []byte, event *metav1.WatchEvent) bool {
	kind, rest, ok := cutMarks(data, typeMark, objectMark)
	if !ok {
		return false
	}
	begin := len(data) - len(rest) - 1 // with the brace that belongs to the mark
	object, ok := bytes.CutSuffix(bytes.TrimRight(data[begin:], " \n\r\t"), []byte("}"))
	// If anything follows the object, this is none.
	if !ok || !json.Valid(object) {
		return false
	}
	event.Type, event.Object.Raw = kind, object
	return true
}

// kindOf finds the version and kind of an object.
func kindOf(data []byte) (schema.GroupVersionKind, bool) {
	version, rest, ok := cutMarks(data, versionMark, kindMark)
	if !ok {
		return schema.GroupVersionKind{}, false
	}
	end := bytes.IndexByte(rest, '"')
	group, err := schema.ParseGroupVersion(version)
	if end < 0 || err != nil {
		return schema.GroupVersionKind{}, false
	}
	return group.WithKind(string(rest[:end])), true
}

// cutMarks returns the text between two marks, the first of which begins the data, and what follows the second.
func cutMarks(data, first, second []byte) (text string, rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(data, first)
	if !ok {
		return "", nil, false
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 || bytes.IndexByte(rest[:end], '\\') >= 0 {
		return "", nil, false
	}
	text = string(rest[:end])
	rest, ok = bytes.CutPrefix(rest[end:], second)
	return text, rest, ok
}
