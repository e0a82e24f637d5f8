package v1alpha1

import "hekla.sh/hekla/pkg/apis/bounds"

// plainHyperNode is a HyperNode as any decoder reads it.
type plainHyperNode HyperNode

// UnmarshalJSON decodes a HyperNode within bounds; see [bounds.Decode].
func (h *HyperNode) UnmarshalJSON(document []byte) error {
	return bounds.Decode(document, (*plainHyperNode)(h), &h.TypeMeta, &h.ObjectMeta)
}

// Plain returns the HyperNode as a type that does not decode itself; see [bounds.Strict].
func (h *HyperNode) Plain() any { return (*plainHyperNode)(h) }
