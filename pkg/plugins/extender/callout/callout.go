package callout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hekla.sh/hekla/pkg/apis/bounds"
)

// MaxAnswer is the largest answer in bytes: a thousand times the usual, and too small to fill the memory.
const MaxAnswer = 1 << 20

// ErrSilent is the error for an extender that cannot be reached, or does not answer within the timeout.
var ErrSilent = errors.New("it does not answer")

var (
	errTooLong    = fmt.Errorf("its answer is longer than %d bytes", MaxAnswer)
	errUnreadable = errors.New("its answer is not the JSON that is expected")
)

// Extender is the address of an extender.
type Extender struct {
	prefix string
	client http.Client
}

// New returns an extender at a URL, which must be absolute. The timeout is for each call.
func New(prefix string, timeout time.Duration) (*Extender, error) {
	at, err := url.Parse(prefix)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return nil, fmt.Errorf("%q is not a URL such as http://127.0.0.1:8080", prefix)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Extender{prefix: strings.TrimRight(prefix, "/"), client: http.Client{Timeout: timeout, CheckRedirect: stay}}, nil
}

// Call sends a question to a verb and decodes the answer. With a nil answer, any answer is accepted.
func (e *Extender) Call(verb string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("the question cannot be written as JSON: %w", err)
	}
	response, err := e.client.Post(e.prefix+"/"+strings.TrimLeft(verb, "/"), "application/json", bytes.NewReader(body))
	if err != nil {
		return ErrSilent
	}
	defer response.Body.Close()
	// Reading it to its end keeps the connection for the next call.
	content, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return ErrSilent
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("it answers with status %d", response.StatusCode)
	case answer == nil:
		return nil
	case len(content) > MaxAnswer:
		return errTooLong
	case bounds.UnmarshalJSON(content, answer) != nil:
		return errUnreadable
	}
	return nil
}
