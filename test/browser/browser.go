// Package browser lets tests read the web page as a person does: in Chromium, without a window.
//
// Main type: a [Browser] runs the steps of web/test/steps.mjs, each with arguments and a result.
//
// It needs Node, Chromium and what make web installs in web/node_modules. If one is missing, the test is skipped, but
// it fails if the variable CI is set. It must not know what is tested.
package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Browser is a browser with at most one window.
type Browser struct {
	input  io.WriteCloser
	output *bufio.Reader
}

// executables are the names of Chromium, as distributions have it.
var executables = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Start starts a browser, or skips the test. It ends with the test. web is the folder of the page's source.
func Start(t *testing.T, web string) *Browser {
	t.Helper()
	b := StartIfThere(t, web)
	if b == nil {
		t.Skip("needs a browser")
	}
	return b
}

// StartIfThere is like Start, but returns nil instead of skipping the test, for tests of which the page is a part.
func StartIfThere(t *testing.T, web string) *Browser {
	t.Helper()
	if testing.Short() {
		return nil
	}
	missing := func(what string) *Browser {
		t.Helper()
		if os.Getenv("CI") != "" {
			t.Fatal(what)
		}
		t.Log(what)
		return nil
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return missing("the web page cannot be tested: there is no node; install Node 20 or newer")
	}
	var chromium string
	for _, name := range executables {
		if chromium, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		return missing("the web page cannot be tested: there is no chromium; on Debian: apt-get install chromium")
	}
	if _, err := os.Stat(filepath.Join(web, "node_modules", "playwright-core")); err != nil {
		return missing("the web page cannot be tested: " + web + "/node_modules lacks playwright-core; run make web")
	}
	driver := exec.CommandContext(t.Context(), node, "test/driver.mjs")
	driver.Dir, driver.Stderr, driver.Env = web, os.Stderr, append(os.Environ(), "CHROMIUM="+chromium)
	input, err := driver.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := driver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	driver.Cancel = input.Close // then it closes the browser, and ends
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = driver.Wait()
	})
	return &Browser{input: input, output: bufio.NewReader(output)}
}

// Arguments are those of a step, by name.
type Arguments map[string]any

// Do runs a step and reads its result, unless into is nil.
func (b *Browser) Do(step string, arguments Arguments, into any) error {
	line, err := json.Marshal(map[string]any{"step": step, "args": arguments})
	if err != nil {
		return err
	}
	if _, err := b.input.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("step %s: the browser has ended: %w", step, err)
	}
	answer, err := b.output.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("step %s: the browser has ended: %w", step, err)
	}
	var reply struct {
		Result json.RawMessage `json:"result"`
		Error  string          `json:"error"`
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		return fmt.Errorf("step %s: %w in %s", step, err, answer)
	}
	if reply.Error != "" {
		return fmt.Errorf("step %s: %s", step, reply.Error)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(reply.Result, into)
}

// Must runs a step and returns its result. A failure ends the test.
func Must[T any](t *testing.T, b *Browser, step string, arguments Arguments) T {
	t.Helper()
	var result T
	if err := b.Do(step, arguments, &result); err != nil {
		t.Fatal(err)
	}
	return result
}
