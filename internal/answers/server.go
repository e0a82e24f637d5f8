package answers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/answers/charts"
	"hekla.sh/hekla/internal/answers/diagnosis"
	"hekla.sh/hekla/internal/answers/gate"
	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/survey"
	"hekla.sh/hekla/internal/snapshot"
	"hekla.sh/hekla/pkg/apis/bounds"
	"hekla.sh/hekla/pkg/scheduler"
)

const (
	// MaxBody is the largest request in bytes: some thousand pods.
	MaxBody = 8 << 20
	// atOnce is how many submissions are read, decoded and tried at a time, one of each user at most: each may take
	// tens of megabytes.
	atOnce = 2
	// toRead is how long a client may take to send one.
	toRead = 5 * time.Second
	// Share is how many questions a second are answered at most, with Burst at once. A question takes the scheduler
	// about a millisecond at 5,000 nodes while 10,000 jobs wait (BenchmarkCyclesWithQuestions): a twentieth of its
	// time.
	Share, Burst = 50, 50
	// TrialShare is how many trials a second: searches for proposals, submissions, and diagnoses. Each may take tens of
	// milliseconds.
	TrialShare, TrialBurst = 2, 10
	// patience is how long a question may take, with the wait for its turn.
	patience = 20 * time.Second
)

// Guard finds out who asks, and what they may do.
type Guard interface {
	User(r *http.Request) (who user.Info, ok bool, err error)
	May(ctx context.Context, who user.Info, what gate.Access) (bool, error)
}

// Server answers over HTTP. Any goroutine may use it.
type Server struct {
	questions *scheduler.Questions
	guard     Guard
	logger    logr.Logger
	all       *rate.Limiter
	trials    *rate.Limiter
	shares    shares
	trying    chan struct{} // a place for each submission
	diagnose  Diagnose      // nil: there is no diagnosis
	snap      Snap          // nil: there are no snapshots
	snapping  chan struct{}
	overview  *overview
	leader    func() string // who leads, nil if it is not known
	charts    *charts.Store
}

// Diagnose says how the scheduler is, and how many of some gangs could start now.
type Diagnose func(ctx context.Context, gangs []survey.Gang) (diagnosis.Diagnosis, error)

// Snap returns what the scheduler knows.
type Snap func(ctx context.Context) (*snapshot.Header, iter.Seq[runtime.Object], error)

// Snapshots makes the server write snapshots. It must be called before [Server.Handler].
func (s *Server) Snapshots(by Snap) { s.snap = by }

// Diagnoses makes the server answer what a scheduler says of itself. It must be called before [Server.Handler].
func (s *Server) Diagnoses(by Diagnose) { s.diagnose = by }

// LedBy sets how a process that does not lead finds out which does, "" if it is not known. It must be called before
// [Server.Handler].
func (s *Server) LedBy(leader func() string) { s.leader = leader }

// Leads sets how the server finds out since when its process leads. It must be called before [Server.Handler].
func (s *Server) Leads(since func() time.Time) { s.overview.leads = since }

// Charts sets what charts are made of. It must be called before [Server.Handler].
func (s *Server) Charts(of *charts.Store) { s.charts = of }

// New returns a server of answers to questions.
func New(questions *scheduler.Questions, guard Guard, logger logr.Logger) *Server {
	return &Server{trying: make(chan struct{}, atOnce), snapping: make(chan struct{}, 1), questions: questions, guard: guard, logger: logger, all: rate.NewLimiter(Share, Burst), trials: rate.NewLimiter(TrialShare, TrialBurst),
		overview: newOverview(questions), charts: charts.New()}
}

// Handler serves the group of the API.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	version := "/apis/" + api.GroupVersion.String()
	mux.HandleFunc("GET /apis", s.known(groups))
	mux.HandleFunc("GET /apis/"+api.GroupVersion.Group, s.known(group))
	mux.HandleFunc("GET "+version, s.known(resources))
	named := func(r api.Resource, answer func(*question) (any, error)) {
		mux.HandleFunc(methods[r.Verb]+" "+r.Path("{namespace}", "{name}"), s.guarded(r, answer))
	}
	named(api.Jobs, s.job)
	named(api.Workloads, s.workload)
	named(api.Pods, s.pod)
	named(api.Queues, s.queue)
	named(api.Nodes, s.node)
	if s.diagnose != nil {
		named(api.Diagnoses, s.diagnosis)
	}
	if s.snap != nil {
		mux.HandleFunc("GET "+api.Snapshots.Path("", "{name}"), s.snapshot)
	}
	mux.HandleFunc("POST "+api.Submissions.Path("{namespace}", ""), s.guarded(api.Submissions, s.submission))
	mux.HandleFunc("GET "+api.Overviews.Path("", ""), s.watchOverview)
	mux.HandleFunc("GET "+api.Overviews.Path("", "{name}"), s.getOverview)
	s.handleVisibility(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		write(w, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
			Message: "there is no such question: " + r.Method + " " + r.URL.Path}})
	})
	return mux
}

var methods = map[string]string{"get": http.MethodGet, "create": http.MethodPost}

// question is one request that is permitted.
type question struct {
	ctx             context.Context
	request         *http.Request
	writer          http.ResponseWriter
	who             user.Info
	namespace, name string
	redactor        *redactor
}

// guarded answers a question of those who may ask it.
func (s *Server) guarded(resource api.Resource, answer func(*question) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		q := &question{ctx: ctx, request: r, writer: w, namespace: r.PathValue("namespace"), name: r.PathValue("name")}
		if err := s.admit(q, resource); err != nil {
			write(w, nil, err)
			return
		}
		if s.shares.of(q.who).all.Wait(ctx) != nil || s.all.Wait(ctx) != nil {
			write(w, nil, tooMany())
			return
		}
		known, err := s.overview.namespaces(ctx)
		if err != nil {
			write(w, nil, s.statusOf(err, resource, q))
			return
		}
		q.redactor = &redactor{sees: s.visibility(q), known: known}
		found, err := answer(q)
		if err != nil {
			write(w, nil, s.statusOf(err, resource, q))
			return
		}
		write(w, api.Reply[any]{
			TypeMeta: metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: resource.Kind},
			Metadata: api.Metadata{Name: q.name, Namespace: q.namespace}, Answer: found,
		}, nil)
	}
}

// know finds out who asks. It is an error if the client is not known.
func (s *Server) know(q *question) error {
	who, ok, err := s.guard.User(q.request)
	switch {
	case err != nil:
		s.logger.V(2).Info("A client could not be authenticated", "error", err.Error())
		return apierrors.NewUnauthorized("the credentials could not be checked")
	case !ok:
		return apierrors.NewUnauthorized("no credentials that the API server knows")
	}
	q.who = who
	return nil
}

// admit is an error if the client is not known or may not ask.
func (s *Server) admit(q *question, resource api.Resource) error {
	if err := s.know(q); err != nil {
		return err
	}
	who := q.who
	allowed, err := s.guard.May(q.ctx, who, access(resource, q.namespace, q.name, q.request.URL.Path))
	if err != nil {
		return apierrors.NewServiceUnavailable("the API server could not be asked what " + who.GetName() + " may do: " + err.Error())
	}
	if !allowed {
		return apierrors.NewForbidden(schema.GroupResource{Group: api.GroupVersion.Group, Resource: resource.Name}, q.name,
			errors.New("user "+strconv.Quote(who.GetName())+" may not "+resource.Verb+" it in namespace "+strconv.Quote(q.namespace)))
	}
	return nil
}

func access(r api.Resource, namespace, name, path string) gate.Access {
	return gate.Access{Verb: r.Verb, Group: api.GroupVersion.Group, Version: api.GroupVersion.Version, Resource: r.Name, Namespace: namespace, Name: name, Path: path}
}

// visibility returns in which namespaces the client may see jobs. A namespace about which the API server cannot be
// asked is not seen.
func (s *Server) visibility(q *question) func(string) bool {
	known := map[string]bool{}
	may := func(namespace string) bool {
		ok, err := s.guard.May(q.ctx, q.who, access(api.Jobs, namespace, "", api.Jobs.Path(namespace, "")))
		return ok && err == nil
	}
	if q.namespace != "" {
		known[q.namespace] = true
	}
	everywhere, asked := false, false
	return func(namespace string) bool {
		if _, ok := known[namespace]; !ok {
			if !asked {
				everywhere, asked = may(""), true
			}
			known[namespace] = everywhere || len(known) < maxNamespaces && may(namespace)
		}
		return known[namespace]
	}
}

// maxNamespaces is of how many namespaces one answer asks whether the client may see them.
const maxNamespaces = 32

func (s *Server) job(q *question) (any, error) {
	found, err := s.questions.Why(q.ctx, q.namespace, q.name, s.shares.of(q.who).trials.Allow() && s.trials.Allow())
	answer := api.Job{Why: found.Why, ETA: found.ETA, Story: found.Story}
	hideJob(&answer, q.redactor)
	return answer, err
}

func (s *Server) workload(q *question) (any, error) {
	found, err := s.questions.WhyWorkload(q.ctx, q.namespace, q.name)
	answer := api.Job{Why: found.Why, ETA: found.ETA, Story: found.Story}
	hideJob(&answer, q.redactor)
	return answer, err
}

func (s *Server) pod(q *question) (any, error) {
	found, err := s.questions.WhyPod(q.ctx, types.NamespacedName{Namespace: q.namespace, Name: q.name})
	answer := api.Pod{Pod: found.Pod, Cause: found.Cause, Story: found.Story}
	hidePod(&answer, q.redactor)
	return answer, err
}

func (s *Server) queue(q *question) (any, error) {
	found, err := s.questions.WhyQueue(q.ctx, q.name)
	answer := api.Queue{Queue: found.Queue, Story: found.Story}
	hideQueue(&answer, q.redactor)
	return answer, err
}

func (s *Server) node(q *question) (any, error) {
	found, err := s.questions.Node(q.ctx, q.name)
	hideNode(&found, q.redactor)
	return found, err
}

func (s *Server) diagnosis(q *question) (any, error) {
	var gangs []survey.Gang
	for _, text := range q.request.URL.Query()[api.GangParameter] {
		g, err := api.ParseGang(text)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		gangs = append(gangs, g)
	}
	if len(gangs) > survey.MaxGangs {
		return nil, apierrors.NewBadRequest("at most " + strconv.Itoa(survey.MaxGangs) + " gangs are counted at once")
	}
	if err := s.turn(q); err != nil { // it is a pass over all jobs and nodes
		return nil, err
	}
	found, err := s.diagnose(q.ctx, gangs)
	hideDiagnosis(&found, q.redactor)
	return found, err
}

func (s *Server) submission(q *question) (any, error) {
	if err := s.turn(q); err != nil {
		return nil, err
	}
	for _, places := range []chan struct{}{s.shares.of(q.who).trying, s.trying} {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-q.ctx.Done():
			return nil, tooMany()
		}
	}
	if q.writer != nil {
		in := http.NewResponseController(q.writer)
		_ = in.SetReadDeadline(time.Now().Add(toRead))
		defer func() { _ = in.SetReadDeadline(time.Time{}) }()
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, q.request.Body, MaxBody))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, apierrors.NewTimeoutError("the submission was not sent within "+toRead.String(), 2)
	}
	if err != nil {
		return nil, apierrors.NewRequestEntityTooLargeError("a submission may have at most " + strconv.Itoa(MaxBody) + " bytes")
	}
	var wanted api.Submission
	if err := bounds.UnmarshalJSON(body, &wanted); err != nil {
		return nil, apierrors.NewBadRequest("the submission cannot be read: " + err.Error())
	}
	if wanted.PodGroup == nil {
		return nil, apierrors.NewBadRequest("podGroup: it must be set")
	}
	if wanted.PodGroup.Namespace != q.namespace {
		return nil, apierrors.NewBadRequest("podGroup.metadata.namespace: it is " + strconv.Quote(wanted.PodGroup.Namespace) + ", and the path says " + strconv.Quote(q.namespace))
	}
	q.name = wanted.PodGroup.Name
	found, err := s.questions.Submit(q.ctx, wanted.PodGroup, wanted.Pods)
	hideSubmission(&found, q.redactor)
	return found, err
}

// turn waits until a trial may be made.
func (s *Server) turn(q *question) error {
	if s.shares.of(q.who).trials.Wait(q.ctx) != nil || s.trials.Wait(q.ctx) != nil {
		return tooMany()
	}
	return nil
}

func tooMany() error {
	return apierrors.NewTooManyRequests("the scheduler answers as many questions as it has time for", 2)
}

// statusOf is what the API says of an error.
func (s *Server) statusOf(err error, resource api.Resource, q *question) error {
	var known apierrors.APIStatus
	var absent explain.NotFound
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &absent):
		status := apierrors.NewNotFound(schema.GroupResource{Group: cmp.Or(resource.Group, api.GroupVersion.Group), Resource: resource.Name}, q.name)
		status.ErrStatus.Message = absent.Error()
		for _, name := range absent.Schedulers {
			status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{Type: api.CauseScheduler, Message: name})
		}
		return status
	case errors.Is(err, explain.ErrTooLarge):
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	case errors.Is(err, scheduler.ErrBusy), errors.Is(err, context.DeadlineExceeded):
		return tooMany()
	case errors.Is(err, scheduler.ErrNotRunning) && s.leader != nil && s.leader() != "":
		return apierrors.NewServiceUnavailable("this scheduler is on standby, or has only begun to lead; " + s.leader() +
			" leads, and answers what is asked through the API server: see kubectl get apiservice v1alpha1.answers.hekla.sh")
	case errors.Is(err, scheduler.ErrNotRunning), errors.Is(err, scheduler.ErrStopped), errors.Is(err, scheduler.ErrNoPolicy):
		return apierrors.NewServiceUnavailable(err.Error())
	}
	return apierrors.NewBadRequest(err.Error())
}

// write writes an answer or an error as JSON.
func write(w http.ResponseWriter, answer any, err error) {
	code := http.StatusOK
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			status = apierrors.NewInternalError(err)
		}
		said := status.Status()
		said.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		answer, code = said, int(said.Code)
		if said.Details != nil && said.Details.RetryAfterSeconds > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(said.Details.RetryAfterSeconds)))
		}
	}
	defer within(w, toWrite)()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone
}
