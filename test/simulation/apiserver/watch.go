package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// errWatchOutside is the answer to a watch that has no cursor: a request with watch=true that came to [Server.Handle].
var errWatchOutside = apierrors.NewBadRequest("watches are served by Server.Watch")

// neverEnds is thirty years in seconds. Without a timeout the API server takes one of no time for some kinds.
const neverEnds = "1000000000"

type cursorKey struct{}

// Cursor is an open watch: the events of the server in their order. Its holder decides when the next one is
// delivered. What happens on the server meanwhile waits, as in a slow connection.
type Cursor struct {
	Header http.Header // of the response

	server  *Server
	objects *objects
	key     string // the prefix of the keys, or the only one
	options storage.ListOptions
	source  *source
	writer  *stream
	cancel  context.CancelFunc
	done    chan struct{} // is closed when the handler has returned

	seen    int64 // the revision up to which the log has been read
	waiting []queued
	isLast  bool // nothing comes after what waits
}

// queued is an event that has not been delivered.
type queued struct {
	event    watch.Event
	revision int64
}

// source is what the API server's handler reads events from.
type source struct{ events chan watch.Event }

func (s *source) ResultChan() <-chan watch.Event { return s.events }

func (s *source) Stop() {}

// IsWatch reports whether a request is for [Server.Watch].
func IsWatch(request *http.Request) bool {
	if request.Method != http.MethodGet {
		return false
	}
	asked := request.URL.Query().Get("watch")
	return asked == "true" || asked == "1" || strings.Contains(request.URL.Path, "/watch/")
}

// Watch opens a watch. If the server refuses it, there is no cursor and the response says why. The stream has no end of
// its own: the timeoutSeconds of the request is for the holder of the cursor.
func (s *Server) Watch(request *http.Request) (*Cursor, *Response) {
	s.begin()
	defer s.finish()
	query := request.URL.Query()
	query.Set("timeoutSeconds", neverEnds)
	ctx, cancel := context.WithCancel(request.Context())
	c := &Cursor{server: s, source: &source{events: make(chan watch.Event)}, cancel: cancel, done: make(chan struct{})}
	c.writer = &stream{header: http.Header{}, flushed: make(chan struct{}), gone: ctx.Done()}
	opened := s.name(request).Clone(context.WithValue(ctx, cursorKey{}, c))
	opened.URL.RawQuery = query.Encode()
	go func() {
		defer close(c.done)
		s.handler.ServeHTTP(c.writer, opened)
	}()
	select {
	case <-c.writer.flushed:
	case <-c.done:
	}
	if c.objects == nil || c.writer.code != http.StatusOK {
		cancel()
		<-c.done
		return nil, &Response{Code: c.writer.code, Header: c.writer.header, Body: c.writer.take()}
	}
	c.Header = c.writer.header
	s.cursors[c] = true
	return c, nil
}

// open is called by the storage, within Watch.
func (c *Cursor) open(o *objects, key string, options storage.ListOptions) {
	c.objects, c.key, c.options = o, key, options
	if err := c.start(); err != nil {
		c.fail(err)
	}
}

// start determines from which revision on events are delivered, and what comes before them.
func (c *Cursor) start() error {
	d := c.server.database
	sendsInitial := c.options.SendInitialEvents != nil && *c.options.SendInitialEvents
	switch version := c.options.ResourceVersion; {
	case version == "" && c.options.SendInitialEvents != nil:
		c.seen = d.revision
	case version == "" || version == "0":
		revision, err := c.objects.cached("0")
		if err != nil {
			return err
		}
		c.seen = revision
		sendsInitial = sendsInitial || c.options.SendInitialEvents == nil
	default:
		asked, err := c.objects.Versioner().ParseResourceVersion(version)
		if err != nil {
			return err
		}
		if sendsInitial {
			if c.seen, err = c.objects.cached(version); err != nil {
				return err
			}
			break
		}
		if int64(asked) < d.compacted {
			return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", asked, d.compacted))
		}
		c.seen = int64(asked)
	}
	if !sendsInitial {
		return nil
	}
	return c.sendState()
}

// sendState queues what is there at the revision that has been seen.
func (c *Cursor) sendState() error {
	var problem error
	c.server.database.below(c.key, "", func(h *history) {
		v := h.at(c.seen)
		if v == nil || problem != nil || !c.isOwn(h.key) {
			return
		}
		object, err := c.objects.decode(v.value, v.revision)
		if err != nil {
			problem = err
			return
		}
		if matches, err := c.options.Predicate.Matches(object); err == nil && matches {
			c.waiting = append(c.waiting, queued{watch.Event{Type: watch.Added, Object: object}, v.revision})
		}
	})
	if problem != nil {
		return problem
	}
	if c.options.SendInitialEvents != nil && *c.options.SendInitialEvents && c.options.Predicate.AllowWatchBookmarks {
		bookmark, err := c.bookmark(c.seen)
		if err != nil {
			return err
		}
		if err := storage.AnnotateInitialEventsEndBookmark(bookmark.Object); err != nil {
			return err
		}
		c.waiting = append(c.waiting, queued{bookmark, c.seen})
	}
	return nil
}

// isOwn reports whether a key with the right prefix is watched.
func (c *Cursor) isOwn(key string) bool { return c.options.Recursive || key == c.key }

func (c *Cursor) bookmark(revision int64) (watch.Event, error) {
	object := c.objects.newFunc()
	if err := c.objects.Versioner().UpdateObject(object, uint64(revision)); err != nil {
		return watch.Event{}, err
	}
	return watch.Event{Type: watch.Bookmark, Object: object}, nil
}

// fail queues an error as the last event.
func (c *Cursor) fail(err error) {
	status := apierrors.NewInternalError(err).ErrStatus
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	}
	c.waiting = append(c.waiting, queued{watch.Event{Type: watch.Error, Object: &status}, c.seen})
	c.isLast = true
}

// read queues what has happened since the log was read last.
func (c *Cursor) read() {
	if c.isLast {
		return
	}
	d := c.server.database
	if c.seen < d.compacted {
		c.fail(apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", c.seen, d.compacted)))
		return
	}
	for _, made := range d.since(c.seen) {
		if strings.HasPrefix(made.key, c.key) && c.isOwn(made.key) {
			event, err := c.convert(made)
			if err != nil {
				c.fail(err)
				return
			}
			if event.Type != "" {
				c.waiting = append(c.waiting, queued{event, made.revision})
			}
		}
		c.seen = made.revision
	}
	c.seen = max(c.seen, min(c.seen, d.revision))
}

// convert returns what a change is for the selectors of the watch; no type means nothing.
func (c *Cursor) convert(made *change) (watch.Event, error) {
	object, previous, err := made.decode(c.objects)
	if err != nil {
		return watch.Event{}, err
	}
	is, was := c.passes(object), c.passes(previous)
	switch {
	case is && !was:
		return watch.Event{Type: watch.Added, Object: object.DeepCopyObject()}, nil
	case is:
		return watch.Event{Type: watch.Modified, Object: object.DeepCopyObject()}, nil
	case was:
		last := previous.DeepCopyObject()
		return watch.Event{Type: watch.Deleted, Object: last}, c.objects.Versioner().UpdateObject(last, uint64(made.revision))
	}
	return watch.Event{}, nil
}

func (c *Cursor) passes(object runtime.Object) bool {
	if object == nil {
		return false
	}
	matches, err := c.options.Predicate.Matches(object)
	return err == nil && matches
}

// decodedChange keeps the objects of a change, which all watches of a resource share.
type decodedChange struct {
	by               *objects
	object, previous runtime.Object
}

func (m *change) decode(by *objects) (object, previous runtime.Object, err error) {
	if m.decoded.by != by {
		decoded := decodedChange{by: by}
		if m.value != nil {
			if decoded.object, err = by.decode(m.value, m.revision); err != nil {
				return nil, nil, err
			}
		}
		if m.previous != nil {
			if decoded.previous, err = by.decode(m.previous, m.previousRevision); err != nil {
				return nil, nil, err
			}
		}
		m.decoded = decoded
	}
	return m.decoded.object, m.decoded.previous, nil
}

// Pending returns how many events can be delivered now.
func (c *Cursor) Pending() int {
	if c.isClosed() {
		return 0
	}
	c.read()
	return len(c.waiting)
}

// Next delivers the next event: the bytes that the server writes for it. It is not ok when there is none.
func (c *Cursor) Next() (frame []byte, ok bool) {
	if c.Pending() == 0 {
		return nil, false
	}
	next := c.waiting[0]
	c.waiting = c.waiting[1:]
	frame, ok = c.deliver(next.event)
	if c.isLast && len(c.waiting) == 0 {
		c.Stop()
	}
	return frame, ok
}

// Bookmark delivers a bookmark of how far the watch has come. It is not ok if the client wants none.
func (c *Cursor) Bookmark() (frame []byte, ok bool) {
	if c.isClosed() || !c.options.Predicate.AllowWatchBookmarks {
		return nil, false
	}
	c.read()
	revision := c.seen
	if len(c.waiting) > 0 {
		if c.isLast || c.waiting[0].revision == 0 || c.options.SendInitialEvents != nil && c.hasInitial() {
			return nil, false
		}
		revision = c.waiting[0].revision - 1
	}
	event, err := c.bookmark(revision)
	if err != nil {
		return nil, false
	}
	return c.deliver(event)
}

// hasInitial reports whether the bookmark that ends the initial events still waits.
func (c *Cursor) hasInitial() bool {
	for _, q := range c.waiting {
		if q.event.Type == watch.Bookmark {
			return true
		}
	}
	return false
}

// Expire ends the watch with the error 410 Gone, and what waits is lost.
func (c *Cursor) Expire() []byte {
	if c.isClosed() {
		return nil
	}
	c.waiting = nil
	status := apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", c.seen, c.server.database.revision)).ErrStatus
	frame, _ := c.deliver(watch.Event{Type: watch.Error, Object: &status})
	c.Stop()
	return frame
}

// Stop ends the watch, as a connection that is cut does.
func (c *Cursor) Stop() {
	c.cancel()
	<-c.done
	delete(c.server.cursors, c)
}

// IsClosed reports whether the watch has ended.
func (c *Cursor) IsClosed() bool { return c.isClosed() }

func (c *Cursor) isClosed() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// deliver gives an event to the handler and waits until it is written.
func (c *Cursor) deliver(event watch.Event) (frame []byte, ok bool) {
	if status, isStatus := event.Object.(*metav1.Status); isStatus {
		event.Object = status.DeepCopy()
	}
	select {
	case c.source.events <- event:
	case <-c.done:
		return nil, false
	}
	select {
	case <-c.writer.flushed:
	case <-c.done:
	}
	frame = c.writer.take()
	return frame, len(frame) > 0
}

// stream is the response that a handler of a watch writes.
type stream struct {
	header  http.Header
	code    int
	body    bytes.Buffer
	flushed chan struct{}
	gone    <-chan struct{}
}

func (s *stream) Header() http.Header { return s.header }

func (s *stream) WriteHeader(code int) {
	if s.code == 0 {
		s.code = code
	}
}

func (s *stream) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	return s.body.Write(p)
}

// Flush hands over what has been written.
func (s *stream) Flush() {
	select {
	case s.flushed <- struct{}{}:
	case <-s.gone:
	}
}

// CloseNotify is there since the API server flushes only what has it; it tells nothing, the context does.
func (s *stream) CloseNotify() <-chan bool { return nil }

// take returns what has been written since the last call.
func (s *stream) take() []byte {
	taken := bytes.Clone(s.body.Bytes())
	s.body.Reset()
	return taken
}
