package job

import (
	"errors"
	"strings"
)

// splitWords splits a command as a shell does: at blanks, except inside quotes and behind a backslash. It expands
// nothing.
func splitWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	isWord, isEscaped := false, false
	for _, r := range text {
		switch {
		case isEscaped:
			// Inside double quotes a backslash stays, unless it is before what would end them or before another.
			if quote == '"' && r != '"' && r != '\\' {
				word.WriteRune('\\')
			}
			word.WriteRune(r)
			isEscaped = false
		case r == '\\' && quote != '\'':
			isWord, isEscaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			isWord, quote = true, r
		case quote == 0 && strings.ContainsRune(" \t\r\n", r):
			if isWord {
				words = append(words, word.String())
				word.Reset()
			}
			isWord = false
		default:
			isWord = true
			word.WriteRune(r)
		}
	}
	switch {
	case quote != 0:
		return nil, errors.New("a quotation mark " + string(quote) + " is not closed")
	case isEscaped:
		return nil, errors.New("nothing follows the backslash at the end")
	case isWord:
		words = append(words, word.String())
	}
	return words, nil
}
