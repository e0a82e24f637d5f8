package answers

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/answers/board"
	"hekla.sh/hekla/internal/explain/holders"
	"hekla.sh/hekla/pkg/scheduler"
)

const (
	// Freshness is how old an overview may be. That is how often the scheduler is asked for one, while a client reads
	// it.
	Freshness = time.Second
	// MaxWatches is how many clients may follow overviews at a time. Each takes some tens of kilobytes; the scheduler
	// is asked once for all.
	MaxWatches = 1000
	// HoldersFreshness is how old it may be who holds the room. That is found by a walk over all pods.
	HoldersFreshness = 10 * time.Second
	// viewLife is how long what a client may see is used again.
	viewLife = 30 * time.Second
	// maxViewed is about how many namespaces the API server is asked whether a client may see them, and reviewers how
	// many such requests run at once.
	maxViewed, reviewers = 1000, 16
	// maxViews bounds how many views are stored.
	maxViews = 1000
	// heartbeat is how long a client that follows overviews hears nothing at most.
	heartbeat = 15 * time.Second
	// worthPacking is from how many bytes on an answer is compressed.
	worthPacking = 32 << 10
)

// overview is the latest overview, and who may see what of it.
type overview struct {
	questions *scheduler.Questions
	store     *board.Store
	leads     func() time.Time // since when the process leads, zero if it is not known

	refreshing sync.Mutex // held while the scheduler is asked
	asked      time.Time  // when it answered last

	naming sync.Mutex // held while the scheduler is asked for namespaces
	known  map[string]bool
	named  time.Time // when it answered last

	surveying sync.Mutex // held while the scheduler is asked who holds the room
	holders   []holders.Holders
	surveyed  time.Time // when it answered last

	mutex sync.Mutex
	views map[string]storedView
}

type storedView struct {
	view  *board.View
	until time.Time
}

func newOverview(questions *scheduler.Questions) *overview {
	return &overview{questions: questions, store: board.New(rand.Uint64()), leads: func() time.Time { return time.Time{} }, views: map[string]storedView{}}
}

// refresh asks the scheduler, unless the last answer is fresh.
func (o *overview) refresh(ctx context.Context) error {
	o.refreshing.Lock()
	defer o.refreshing.Unlock()
	if time.Since(o.asked) < Freshness {
		return nil
	}
	found, err := o.questions.Overview(ctx, o.store.Known())
	if err != nil {
		return err
	}
	o.store.Lead(o.leads())
	o.store.Update(found)
	o.asked = time.Now()
	return nil
}

// namespaces returns those that the scheduler knows. The caller must not change the map.
func (o *overview) namespaces(ctx context.Context) (map[string]bool, error) {
	o.naming.Lock()
	defer o.naming.Unlock()
	if time.Since(o.named) < Freshness {
		return o.known, nil
	}
	known, err := o.questions.Namespaces(ctx)
	if err == nil {
		o.known, o.named = known, time.Now()
	}
	return known, err
}

// holdersFor returns who holds the room, as far as a client may see it.
func (o *overview) holdersFor(ctx context.Context, redactor *redactor) ([]holders.Holders, error) {
	o.surveying.Lock()
	defer o.surveying.Unlock()
	if time.Since(o.surveyed) >= HoldersFreshness {
		found, err := o.questions.Holders(ctx)
		if err != nil {
			return nil, err
		}
		o.holders, o.surveyed = found, time.Now()
	}
	answer := make([]holders.Holders, len(o.holders)) // an empty list if there are none
	for i, found := range o.holders {
		found.Jobs, found.Namespaces = slices.Clone(found.Jobs), slices.Clone(found.Namespaces)
		hideHolders(&found, redactor)
		answer[i] = found
	}
	return answer, nil
}

// parts are what an overview consists of: each is read alone. since is the token of the list that the client has.
var parts = map[string]func(o *board.Store, v *board.View, since string, redactor *redactor) any{
	"summary":     func(o *board.Store, v *board.View, _ string, _ *redactor) any { return o.Summary(v) },
	"queues":      func(o *board.Store, v *board.View, since string, _ *redactor) any { return o.Queues(v, since) },
	"quotas":      func(o *board.Store, v *board.View, since string, _ *redactor) any { return o.Quotas(v, since) },
	"localqueues": func(o *board.Store, v *board.View, since string, _ *redactor) any { return o.LocalQueues(v, since) },
	"nodes":       func(o *board.Store, v *board.View, since string, _ *redactor) any { return o.Nodes(v, since) },
	"jobs": func(o *board.Store, v *board.View, since string, redactor *redactor) any {
		answer := o.Jobs(v, since)
		for i := range answer.Rows {
			redactor.name(&answer.Rows[i].Subject)
			redactor.text(&answer.Rows[i].Message)
		}
		return answer
	},
	"evictions": func(o *board.Store, v *board.View, _ string, redactor *redactor) any {
		answer := o.Evictions(v)
		redactor.story(answer.Rows)
		redactor.texts(answer.Rows)
		return answer
	},
	"cycles": func(o *board.Store, v *board.View, _ string, redactor *redactor) any {
		answer := o.Cycles(v)
		for i := range answer.Rows {
			redactor.story(answer.Rows[i].Decisions)
			redactor.texts(answer.Rows[i].Decisions)
		}
		return answer
	},
}

const (
	// chartsPart is the part of an overview that has charts. Its parameters are of, a subject, and span.
	chartsPart = "charts"
	// holdersPart is the part that says who holds the room.
	holdersPart = "holders"
)

// getOverview answers with one part.
func (s *Server) getOverview(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	q := &question{ctx: ctx, request: r, name: r.PathValue("name")}
	part, ok := parts[q.name]
	view, err := s.look(q)
	known, unknown := s.overview.namespaces(ctx)
	switch {
	case err != nil:
		write(w, nil, err)
		return
	case unknown != nil:
		write(w, nil, s.statusOf(unknown, api.Overviews, q))
		return
	case !ok && q.name != chartsPart && q.name != holdersPart:
		write(w, nil, apierrors.NewNotFound(schema.GroupResource{Group: api.GroupVersion.Group, Resource: api.Overviews.Name}, q.name))
		return
	}
	answer, asked := api.Reply[any]{Metadata: api.Metadata{Name: q.name}}, r.URL.Query()
	redactor := &redactor{sees: view.Sees, known: known}
	switch q.name {
	case chartsPart:
		answer.Answer = s.charts.Chart(asked.Get("of"), asked.Get("span"), time.Now()) // queues are sums, which every reader sees
	case holdersPart:
		held, err := s.overview.holdersFor(ctx, redactor)
		if err != nil {
			write(w, nil, s.statusOf(err, api.Overviews, q))
			return
		}
		answer.Answer = held
	default:
		answer.Answer = part(s.overview.store, view, asked.Get("since"), redactor)
	}
	answer.APIVersion, answer.Kind = api.GroupVersion.String(), api.Overviews.Kind
	writePacked(w, r, answer)
}

// look finds out what a client may see, and renews the overview if it is old.
func (s *Server) look(q *question) (*board.View, error) {
	if err := s.know(q); err != nil {
		return nil, err
	}
	if err := s.overview.refresh(q.ctx); err != nil {
		return nil, s.statusOf(err, api.Overviews, q)
	}
	view := s.viewOf(q)
	if view.SeesNothing() {
		return nil, apierrors.NewForbidden(schema.GroupResource{Group: api.GroupVersion.Group, Resource: api.Overviews.Name}, q.name,
			fmt.Errorf("user %q may get %s of %s neither in the cluster nor in a namespace with jobs", q.who.GetName(), api.Jobs.Name, api.GroupVersion.Group))
	}
	return view, nil
}

// watchOverview sends an event whenever something has changed, until the client goes: server-sent events. What has
// changed the client asks for.
func (s *Server) watchOverview(w http.ResponseWriter, r *http.Request) {
	q := &question{ctx: r.Context(), request: r}
	if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") && r.URL.Query().Get("watch") == "" {
		q.name = "summary"
		r.SetPathValue("name", q.name)
		s.getOverview(w, r)
		return
	}
	if _, err := s.look(q); err != nil {
		write(w, nil, err)
		return
	}
	if !s.shares.enter(q.who) {
		write(w, nil, tooMany())
		return
	}
	defer s.shares.leave(q.who)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	sent, said := uint64(0), time.Now()
	ticker := time.NewTicker(Freshness)
	defer ticker.Stop()
	for first := true; ; first = false {
		version := s.overview.store.Version()
		var text string
		switch {
		case first || version != sent:
			text = fmt.Sprintf("event: change\ndata: {\"version\":%d,\"cycle\":%d}\n\n", version, s.overview.store.Known())
		case time.Since(said) >= heartbeat:
			if s.know(q) != nil {
				return // its token is no longer good
			}
			text = ": nothing new\n\n"
		}
		if text != "" {
			if !sendEvent(w, text, toWriteEvent) {
				return
			}
			sent, said = version, time.Now()
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
		if err := s.overview.refresh(r.Context()); err != nil {
			sendEvent(w, fmt.Sprintf("event: error\ndata: %q\n\n", err.Error()), toWriteEvent)
			return
		}
	}
}

// sendEvent reports whether an event was written in time. The end of the stream is written without a limit, so that the
// client sees it end and not break off.
func sendEvent(w http.ResponseWriter, text string, limit time.Duration) (ok bool) {
	defer within(w, limit)()
	_, err := w.Write([]byte(text))
	return err == nil
}

// viewOf returns what a client may see: all, or the namespaces with jobs in which it may get jobs. What the API server
// cannot be asked about is not seen.
func (s *Server) viewOf(q *question) *board.View {
	key := keyOf(q.who)
	s.overview.mutex.Lock()
	known, ok := s.overview.views[key]
	s.overview.mutex.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.view
	}
	may := func(resource api.Resource, namespace string) bool {
		ok, err := s.guard.May(q.ctx, q.who, access(resource, namespace, "", resource.Path(namespace, "")))
		return ok && err == nil
	}
	view := &board.View{Everything: may(api.Jobs, ""), Nodes: may(api.Nodes, "")}
	if !view.Everything {
		view.Namespaces = visible(s.overview.store.Namespaces(), func(namespace string) bool { return may(api.Jobs, namespace) })
	}
	if q.ctx.Err() == nil {
		s.overview.keep(key, view)
	}
	return view
}

func (o *overview) keep(key string, view *board.View) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	now := time.Now()
	if len(o.views) >= maxViews {
		for other, stored := range o.views {
			if now.After(stored.until) || len(o.views) >= maxViews {
				delete(o.views, other)
			}
		}
	}
	o.views[key] = storedView{view, now.Add(viewLife)}
}

// visible returns the namespaces that may be seen, sorted. It asks about several at a time.
func visible(namespaces []string, may func(string) bool) []string {
	slices.Sort(namespaces)
	namespaces = namespaces[:min(len(namespaces), maxViewed)]
	seen := make([]bool, len(namespaces))
	var group sync.WaitGroup
	for first := range min(reviewers, len(namespaces)) {
		group.Go(func() {
			for i := first; i < len(namespaces); i += reviewers {
				seen[i] = may(namespaces[i])
			}
		})
	}
	group.Wait()
	var found []string
	for i, namespace := range namespaces {
		if seen[i] {
			found = append(found, namespace)
		}
	}
	return found
}

// keyOf tells users apart by all that the API server decides by.
func keyOf(who user.Info) string {
	key, _ := json.Marshal([]any{who.GetName(), who.GetUID(), who.GetGroups(), who.GetExtra()})
	return string(key)
}

// writePacked writes an answer as JSON, compressed if it is long and the client can read that.
func writePacked(w http.ResponseWriter, r *http.Request, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		write(w, nil, apierrors.NewInternalError(err))
		return
	}
	defer within(w, toWrite)()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if len(body) < worthPacking || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		_, _ = w.Write(body) // a client that has gone
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	packed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
	_, _ = packed.Write(body)
	_ = packed.Close()
}
