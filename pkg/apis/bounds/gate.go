package bounds

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// UnmarshalJSON decodes a document from any user, after checking that it is within bounds.
func UnmarshalJSON(document []byte, into any) error {
	if err := CheckJSON(document, reflect.TypeOf(into)); err != nil {
		return err
	}
	return json.Unmarshal(document, into)
}

// UnmarshalKubernetesJSON decodes a document as the API server does: keys are spelled exactly, and whole numbers stay
// whole.
func UnmarshalKubernetesJSON(document []byte, into any) error {
	if err := CheckJSON(document, reflect.TypeOf(into)); err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(document, into)
}

// UnmarshalStrictJSON is the same, and returns the fields that the type does not have.
func UnmarshalStrictJSON(document []byte, into any) (unknown []error, err error) {
	if err := CheckJSON(document, reflect.TypeOf(into)); err != nil {
		return nil, err
	}
	return kjson.UnmarshalStrict(document, into)
}

// YAMLToJSON turns a document of YAML from any user into JSON. A key that comes twice is an error.
func YAMLToJSON(document []byte) ([]byte, error) { return yaml.YAMLToJSONStrict(document) }

// UnmarshalYAML decodes a document of YAML from any user, as [UnmarshalKubernetesJSON] does.
func UnmarshalYAML(document []byte, into any) error {
	text, err := yaml.YAMLToJSON(document)
	if err != nil {
		return err
	}
	return UnmarshalKubernetesJSON(text, into)
}

// UnmarshalStrictYAML decodes one as JSON, and a field that the type does not have, or one that comes twice, is an
// error.
func UnmarshalStrictYAML(document []byte, into any) error {
	text, err := YAMLToJSON(document)
	if err != nil {
		return err
	}
	if err := CheckJSON(text, reflect.TypeOf(into)); err != nil {
		return err
	}
	return yaml.UnmarshalStrict(document, into)
}

// FromUnstructured fills an object from fields that any user wrote.
func FromUnstructured(fields map[string]any, into any) error {
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	if err := CheckJSON(text, reflect.TypeOf(into)); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(fields, into)
}

// DecodeObject decodes a document of a known kind with a decoder of objects, such as that of a scheme's codecs.
func DecodeObject(document []byte, kind schema.GroupVersionKind, kinds runtime.ObjectCreater, decoder runtime.Decoder) (runtime.Object, error) {
	empty, err := kinds.New(kind)
	if err != nil {
		return nil, err
	}
	if err := CheckJSON(document, reflect.TypeOf(empty)); err != nil {
		return nil, err
	}
	object, _, err := decoder.Decode(document, &kind, nil)
	return object, err
}

// ParseNumber parses a finite number.
func ParseNumber(text string) (float64, error) {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, err
	}
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return 0, fmt.Errorf("%q is no finite number", text)
	}
	return number, nil
}

// MaxPatternLength is how long a regular expression may be: matching costs its length for each byte that is matched.
const MaxPatternLength = 1024

// ParsePattern parses a regular expression.
func ParsePattern(text string) (*regexp.Regexp, error) {
	if len(text) > MaxPatternLength {
		return nil, fmt.Errorf("a pattern has at most %d characters, this one has %d", MaxPatternLength, len(text))
	}
	return regexp.Compile(text)
}
