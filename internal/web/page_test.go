package web_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/web"
)

// answers stands for the handler of package answers.
var answers = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") == "" {
		http.Error(w, "no token", http.StatusUnauthorized)
		return
	}
	_, _ = fmt.Fprintf(w, "%s %s", r.Method, r.URL.Path)
})

// ask sends a request. Headers are pairs of a name and a value.
func ask(method, path string, headers ...string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	reply := httptest.NewRecorder()
	web.Handler(answers).ServeHTTP(reply, request)
	return reply
}

// A browser reads the page without credentials, and the page asks for answers with those of its reader.
func ExampleHandler() {
	page := ask("GET", "/")
	fmt.Println(page.Code, page.Header().Get("Content-Type"))
	fmt.Println(ask("GET", "/apis/answers.hekla.sh/v1alpha1/overviews/now").Code)
	fmt.Println(ask("GET", "/apis/answers.hekla.sh/v1alpha1/overviews/now", "Authorization", "Bearer me").Body)
	// Output:
	// 200 text/html; charset=utf-8
	// 401
	// GET /apis/answers.hekla.sh/v1alpha1/overviews/now
}

func TestThePageIsReadOnlyAndHasItsFilesOnly(t *testing.T) {
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/", http.StatusOK},
		{"HEAD", "/page.js", http.StatusOK},
		{"GET", "/page.css", http.StatusOK},
		{"POST", "/", http.StatusMethodNotAllowed},
		{"DELETE", "/page.js", http.StatusMethodNotAllowed},
		{"GET", "/dist/page.js", http.StatusNotFound},
		{"GET", "/../page.go", http.StatusNotFound},
		{"GET", "/apisix", http.StatusNotFound},
		{"GET", "/apis", http.StatusUnauthorized}, // of answers
	} {
		reply := ask(c.method, c.path)
		if reply.Code != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, reply.Code, c.want)
		}
		if c.method == "HEAD" && reply.Body.Len() > 0 {
			t.Errorf("HEAD %s has a body of %d bytes", c.path, reply.Body.Len())
		}
	}
	if got := ask("POST", "/apis/x", "Authorization", "Bearer me").Body.String(); got != "POST /apis/x" {
		t.Errorf("answers has got %q", got)
	}
}

func TestEveryReplyHasThePolicy(t *testing.T) {
	for _, path := range []string{"/", "/page.js", "/none", "/apis/x"} {
		header := ask("GET", path).Header()
		for _, rule := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"} {
			if policy := header.Get("Content-Security-Policy"); !strings.Contains(policy, rule) {
				t.Errorf("%s: the policy %q does not say %q", path, policy, rule)
			}
		}
		if header.Get("X-Content-Type-Options") != "nosniff" || header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: the headers are %v", path, header)
		}
	}
}

// What the policy forbids the page does not try: it would be seen as a broken page.
func TestThePageLoadsItsOwnFilesOnly(t *testing.T) {
	html := ask("GET", "/").Body.String()
	loads := regexp.MustCompile(`\b(?:src|href)="([^"]*)"`).FindAllStringSubmatch(html, -1)
	if len(loads) == 0 {
		t.Error("the page loads no files")
	}
	for _, load := range loads {
		if reply := ask("GET", "/"+strings.TrimLeft(load[1], "./")); reply.Code != http.StatusOK {
			t.Errorf("the page loads %s: %d", load[1], reply.Code)
		}
	}
	if inline := regexp.MustCompile(`<style|\sstyle=|\son[a-z]+=|<script(?:[^>]*[^=\w])?>\s*[^<\s]`).FindString(html); inline != "" {
		t.Errorf("the page has %q, which the policy forbids", inline)
	}
}

func TestAFileIsSentAgainOnlyIfItHasChanged(t *testing.T) {
	first := ask("GET", "/page.js")
	tag := first.Header().Get("ETag")
	if again := ask("GET", "/page.js", "If-None-Match", tag); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("with its tag %s: %d, %d bytes", tag, again.Code, again.Body.Len())
	}
	if other := ask("GET", "/page.css", "If-None-Match", tag); other.Code != http.StatusOK {
		t.Errorf("another file with the same tag: %d", other.Code)
	}
}

func TestAPackedFileIsTheSameFile(t *testing.T) {
	plain, packed := ask("GET", "/page.js"), ask("GET", "/page.js", "Accept-Encoding", "br, gzip")
	if packed.Header().Get("Content-Encoding") != "gzip" || packed.Body.Len() >= plain.Body.Len() || plain.Header().Get("Content-Encoding") != "" {
		t.Fatalf("%d bytes plain, %d packed as %q", plain.Body.Len(), packed.Body.Len(), packed.Header().Get("Content-Encoding"))
	}
	reader, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(reader)
	if err != nil || string(unpacked) != plain.Body.String() {
		t.Errorf("the packed file is another: %d bytes, %v", len(unpacked), err)
	}
}
