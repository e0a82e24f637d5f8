package bounds

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// shownLength is how much of a value is told: enough to find it.
	shownLength = 40

	// maxProblems is how many quantities of a document are told: enough to see what is wrong with it.
	maxProblems = 4
)

// CheckJSON says which quantities of a document are out of bounds, with field and value, when it is decoded into what
// the type describes, and whether it would take more than [MaxMemory]. Decoding a document for which it says nothing
// costs no more than its length, and no more memory than that.
func CheckJSON(document []byte, into reflect.Type) error {
	isSuspect, parts := scan(document)
	if !isSuspect && !mayGrow(parts, into) {
		return nil
	}
	// The depth of a document is bounded by this, and so that of the recursion below.
	if !json.Valid(document) {
		return errors.New("this is not JSON")
	}
	c := &checker{decoder: json.NewDecoder(bytes.NewReader(document)), memory: len(document)}
	c.decoder.UseNumber()
	if err := c.value(into, ""); err != nil {
		return err
	}
	return errors.Join(c.problems...)
}

// scan reports whether any text or number of a document would be out of bounds if it were a quantity, and counts its
// parts: no fewer than it has lists, objects and elements of these. Nearly no document is suspect, and to find that out
// takes a fraction of the time that decoding takes.
func scan(document []byte) (isSuspect bool, parts int) {
	for at := 0; at < len(document); at++ {
		switch b := document[at]; {
		case b == '"':
			end := endOfText(document, at+1)
			// A quantity reads its text as it is written, escapes and all, but for spaces around it.
			if exceeds(bytes.TrimSpace(document[at+1 : end])) {
				isSuspect = true
			}
			at = end
		case isDigit(b) || b == '-':
			end := at + 1
			for end < len(document) && strings.IndexByte("0123456789+-.eE", document[end]) >= 0 {
				end++
			}
			if exceeds(document[at:end]) {
				isSuspect = true
			}
			at = end - 1
		case b == ',' || b == '{' || b == '[':
			parts++
		}
	}
	return isSuspect, parts
}

// endOfText is where the text ends that begins at a place: at its quotation mark, or with the document.
func endOfText(document []byte, at int) int {
	for at < len(document) && document[at] != '"' {
		if document[at] == '\\' {
			at++
		}
		at++
	}
	return min(at, len(document))
}

// checker goes through a document together with the type that it is decoded into. It sees each value, those under a key
// that comes twice as well, which a map would hide.
type checker struct {
	decoder  *json.Decoder
	problems []error
	memory   int // bytes that the document takes when it is decoded, so far
}

var quantityType = reflect.TypeFor[resource.Quantity]()

// value goes over the next value. A nil type is one of which nothing is kept.
func (c *checker) value(into reflect.Type, path string) error {
	token, err := c.decoder.Token()
	if err != nil {
		return err
	}
	for into != nil && into.Kind() == reflect.Pointer {
		into = into.Elem()
		if token != nil {
			c.memory += allocated(into.Size())
		}
	}
	switch token := token.(type) {
	case json.Delim:
		for index := 0; c.decoder.More(); index++ {
			if c.memory += perElement(token, index, into); c.memory > MaxMemory {
				return errTooLarge
			}
			if err := c.element(token, index, into, path); err != nil {
				return err
			}
		}
		_, err = c.decoder.Token()
	case string:
		c.leaf(into, path, token)
	case json.Number:
		c.leaf(into, path, token.String())
	}
	return err
}

// element goes over an element of a list, or over a key of an object and its value.
func (c *checker) element(in json.Delim, index int, into reflect.Type, path string) error {
	if in == '[' {
		switch {
		case into == nil || into.Kind() == reflect.Interface:
		case into.Kind() == reflect.Slice || into.Kind() == reflect.Array:
			into = into.Elem()
		default:
			into = nil
		}
		return c.value(into, fmt.Sprintf("%s[%d]", path, index))
	}
	token, err := c.decoder.Token()
	if err != nil {
		return err
	}
	key, _ := token.(string)
	return c.value(typeOf(into, key), strings.TrimPrefix(path+"."+key, "."))
}

func (c *checker) leaf(into reflect.Type, path, text string) {
	if into != quantityType || len(c.problems) == maxProblems {
		return
	}
	if err := CheckQuantity(text); err != nil {
		if len(text) > shownLength {
			text = text[:shownLength] + "…"
		}
		c.problems = append(c.problems, fmt.Errorf("%s: Invalid value: %q: %w", path, text, err))
	}
}

// typeOf is the type of what stands under a key, nil if the type has no such key.
func typeOf(into reflect.Type, key string) reflect.Type {
	switch {
	case into == nil:
		return nil
	case into.Kind() == reflect.Interface:
		return into
	case into.Kind() == reflect.Map:
		return into.Elem()
	case into.Kind() != reflect.Struct:
		return nil
	}
	for i := range into.NumField() {
		field := into.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		// Some decoders do not mind the case of a key.
		if strings.EqualFold(name, key) && name != "" {
			return field.Type
		}
		if name == "" && field.Anonymous {
			if found := typeOf(field.Type, key); found != nil {
				return found
			}
		}
	}
	return nil
}
