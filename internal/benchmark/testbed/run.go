package testbed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hekla.sh/hekla/internal/localcluster"
)

// Number is a number of the options of a benchmark, and the least that it may be.
type Number struct {
	Name         string
	Value, Least int
}

// Validate returns an error that names the first number that is too small.
func Validate(numbers ...Number) error {
	for _, n := range numbers {
		if n.Value < n.Least {
			return fmt.Errorf("%s is %d; it must be %d or more", n.Name, n.Value, n.Least)
		}
	}
	return nil
}

// Room is how many pods fit on so many nodes.
func Room(nodes int) int { return nodes * (NodeCPUs / PodCPUs) }

// Run starts a cluster, measures on it, and stops it. An error means that there is no report.
func Run[Report any](ctx context.Context, options Options, measure func(*Testbed) (*Report, error)) (*Report, error) {
	bed, err := Start(ctx, options)
	if err != nil {
		return nil, err
	}
	report, err := measure(bed)
	if err := errors.Join(err, bed.Stop()); err != nil {
		return nil, err
	}
	return report, nil
}

// InTurn lets two contenders work, one after the other. With A B, B A, A B … a machine or a cluster that becomes slower
// with time favours neither.
func InTurn(firstBegins bool, first, second func() error) error {
	contenders := []func() error{first, second}
	if !firstBegins {
		slices.Reverse(contenders)
	}
	for _, measure := range contenders {
		if err := measure(); err != nil {
			return err
		}
	}
	return nil
}

// Findings are the violations of a report.
type Findings struct {
	// Violations are what must not happen and did, a sentence each. With any, no number counts.
	Violations []string `json:"violations"`
}

// NoFindings is an empty list, which is written as one.
func NoFindings() Findings { return Findings{Violations: []string{}} }

// Wrong returns the violations.
func (f *Findings) Wrong() []string { return f.Violations }

// Find notes violations.
func (f *Findings) Find(violations ...string) { f.Violations = append(f.Violations, violations...) }

// FindRefused notes the requests of a contender that the API server has refused.
func (f *Findings) FindRefused(contender string, writes Writes) {
	for _, problem := range writes.Refused() {
		f.Find(contender + ": " + problem)
	}
}

// Reading is what the meters showed when a measurement began.
type Reading struct {
	At     time.Time
	Usage  Usage
	Writes Writes
}

// Cost is what a measurement took besides the contender's own process.
type Cost struct {
	// ControlPlaneCPUSeconds is what the processes of the cluster used.
	ControlPlaneCPUSeconds float64 `json:"controlPlaneCPUSeconds"`
	// OtherCPUSeconds is what everything else on the machine used. It should be next to nothing.
	OtherCPUSeconds float64 `json:"otherCPUSeconds"`
	// APIWrites are the requests of all clients, those of the control plane included.
	APIWrites Writes `json:"apiWrites"`
}

// Begin reads the meters before a measurement. process is that of the contender, nil if it does not run yet or has
// none.
func (t *Testbed) Begin(ctx context.Context, process *localcluster.Process) (r Reading, err error) {
	if r.Writes, err = t.Writes(ctx); err != nil {
		return r, err
	}
	r.Usage, err = t.Usage(process)
	r.At = time.Now()
	return r, err
}

// End reads the meters after a measurement in which so many pods were bound.
func (t *Testbed) End(ctx context.Context, from Reading, process *localcluster.Process, bindings int) (now Usage, cost Cost, err error) {
	if now, err = t.Usage(process); err != nil {
		return now, cost, err
	}
	cost = from.Until(now)
	cost.APIWrites, err = t.WritesOfBindings(ctx, from.Writes, bindings)
	return now, cost, err
}

// Until returns the CPU times since the reading.
func (r *Reading) Until(now Usage) Cost {
	return Cost{
		ControlPlaneCPUSeconds: now.ControlPlane - r.Usage.ControlPlane,
		// The kernel counts a machine in ticks and a process exactly, so that of a quiet machine less than nothing may
		// be left.
		OtherCPUSeconds: max(now.Other-r.Usage.Other, 0),
	}
}
