package answers

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/snapshot"
)

// snapshot writes a snapshot, compressed for clients that read that. It is whole: the right to get one is a right to
// see all that the scheduler reads. One is written at a time, because each is a copy of the cluster.
func (s *Server) snapshot(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	q := &question{ctx: ctx, request: r, name: r.PathValue("name")}
	if err := s.admit(q, api.Snapshots); err != nil {
		write(w, nil, err)
		return
	}
	select {
	case s.snapping <- struct{}{}:
		defer func() { <-s.snapping }()
	case <-ctx.Done():
		write(w, nil, apierrors.NewTooManyRequests("another snapshot is being written", 5))
		return
	}
	header, objects, err := s.snap(ctx)
	if err != nil {
		write(w, nil, s.statusOf(err, api.Snapshots, q))
		return
	}
	defer within(w, toWriteSnapshot)()
	var to io.Writer = w
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		compressed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is one
		defer func() { _ = compressed.Close() }()
		to = compressed
	}
	if err := snapshot.Write(to, header, objects); err != nil {
		s.logger.V(2).Info("A snapshot was not written to its end", "error", err.Error())
		panic(http.ErrAbortHandler) // half a file must not look like a whole one
	}
}
