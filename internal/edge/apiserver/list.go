package apiserver

import (
	"bytes"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// itemsMark ends what comes before the first object of a list, as the API server writes it.
var itemsMark = []byte(`","items":[`)

// decodeList decodes a list of PodGroups, each of which decodes itself. The standard serializer reads the rest, without
// the objects: it would go through each of them twice more. It reports false, and has changed nothing, for a list in
// any other form, or with an object that is not valid.
func (q quickJSON) decodeList(data []byte, defaults *schema.GroupVersionKind, list *v1beta1.PodGroupList) (*schema.GroupVersionKind, bool) {
	_, objects, ok := cutMarks(data, versionMark, itemsMark)
	if !ok || len(list.Items) > 0 {
		return nil, false
	}
	begin := len(data) - len(objects)
	var items []v1beta1.PodGroup
	for {
		length := objectLength(objects)
		if length == 0 {
			return nil, false
		}
		items = append(items, v1beta1.PodGroup{})
		if items[len(items)-1].UnmarshalJSON(objects[:length]) != nil {
			return nil, false
		}
		objects = objects[length:]
		if !bytes.HasPrefix(objects, []byte(",")) {
			break
		}
		objects = objects[1:]
	}
	var rest v1beta1.PodGroupList
	read, kind, err := q.Serializer.Decode(slices.Concat(data[:begin], objects), defaults, &rest)
	if err != nil || read != runtime.Object(&rest) || len(rest.Items) > 0 {
		return nil, false
	}
	*list, list.Items = rest, items
	return kind, true
}

// objectLength returns how long the JSON object at the beginning of data is, 0 if there is none. It need not be a valid
// one.
func objectLength(data []byte) int {
	if !bytes.HasPrefix(data, []byte("{")) {
		return 0
	}
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		}
	}
	return 0
}
