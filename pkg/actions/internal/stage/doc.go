// Package stage runs one action on a model, for the tests of actions: a cluster made of the objects users write, plugins
// of the test's own that keep doors and limits, and the real placement engine.
//
// Main type: [Stage].
//
// It must not know any particular action, nor the plugins of the tree.
package stage
