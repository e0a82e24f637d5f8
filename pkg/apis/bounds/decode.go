package bounds

import (
	"errors"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// UnreadableKey is the annotation of an object that is stored and cannot be decoded; its value says why. It is there in
// the memory of readers only: what an object has under this key itself is dropped.
const UnreadableKey = "hekla.sh/unreadable"

// Unreadable says why an object could not be decoded. It has no spec and no status then, and is to be left alone:
// neither acted upon nor written.
func Unreadable(object metav1.Object) (why string, is bool) {
	// Kinds that do not decode themselves have the annotation only if a user put it there.
	if _, decodesItself := object.(Strict); !decodesItself {
		return "", false
	}
	why, is = object.GetAnnotations()[UnreadableKey]
	return why, is
}

// Strict is a kind that decodes itself. A decoder that is to find fields which the kind does not have decodes the
// document a second time, into what Plain returns: a decoder cannot look into what decodes itself.
type Strict interface {
	// Plain is the same object as a type that does not decode itself.
	Plain() any
}

// CheckFields says which fields of a document the kind of an empty object does not have, and what of it cannot be read.
func CheckFields(document []byte, empty any) error {
	if strict, is := empty.(Strict); is {
		empty = strict.Plain()
	}
	unknown, err := kjson.UnmarshalStrict(document, empty)
	return errors.Join(append([]error{err}, unknown...)...)
}

// envelope is what every object has.
type envelope struct {
	Kind       string            `json:"kind"`
	APIVersion string            `json:"apiVersion"`
	Meta       metav1.ObjectMeta `json:"metadata"`
}

// Decode decodes the document of one object into a type that does not decode itself, whose metadata are the last
// arguments. It fails if that cannot be done within bounds, unless the object is stored, and so has a UID: then the
// object is empty but for its metadata, and marked as unreadable.
func Decode(document []byte, plain any, kind *metav1.TypeMeta, meta *metav1.ObjectMeta) error {
	problem := CheckJSON(document, reflect.TypeOf(plain))
	if problem == nil {
		problem = kjson.UnmarshalCaseSensitivePreserveInts(document, plain)
	}
	if problem == nil {
		delete(meta.Annotations, UnreadableKey)
		return nil
	}
	var e envelope
	if err := kjson.UnmarshalCaseSensitivePreserveInts(document, &e); err != nil || e.Meta.UID == "" {
		return problem
	}
	reflect.ValueOf(plain).Elem().SetZero()
	*kind, *meta = metav1.TypeMeta{Kind: e.Kind, APIVersion: e.APIVersion}, e.Meta
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[UnreadableKey] = shortened(problem.Error())
	return nil
}

// maxReason is how long the reason may be that an object carries; it stands in an Event, which has room for 1024 bytes.
const maxReason = 800

func shortened(text string) string {
	if len(text) > maxReason {
		text = text[:maxReason] + "…"
	}
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\n", "; "), "")
}
