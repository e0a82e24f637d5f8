package topology

import (
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"hekla.sh/hekla/pkg/apis/bounds"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

// selectors are what the members of a HyperNode say.
type selectors struct {
	members  []string // HyperNodes, in the order given
	names    map[string]bool
	patterns []*regexp.Regexp
	labels   []labels.Selector
	problem  string // what cannot be read; then it selects nothing
}

// readSelectors reads the members of a HyperNode. The API server admits nothing that cannot be read, but may have been
// asked by older rules than ours.
func readSelectors(object *topologyv1alpha1.HyperNode) selectors {
	s := selectors{names: map[string]bool{}}
	for i := range object.Spec.Members {
		path := field.NewPath("spec", "members").Index(i)
		if err := s.read(&object.Spec.Members[i], path); err != nil {
			return selectors{problem: err.Error()}
		}
	}
	return s
}

// Validate says what is wrong with a HyperNode by itself, and with each of its members.
func Validate(object *topologyv1alpha1.HyperNode) field.ErrorList {
	path := field.NewPath("spec", "members")
	if len(object.Spec.Members) == 0 {
		return field.ErrorList{field.Required(path, "member must have at least one member: a HyperNode of no members is of no use")}
	}
	var problems field.ErrorList
	for i := range object.Spec.Members {
		s := selectors{names: map[string]bool{}}
		if err := s.read(&object.Spec.Members[i], path.Index(i)); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

func (s *selectors) read(m *topologyv1alpha1.MemberSpec, path *field.Path) *field.Error {
	by := path.Child("selector")
	switch selector := &m.Selector; {
	case ways(selector) > 1:
		return field.Forbidden(by, "member selector cannot have both regexMatch and exactMatch: Only one of ExactMatch, RegexMatch, or LabelMatch can be specified: exactly one of exactMatch, regexMatch and labelMatch is needed")
	case m.Type != topologyv1alpha1.MemberTypeNode && m.Type != topologyv1alpha1.MemberTypeHyperNode:
		return field.Invalid(path.Child("type"), m.Type, fmt.Sprintf("unknown member type %s: there are %s and %s", m.Type,
			topologyv1alpha1.MemberTypeNode, topologyv1alpha1.MemberTypeHyperNode))
	case m.Type == topologyv1alpha1.MemberTypeHyperNode && selector.ExactMatch == nil:
		return field.Required(by.Child("exactMatch"), "HyperNodes are members by exactMatch only")
	case m.Type == topologyv1alpha1.MemberTypeHyperNode:
		s.members = append(s.members, selector.ExactMatch.Name)
	case selector.ExactMatch != nil:
		s.names[selector.ExactMatch.Name] = true
	case selector.RegexMatch != nil:
		pattern, err := bounds.ParsePattern(selector.RegexMatch.Pattern)
		if err != nil {
			return field.Invalid(by.Child("regexMatch", "pattern"), selector.RegexMatch.Pattern, "member regexMatch pattern is invalid: "+err.Error())
		}
		s.patterns = append(s.patterns, pattern)
	case selector.LabelMatch != nil:
		parsed, err := metav1.LabelSelectorAsSelector(selector.LabelMatch)
		if err != nil {
			return field.Invalid(by.Child("labelMatch"), metav1.FormatLabelSelector(selector.LabelMatch), err.Error())
		}
		if !parsed.Empty() {
			s.labels = append(s.labels, parsed)
		}
	default:
		return field.Required(by, "member selector must have one of regexMatch or exactMatch: Either ExactMatch or RegexMatch or LabelMatch must be specified: exactly one of exactMatch, regexMatch and labelMatch is needed")
	}
	return nil
}

// ways counts in how many ways a member is selected.
func ways(selector *topologyv1alpha1.MemberSelector) (count int) {
	for _, is := range []bool{selector.ExactMatch != nil, selector.RegexMatch != nil, selector.LabelMatch != nil} {
		if is {
			count++
		}
	}
	return count
}

// isDynamic reports whether nodes are selected by more than their names.
func (s *selectors) isDynamic() bool { return len(s.patterns)+len(s.labels) > 0 }

// selects reports whether a node is a member itself.
func (s *selectors) selects(name string, of map[string]string) bool {
	if s.names[name] {
		return true
	}
	for _, pattern := range s.patterns {
		if pattern.MatchString(name) {
			return true
		}
	}
	for _, selector := range s.labels {
		if selector.Matches(labels.Set(of)) {
			return true
		}
	}
	return false
}
