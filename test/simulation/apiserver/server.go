package apiserver

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apiserver/pkg/admission"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	restclient "k8s.io/client-go/rest"

	"go.etcd.io/etcd/client/v3/kubernetes"
)

// Options say what a server is made of. The zero value serves the kinds of Kubernetes to all users.
type Options struct {
	// Seed decides UIDs and generated names.
	Seed int64
	// From is the state to start with: definitions take seconds to create and no time to restore.
	From *Snapshot
	// User returns who makes a request; without it all are members of system:masters.
	User func(*http.Request) user.Info
	// Authorize decides what a user may do; without it everything.
	Authorize authorizer.Authorizer
	// Webhooks is asked in place of the addresses of webhooks, in the goroutine that serves the request or in one that
	// it waits for. What a webhook reads it reads by [Server.Loopback]. Without it no webhook answers.
	Webhooks http.RoundTripper
	// Admission is asked after the API server's own plugins, before policies.
	Admission admission.Interface
	// WithoutPlugins names plugins of the API server that are left out.
	WithoutPlugins []string
	// CacheRevision returns the revision at which the server's cache of a resource is, which answers requests with
	// resourceVersion=0; oldest is the first one that can be read. Without it caches are current.
	CacheRevision func(resource schema.GroupResource, oldest, current int64) int64
	// Audit is given the events of an audit log at the level that Level names.
	Audit func(*auditinternal.Event)
	// Level is the level of the audit log; without it RequestResponse.
	Level auditinternal.Level
}

// Server is an API server in memory. It serves one request at a time; others wait for it.
type Server struct {
	options  Options
	database *database
	client   *kubernetes.Client
	factory  *serverstorage.DefaultStorageFactory
	generic  *genericapiserver.GenericAPIServer
	handler  http.Handler
	stored   map[string]*objects // by the prefix of their keys
	cursors  map[*Cursor]bool
	requests atomic.Int64 // how many there were
	busy     sync.Mutex

	informers   *informers
	definitions *definitions
	policies    *policies
}

// Response is the answer to a request.
type Response struct {
	Code   int
	Header http.Header
	Body   []byte
}

// Handle serves a request that is no watch, and returns when it is done.
func (s *Server) Handle(request *http.Request) *Response {
	s.begin()
	defer s.finish()
	return s.serve(request)
}

// serve is Handle within a request.
func (s *Server) serve(request *http.Request) *Response {
	writer := &recorder{header: http.Header{}}
	s.handler.ServeHTTP(writer, s.name(request))
	if writer.code == 0 {
		writer.code = http.StatusOK
	}
	response := &Response{Code: writer.code, Header: writer.header, Body: writer.body.Bytes()}
	response.sortCauses()
	return response
}

// begin prepares chance for a request: the API server takes it from the process. It follows from the seed and the
// revision, so that requests that only read, in whichever order, change nothing in what others get.
func (s *Server) begin() {
	s.busy.Lock()
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(s.options.Seed))
	binary.LittleEndian.PutUint64(seed[8:], uint64(s.database.revision))
	chance := rand.NewChaCha8(seed)
	utilrand.Seed(int64(chance.Uint64()))
	uuid.SetRand(chance)
	s.database.expire(now())
}

func (s *Server) finish() {
	s.settle()
	uuid.SetRand(nil)
	s.busy.Unlock()
}

// name gives a request an ID for the audit log.
func (s *Server) name(request *http.Request) *http.Request {
	id := s.requests.Add(1)
	if request.Header.Get(auditinternal.HeaderAuditID) == "" {
		request = request.Clone(request.Context())
		request.Header.Set(auditinternal.HeaderAuditID, strconv.FormatInt(id, 10))
	}
	return request
}

// Revision returns the revision of the last change.
func (s *Server) Revision() int64 { return s.database.revision }

// Compact forgets what was before a revision: older lists and watches get 410.
func (s *Server) Compact(revision int64) error { return s.database.compact(revision) }

// Close ends all watches, and waits for goroutines of the server: a second of virtual time.
func (s *Server) Close() {
	for c := range s.cursors {
		c.Stop()
	}
	if s.policies != nil {
		s.policies.close()
	}
	s.definitions.close()
	s.generic.Destroy()
}

// RoundTrip serves a request of a client in the same goroutine; watches are refused.
func (s *Server) RoundTrip(request *http.Request) (*http.Response, error) {
	return s.Handle(request).HTTP(request), nil
}

// Loopback is a connection by which what the server calls, such as a webhook, makes requests while the server waits for
// it. It serves no watches.
func (s *Server) Loopback() *restclient.Config { return s.loopback() }

// HTTP turns the response into one that a transport returns.
func (r *Response) HTTP(request *http.Request) *http.Response {
	return &http.Response{
		Status: http.StatusText(r.Code), StatusCode: r.Code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: r.Header, Body: readCloser{bytes.NewReader(r.Body)}, ContentLength: int64(len(r.Body)), Request: request,
	}
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// recorder is a response as a whole.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

func (r *recorder) Flush() {}
