package pods

import (
	"encoding/binary"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// keyMaker writes a template as text that is equal for equal templates, in memory that it uses again.
type keyMaker struct {
	buffer []byte
	names  []corev1.ResourceName
	digits [32]byte
}

// key returns the text of a template. It is valid until the next call.
func (m *keyMaker) key(t *Template) []byte {
	m.buffer = m.buffer[:0]
	// Containers are most of a spec, and need not be written in the form of the API.
	rest := t.Spec.object()
	rest.InitContainers, rest.Containers = nil, nil
	m.message(&rest)
	m.containers(t.Spec.InitContainers)
	m.containers(t.Spec.Containers)
	if r := t.resized; r != nil {
		m.message(r)
	}
	return m.buffer
}

// ofList returns the text of amounts. It is valid until the next call.
func (m *keyMaker) ofList(list corev1.ResourceList) []byte {
	m.buffer = m.buffer[:0]
	m.list(list)
	return m.buffer
}

// message is an object of the API that writes itself, in one form for equal objects: maps are sorted.
type message interface {
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
}

func (m *keyMaker) message(o message) {
	size := o.Size()
	m.number(size)
	start := len(m.buffer)
	m.buffer = slices.Grow(m.buffer, size)[:start+size]
	if _, err := o.MarshalToSizedBuffer(m.buffer[start:]); err != nil {
		panic("invariant: a part of a pod cannot be written: " + err.Error())
	}
}

func (m *keyMaker) number(n int) { m.buffer = binary.AppendUvarint(m.buffer, uint64(n)) }

func (m *keyMaker) text(s string) {
	m.number(len(s))
	m.buffer = append(m.buffer, s...)
}

func (m *keyMaker) containers(containers []corev1.Container) {
	m.number(len(containers))
	for i := range containers {
		c := &containers[i]
		m.text(c.Name)
		m.text(c.Image)
		if c.RestartPolicy == nil {
			m.number(0)
		} else {
			m.number(1)
			m.text(string(*c.RestartPolicy))
		}
		m.list(c.Resources.Requests)
		m.list(c.Resources.Limits)
		m.number(len(c.Ports))
		for p := range c.Ports {
			m.message(&c.Ports[p])
		}
		m.number(len(c.Resources.Claims))
		for k := range c.Resources.Claims {
			m.text(c.Resources.Claims[k].Name)
			m.text(c.Resources.Claims[k].Request)
		}
	}
}

func (m *keyMaker) list(list corev1.ResourceList) {
	m.names = m.names[:0]
	for name := range list {
		m.names = append(m.names, name)
	}
	slices.Sort(m.names)
	m.number(len(m.names))
	for _, name := range m.names {
		m.text(string(name))
		quantity := list[name]
		number, suffix := quantity.CanonicalizeBytes(m.digits[:0])
		m.number(len(number))
		m.buffer = append(m.buffer, number...)
		m.number(len(suffix))
		m.buffer = append(m.buffer, suffix...)
	}
}
