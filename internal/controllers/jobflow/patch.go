package jobflow

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/lru"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/bounds"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

// patchField is where a patch stands in a flow, for sentences about what is wrong with it.
const patchField = "patch.jobSpec"

// specOf returns the spec of the Job of a flow: that of the template, with the patch merged into it. It is a strategic
// merge patch, as of kubectl patch, by the patchStrategy of the types. A task without a name goes by its default one,
// default<position>, so that a patch can speak of it.
func specOf(template *flowapi.JobTemplate, flow *flowapi.Flow) (*batch.JobSpec, error) {
	spec := template.Spec.DeepCopy()
	if flow.Patch == nil || len(flow.Patch.JobSpec.Raw) == 0 {
		return spec, nil
	}
	patch, err := checkedPatch(flow.Patch.JobSpec.Raw)
	if err != nil || len(patch) == 0 {
		return spec, err
	}
	for i := range spec.Tasks {
		if spec.Tasks[i].Name == "" {
			spec.Tasks[i].Name = batch.DefaultTaskSpec + strconv.Itoa(i)
		}
	}
	original, err := toMap(spec)
	if err != nil {
		return nil, err
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(batch.JobSpec{})
	if err != nil {
		return nil, err
	}
	mergePlugins(original, patch)
	// The merging eats what it is given, and the order is asked for afterwards.
	merged, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(
		runtime.DeepCopyJSON(original), runtime.DeepCopyJSON(patch), schema)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", patchField, err)
	}
	keepOrder(merged, original, patch, schema)
	content, err := json.Marshal(merged)
	if err != nil {
		return nil, err
	}
	result := &batch.JobSpec{}
	if err := decode(content, result); err != nil {
		return nil, fmt.Errorf("the template with %s: %w", patchField, err)
	}
	return result, nil
}

// mergePlugins takes the plugins out of a patch and merges them by name, which the merging cannot do with a map of
// lists. The arguments of a plugin are replaced as a whole.
func mergePlugins(original, patch map[string]any) {
	changes, isMap := patch["plugins"].(map[string]any)
	if !isMap {
		return // there are none, or null
	}
	delete(patch, "plugins")
	plugins := asMap(original["plugins"])
	if plugins == nil || directive(changes) != "" {
		plugins = map[string]any{}
	}
	if directive(changes) == "delete" {
		changes = nil
	}
	for name, arguments := range changes {
		if arguments == nil {
			delete(plugins, name)
		} else if name != "$patch" {
			plugins[name] = arguments
		}
	}
	original["plugins"] = plugins
}

// specs remembers patched specs: a merge takes half a millisecond, and each event of a Job asks for those of all flows
// that wait. What it returns is not to be changed.
type specs struct{ merged *lru.Cache }

// specsKept is room for the flows of several large JobFlows, at some kilobytes each.
const specsKept = 2048

// mergeKey is all that a patched spec follows from.
type mergeKey struct {
	template types.UID
	version  string
	patch    string
}

type mergeResult struct {
	spec *batch.JobSpec
	err  error
}

func newSpecs() *specs { return &specs{lru.New(specsKept)} }

// specOf is the function specOf, asked once.
func (s *specs) specOf(template *flowapi.JobTemplate, flow *flowapi.Flow) (*batch.JobSpec, error) {
	if why, is := bounds.Unreadable(template); is {
		return nil, fmt.Errorf("the template was stored in a form that cannot be read: %s", why)
	}
	if flow.Patch == nil {
		return &template.Spec, nil
	}
	key := mergeKey{template.UID, template.ResourceVersion, string(flow.Patch.JobSpec.Raw)}
	if known, isKnown := s.merged.Get(key); isKnown {
		result := known.(mergeResult)
		return result.spec, result.err
	}
	spec, err := specOf(template, flow)
	s.merged.Add(key, mergeResult{spec, err})
	return spec, err
}

// checkedPatch parses a patch and checks that a JobSpec has every field of it, of the type that it has.
func checkedPatch(raw []byte) (map[string]any, error) {
	patch := map[string]any{}
	if err := decode(raw, &patch); err != nil {
		return nil, fmt.Errorf("%s: %w", patchField, err)
	}
	bare, err := json.Marshal(withoutDirectives(patch))
	if err != nil {
		return nil, err
	}
	if err := decode(bare, &batch.JobSpec{}); err != nil {
		return nil, fmt.Errorf("%s: %w", patchField, err)
	}
	tasks, _ := patch["tasks"].([]any)
	for i, entry := range tasks {
		task, _ := entry.(map[string]any)
		if name, _ := task["name"].(string); name == "" && directive(task) == "" {
			return nil, fmt.Errorf("%s.tasks[%d].name: required: it says which task of the template to change, or which to add",
				patchField, i)
		}
	}
	return patch, nil
}

// decode reads JSON from a user. A field that the type does not know is an error.
func decode(content []byte, into any) error {
	unknown, err := bounds.UnmarshalStrictJSON(content, into)
	return errors.Join(append([]error{err}, unknown...)...)
}

// withoutDirectives returns a copy of a patch without what speaks to the merging itself ($patch, $setElementOrder/…).
func withoutDirectives(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		for key, child := range value {
			if !strings.HasPrefix(key, "$") {
				kept[key] = withoutDirectives(child)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i := range value {
			kept[i] = withoutDirectives(value[i])
		}
		return kept
	}
	return value
}

// keepOrder sorts the elements of merged lists by the template's order, and new ones after them. The merge puts new
// ones first. But a variable may only use variables before it, and init containers run in their order. Lists whose
// order the patch itself gives, or that it replaces, stay.
func keepOrder(merged, original, patch map[string]any, schema strategicpatch.LookupPatchMeta) {
	for key, change := range patch {
		switch change := change.(type) {
		case map[string]any:
			after, isMap := merged[key].(map[string]any)
			before, wasMap := original[key].(map[string]any)
			if within, _, err := schema.LookupPatchMetadataForStruct(key); err == nil && isMap && wasMap {
				keepOrder(after, before, change, within)
			}
		case []any:
			after, isList := merged[key].([]any)
			before, wasList := original[key].([]any)
			within, meta, err := schema.LookupPatchMetadataForSlice(key)
			by := meta.GetPatchMergeKey()
			if err != nil || !isList || !wasList || by == "" || patch["$setElementOrder/"+key] != nil {
				continue
			}
			keepListOrder(elements{after, by}, elements{before, by}, elements{change, by}, within)
		}
	}
}

func keepListOrder(merged, original, patch elements, schema strategicpatch.LookupPatchMeta) {
	if slices.ContainsFunc(patch.list, func(e any) bool { return directive(e) == "replace" }) {
		return
	}
	slices.SortStableFunc(merged.list, func(x, y any) int { return cmp.Compare(original.place(x), original.place(y)) })
	for _, change := range patch.list {
		after, before := merged.place(change), original.place(change)
		if after == len(merged.list) || before == len(original.list) {
			continue
		}
		keepOrder(asMap(merged.list[after]), asMap(original.list[before]), asMap(change), schema)
	}
}

// elements are a list that is merged by a key.
type elements struct {
	list []any
	key  string
}

// place is where in the list the element with the same key stands, or behind its end.
func (e elements) place(element any) int {
	at := slices.IndexFunc(e.list, func(other any) bool { return asMap(other)[e.key] == asMap(element)[e.key] })
	if at < 0 {
		return len(e.list)
	}
	return at
}

func asMap(value any) map[string]any {
	found, _ := value.(map[string]any)
	return found
}

// directive is what an element says to the merging: replace, merge or delete.
func directive(value any) string {
	found, _ := asMap(value)["$patch"].(string)
	return found
}

// toMap returns the JSON of a spec without nulls, which in a list of the template would not be a list.
func toMap(spec *batch.JobSpec) (map[string]any, error) {
	content, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	result := map[string]any{}
	if err := bounds.UnmarshalKubernetesJSON(content, &result); err != nil {
		return nil, err
	}
	dropNulls(result)
	return result, nil
}

func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			if child == nil {
				delete(value, key)
			} else {
				dropNulls(child)
			}
		}
	case []any:
		for i := range value {
			dropNulls(value[i])
		}
	}
}
