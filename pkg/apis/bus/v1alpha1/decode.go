package v1alpha1

import "hekla.sh/hekla/pkg/apis/bounds"

// plainCommand is a Command as any decoder reads it.
type plainCommand Command

// UnmarshalJSON decodes a Command within bounds; see [bounds.Decode].
func (c *Command) UnmarshalJSON(document []byte) error {
	return bounds.Decode(document, (*plainCommand)(c), &c.TypeMeta, &c.ObjectMeta)
}

// Plain returns the Command as a type that does not decode itself; see [bounds.Strict].
func (c *Command) Plain() any { return (*plainCommand)(c) }
