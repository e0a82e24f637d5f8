package admission

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"

	"hekla.sh/hekla/internal/admission/certificates"
	"hekla.sh/hekla/internal/admission/held"
)

// ConfigurationName is the name of the two webhook configurations that the server fills in.
const ConfigurationName = "volcano-admission"

// servicePort is the port of the Service.
const servicePort = int32(443)

const (
	// webhookTimeout is how long an API server waits for an answer, and so how long a user waits if none comes.
	webhookTimeout = 5 * time.Second

	// handlerTimeout is how long an answer may take. It is shorter, so that the user is told what took so long.
	handlerTimeout = 4 * time.Second

	// maxBody is the largest body that is read. An object has at most 3 MiB on its way to an API server, a request has
	// two objects at most; the rest is small.
	maxBody = 7 << 20

	// maxBodies is how much of bodies is in memory at one time. Those that do not fit wait for their turn. Decoded,
	// compared and encoded again an object takes ten times its text: the memory limit of the installer has room for
	// that.
	maxBodies = 3 * maxBody

	// maxRequests is how many requests are answered at a time, however small they are. An API server sends some at
	// once. Other clients that reach the server may send more, and these wait for their turn.
	maxRequests = 64

	// maxObjects is how many JSON objects a body may have, and how many are decoded at one time. Text says little of
	// what it takes: "{}" may stand for a task, which takes a kilobyte, and four while its list grows. A Job of 256
	// tasks of 64 policies has some 20,000, and an update has two Jobs.
	maxObjects = 60_000

	// maxHeader is far more than an API server sends.
	maxHeader = 16 << 10

	// idleTimeout is how long a connection without requests is kept.
	idleTimeout = 90 * time.Second
)

// Options say what is served, and how it is found.
type Options struct {
	// Enabled are the paths that are served; see Paths.
	Enabled []string

	// SchedulerNames are the names our scheduler goes by. Jobs that name none get the first; pods of others are left
	// alone.
	SchedulerNames []string

	// SchedulerConfigMap has the configuration of the scheduler, which says whether it admits workloads.
	SchedulerConfigMap client.ObjectKey

	// ConfigFile is the file with the resource groups; empty if there are none.
	ConfigFile string

	// GatesPods adds the gate of queue admission to the pods of ours that ask for it.
	GatesPods bool

	// MaxQueueDepth is how many levels of queues there may be below root.
	MaxQueueDepth int

	// ShortestCronJobInterval is how close together the runs of a CronJob may be; zero allows all.
	ShortestCronJobInterval time.Duration

	// KeepsUsedQueues refuses to delete queues in which pods hold room.
	KeepsUsedQueues bool

	// KeepsOpenQueues refuses to delete queues that are open.
	KeepsOpenQueues bool

	// Namespace and ServiceName are where API servers reach the server; URL, if it is set, instead of them.
	Namespace, ServiceName, URL string

	// Address is where to listen.
	Address string

	// SecretName is the Secret, in Namespace, that holds the certificates. If CertificateFile, KeyFile and BundleFile
	// are set these are used, and the Secret is not.
	SecretName                           string
	CertificateFile, KeyFile, BundleFile string

	// Life is how long certificates are valid.
	Life certificates.Life

	// Interval is how often certificates, registration and the file with the resource groups are looked at.
	Interval time.Duration

	// ShutdownTimeout is how long requests that are under way may take when the server stops.
	ShutdownTimeout time.Duration
}

// Validate says what cannot be meant, option by option.
func (o *Options) Validate() error {
	var problems []error
	if _, err := selected(o.Enabled); err != nil {
		problems = append(problems, err)
	}
	if len(o.SchedulerNames) == 0 || slices.Contains(o.SchedulerNames, "") {
		problems = append(problems, errors.New("a scheduler without a name has no pods"))
	}
	if o.MaxQueueDepth < 1 {
		problems = append(problems, fmt.Errorf("queues %d levels deep are none; at least 1 is needed", o.MaxQueueDepth))
	}
	if files := []string{o.CertificateFile, o.KeyFile, o.BundleFile}; slices.Contains(files, "") && slices.Max(files) != "" {
		problems = append(problems, errors.New("a certificate needs all of its files: its own, its key, and that of the authorities to trust"))
	}
	if o.URL != "" {
		parsed, err := url.Parse(o.URL)
		if err != nil || parsed.Scheme != "https" || parsed.Hostname() == "" {
			problems = append(problems, fmt.Errorf("%q is no URL that an API server would call: it must begin with https:// and name a host", o.URL))
		}
	} else if o.ServiceName == "" || o.Namespace == "" {
		problems = append(problems, errors.New("neither a URL nor a Service in a namespace says where the server is to be found"))
	}
	return errors.Join(problems...)
}

// hosts are the names under which API servers call the server, which its certificate must have.
func (o *Options) hosts() []string {
	if o.URL != "" {
		if parsed, err := url.Parse(o.URL); err == nil {
			return []string{parsed.Hostname()}
		}
	}
	return []string{o.ServiceName + "." + o.Namespace + ".svc"}
}

// settings are what the answers depend on besides the objects. They are replaced as a whole.
type settings struct {
	schedulerNames  []string
	gatesPods       bool
	maxQueueDepth   int
	keepsUsedQueues bool
	// shortestCronJobInterval is that of Options.
	shortestCronJobInterval time.Duration
	keepsOpenQueues         bool
	groups                  []resourceGroup
	workloads               held.Known
}

// server is what handlers need.
type server struct {
	scheme   *runtime.Scheme
	cached   client.Reader
	live     client.Reader
	owners   *held.Finder
	settings atomic.Pointer[settings]
}

// Add puts the server into the manager, and what keeps its certificates and its registration in order. It returns the
// check that says whether it is ready.
func Add(mgr manager.Manager, options Options) (ready func(*http.Request) error, err error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	enabled, err := selected(options.Enabled)
	if err != nil {
		return nil, err
	}
	log := mgr.GetLogger().WithName("admission")
	groups, content, err := readGroups(options.ConfigFile)
	if err != nil {
		// The file may be older than this server, and everything else that it does needs no groups.
		log.Error(err, "The resource groups cannot be used; until they can be, no pod is of any group")
	}
	s := &server{scheme: mgr.GetScheme(), cached: mgr.GetClient(), live: mgr.GetAPIReader(), owners: held.NewFinder(mgr.GetAPIReader())}
	s.settings.Store(options.settings(groups, held.Known{}))
	keeper := certificates.FromFiles(options.CertificateFile, options.KeyFile, options.BundleFile)
	if options.CertificateFile == "" {
		secret := client.ObjectKey{Namespace: options.Namespace, Name: options.SecretName}
		keeper = certificates.FromSecret(mgr.GetClient(), mgr.GetAPIReader(), secret, options.hosts(), options.Life, time.Now)
	}
	// Asked for here so that a server that says it is ready has them.
	if _, err := mgr.GetCache().GetInformer(context.Background(), &scheduling.Queue{}); err != nil {
		return nil, fmt.Errorf("watching Queues: %w", err)
	}
	registrar := &registrar{
		api: mgr.GetClient(), live: mgr.GetAPIReader(), options: options, enabled: enabled,
		server: s, keeper: keeper, config: content, log: log,
		held: held.NewWatch(mgr.GetAPIReader(), mgr.GetCache(), options.SchedulerConfigMap),
	}
	listener, err := net.Listen("tcp", options.Address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", options.Address, err)
	}
	err = errors.Join(mgr.Add(registrar), mgr.Add(&manager.Server{
		Name: "admission", ShutdownTimeout: &options.ShutdownTimeout, Server: httpServer(newMux(s, enabled), registrar.log),
		Listener: tls.NewListener(listener, tlsConfig(keeper)),
	}))
	return registrar.ready, err
}

func (o *Options) settings(groups []resourceGroup, w held.Known) *settings {
	return &settings{
		schedulerNames: o.SchedulerNames, gatesPods: o.GatesPods, maxQueueDepth: o.MaxQueueDepth,
		shortestCronJobInterval: o.ShortestCronJobInterval,
		keepsUsedQueues:         o.KeepsUsedQueues, keepsOpenQueues: o.KeepsOpenQueues, groups: groups, workloads: w,
	}
}

func tlsConfig(keeper *certificates.Keeper) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: keeper.Certificate}
}

func httpServer(handler http.Handler, logger logr.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(logger), slog.LevelInfo),
		ReadHeaderTimeout: handlerTimeout, ReadTimeout: webhookTimeout, WriteTimeout: 2 * webhookTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
	}
}

// newMux serves the enabled paths.
func newMux(s *server, enabled []*service) *http.ServeMux {
	mux := http.NewServeMux()
	room, turns, objects := semaphore.NewWeighted(maxBodies), semaphore.NewWeighted(maxRequests), semaphore.NewWeighted(maxObjects)
	for _, service := range enabled {
		mux.Handle(service.path, bounded(room, turns, sparing(objects, &admission.Webhook{Handler: service.answering(s)})))
	}
	return mux
}

// sparing keeps bodies of too many objects out, and those that are decoded at a time together within their number.
func sparing(objects *semaphore.Weighted, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if _, isTooLarge := errors.AsType[*http.MaxBytesError](err); isTooLarge {
			http.Error(w, fmt.Sprintf("the body has more than %d bytes", maxBody), http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			http.Error(w, "reading the body: "+err.Error(), http.StatusBadRequest)
			return
		}
		count := int64(objectsIn(body))
		if count > maxObjects {
			http.Error(w, fmt.Sprintf("the body has %d objects in it; at most %d are read", count, maxObjects), http.StatusRequestEntityTooLarge)
			return
		}
		ctx, cancel := context.WithTimeout(request.Context(), handlerTimeout)
		defer cancel()
		if objects.Acquire(ctx, count) != nil {
			http.Error(w, "too many requests at a time", http.StatusServiceUnavailable)
			return
		}
		defer objects.Release(count)
		request.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, request)
	})
}

// objectsIn is how many objects a JSON document has, those in texts left out.
func objectsIn(document []byte) int {
	count, isText := 0, false
	for at := 0; at < len(document); at++ {
		switch b := document[at]; {
		case isText && b == '\\':
			at++
		case b == '"':
			isText = !isText
		case b == '{' && !isText:
			count++
		}
	}
	return count
}

// bounded keeps bodies that are too large out, all of them together within the room, and as many requests as there are
// turns.
func bounded(room, turns *semaphore.Weighted, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.ContentLength > maxBody {
			http.Error(w, fmt.Sprintf("the body has %d bytes; at most %d are read", request.ContentLength, maxBody), http.StatusRequestEntityTooLarge)
			return
		}
		size := request.ContentLength
		if size < 0 {
			size = maxBody // it does not say how much will come
		}
		ctx, cancel := context.WithTimeout(request.Context(), handlerTimeout)
		defer cancel()
		if turns.Acquire(ctx, 1) != nil {
			http.Error(w, "too many requests at a time", http.StatusServiceUnavailable)
			return
		}
		defer turns.Release(1)
		if room.Acquire(ctx, size) != nil {
			http.Error(w, "too many requests at a time", http.StatusServiceUnavailable)
			return
		}
		defer room.Release(size)
		request.Body = http.MaxBytesReader(w, request.Body, maxBody)
		next.ServeHTTP(w, request)
	})
}
