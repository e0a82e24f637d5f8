package kube

import "context"

// search is the context in which the plugin for devices looks for some on a node. The plugin asks it at each step
// whether it must end: a claim with constraints may take a number of steps that grows exponentially with its devices.
type search struct {
	context.Context
	plugins *Plugins
	steps   int // so far
	most    int // that it may take
}

const (
	// maxDeviceSteps is how many steps the search on one node may take. To take all of sixteen devices takes some
	// dozens.
	maxDeviceSteps = 1 << 13
	// After maxCut searches for one class that were cut off, those on further nodes may take no more than
	// fewDeviceSteps, until volumes or devices change.
	maxCut, fewDeviceSteps = 4, 1 << 9
)

// isCut reports whether the search had to end.
func (s *search) isCut() bool { return s.steps > s.most }

// Err is an error if the search must end.
func (s *search) Err() error {
	s.plugins.does(1)
	if s.steps++; s.steps > s.most {
		return context.DeadlineExceeded
	}
	return s.Context.Err()
}
