package bounds

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// MaxQuantityLength is how long the text of a quantity may be. Kubernetes' own largest have twenty digits.
	MaxQuantityLength = 64

	// maxExponentDigits is how many digits the exponent of a quantity may have: parsing costs a power of ten of that
	// size.
	maxExponentDigits = 2

	// QuantityPattern is what a schema says of the text of a quantity: the forms that Kubernetes parses, with an
	// exponent of two digits at most. The length is bounded separately.
	QuantityPattern = `^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
)

// CheckQuantity says why a text is not to be parsed as a quantity; nil means that parsing it is cheap, not that it
// succeeds.
func CheckQuantity(text string) error {
	text = strings.TrimSpace(text)
	if !exceeds(text) {
		return nil
	}
	if len(text) > MaxQuantityLength {
		return fmt.Errorf("a quantity has at most %d characters, this one has %d", MaxQuantityLength, len(text))
	}
	return fmt.Errorf("the exponent of a quantity has at most %d digits", maxExponentDigits)
}

// ParseQuantity parses a text from any user.
func ParseQuantity(text string) (resource.Quantity, error) {
	if err := CheckQuantity(text); err != nil {
		return resource.Quantity{}, err
	}
	return resource.ParseQuantity(text)
}

// exceeds reports whether a text has the form of a quantity and is out of bounds. What has not that form is refused by
// the parser at the first wrong byte.
func exceeds[T string | []byte](text T) bool {
	at := 0
	if at < len(text) && (text[at] == '+' || text[at] == '-') {
		at++
	}
	digits := at
	for at < len(text) && (isDigit(text[at]) || text[at] == '.') {
		at++
	}
	if at == digits {
		return false
	}
	suffix := at
	for at < len(text) && strings.IndexByte("eEinumkKMGTP", text[at]) >= 0 {
		at++
	}
	if at > suffix && at < len(text) && (text[at] == '+' || text[at] == '-') {
		at++
	}
	exponent := at
	for at < len(text) && isDigit(text[at]) {
		at++
	}
	return at == len(text) && (len(text) > MaxQuantityLength || at-exponent > maxExponentDigits)
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
