package process

import (
	"net/http"
	"net/http/pprof"
)

// Profiles are the handlers of the profiles that a process takes of itself, by path.
func Profiles() map[string]http.Handler {
	return map[string]http.Handler{
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
		"/debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
		"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
	}
}
