// Package docs holds the pages, and the tests that keep them true: what exists is described, what is described exists,
// links lead somewhere, and what can be run is run.
package docs
