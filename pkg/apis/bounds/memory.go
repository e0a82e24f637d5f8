package bounds

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
)

// MaxMemory is how many bytes one document may take when it is decoded. The largest objects that the API server stores
// take a tenth of it.
const MaxMemory = 64 << 20

var errTooLarge = fmt.Errorf("decoded, it would take more than %d MiB of memory", MaxMemory>>20)

const (
	// header is what a map takes in addition to its entries, and room is for how many entries a map has room at least.
	header, room = 96, 8
	// growth is how much more than its elements a list takes while elements are added one by one.
	growth = 2
)

// perElement is what the next element takes of a list or an object, without what it points to.
func perElement(in json.Delim, index int, into reflect.Type) int {
	if into == nil {
		return 0
	}
	switch into.Kind() {
	case reflect.Interface:
		if in == '[' {
			return growth * int(into.Size())
		}
		return perEntry(index, textSize+int(into.Size()))
	case reflect.Map:
		return perEntry(index, int(into.Key().Size()+into.Elem().Size()))
	case reflect.Slice:
		return growth * int(into.Elem().Size())
	}
	return 0
}

var textSize = int(reflect.TypeFor[string]().Size())

// allocated is what the allocator takes for an object of a size: it rounds up.
func allocated(size uintptr) int { return int(size + size/8) }

func perEntry(index, size int) int {
	if index == 0 {
		return header + room*size
	}
	return growth * size
}

// mayGrow reports whether a document of so many parts could take more than [MaxMemory] when it is decoded into a type:
// whether it would if each of them were the largest that the type has.
func mayGrow(parts int, into reflect.Type) bool {
	if parts < MaxMemory>>16 {
		return false // no part is so large
	}
	largest, isKnown := largestPart.Load(into)
	if !isKnown {
		largest = largestOf(into, map[reflect.Type]bool{})
		largestPart.Store(into, largest)
	}
	return parts > MaxMemory/max(largest.(int), 1)
}

// largestPart is the size of the largest part of each type that was decoded.
var largestPart sync.Map // of reflect.Type to int

// largestOf is the size of the largest element, entry or object that a type leads to.
func largestOf(of reflect.Type, seen map[reflect.Type]bool) int {
	if seen[of] {
		return 0
	}
	seen[of] = true
	switch of.Kind() {
	case reflect.Pointer:
		return max(allocated(of.Elem().Size()), largestOf(of.Elem(), seen))
	case reflect.Slice:
		return max(growth*int(of.Elem().Size()), largestOf(of.Elem(), seen))
	case reflect.Array:
		return largestOf(of.Elem(), seen)
	case reflect.Map:
		return max(perEntry(0, int(of.Key().Size()+of.Elem().Size())), largestOf(of.Elem(), seen))
	case reflect.Interface:
		return perEntry(0, textSize+int(of.Size()))
	case reflect.Struct:
		largest := 0
		for i := range of.NumField() {
			largest = max(largest, largestOf(of.Field(i).Type, seen))
		}
		return largest
	}
	return 0
}
