package benchmark

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"hekla.sh/hekla/internal/benchmark/testbed"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Shape is a load: so many gangs of so many pods.
type Shape struct {
	Gangs   int `json:"gangs"`
	Members int `json:"members"`
}

// ParseShapes reads shapes such as "50x100".
func ParseShapes(texts []string) ([]Shape, error) {
	var shapes []Shape
	for _, text := range texts {
		gangs, members, _ := strings.Cut(text, "x")
		var s Shape
		var errs [2]error
		s.Gangs, errs[0] = strconv.Atoi(gangs)
		s.Members, errs[1] = strconv.Atoi(members)
		if errors.Join(errs[:]...) != nil || s.Gangs < 1 || s.Members < 1 {
			return nil, fmt.Errorf("shape %q: it must be GANGSxMEMBERS, such as 50x100", text)
		}
		shapes = append(shapes, s)
	}
	return shapes, nil
}

func (s Shape) String() string { return fmt.Sprintf("%dx%d", s.Gangs, s.Members) }

// Options say what is measured.
type Options struct {
	testbed.Options
	// Shapes are measured one after the other, in each run.
	Shapes []Shape
	// Runs is how often both contenders are measured with each shape.
	Runs int
	// Queues is how many queues the gangs are in, in turn.
	Queues int
	// Backlog is how many gangs of one pod wait besides, which fit no node. What they ask for counts as admitted.
	Backlog int
}

func (o *Options) validate() error {
	if err := testbed.Validate(testbed.Number{Name: "nodes", Value: o.Nodes, Least: 1}, testbed.Number{Name: "runs", Value: o.Runs, Least: 1}, testbed.Number{Name: "queues", Value: o.Queues, Least: 1}, testbed.Number{Name: "backlog", Value: o.Backlog, Least: 0}); err != nil {
		return err
	}
	if len(o.Shapes) == 0 {
		return errors.New("no shape is given")
	}
	for _, s := range o.Shapes {
		pods := s.Gangs * s.Members
		if pods < 2 {
			return fmt.Errorf("shape %s: the time from the first binding to the last needs 2 pods or more", s)
		}
		if room := testbed.Room(o.Nodes); pods+o.Backlog > room {
			return fmt.Errorf("shape %s: %d pods do not fit: %d nodes have room for %d", s, pods+o.Backlog, o.Nodes, room)
		}
	}
	return nil
}

// bench is one execution of Run.
type bench struct {
	*testbed.Testbed
	options Options
	queues  []string
	report  *Report
}

// Run measures. What was measured wrongly, and why, is in [Report.Violations]; an error means that there is no report.
func Run(ctx context.Context, options Options) (*Report, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	return testbed.Run(ctx, options.Options, func(bed *testbed.Testbed) (*Report, error) {
		b := &bench{Testbed: bed, options: options, report: newReport(&options, bed.About)}
		if options.Queues > 1 {
			b.queues = testbed.QueueNames(options.Queues)
		}
		return b.report, b.measureAll(ctx)
	})
}

func (b *bench) measureAll(ctx context.Context) error {
	if err := b.CreatePlaces(ctx, b.queues); err != nil {
		return err
	}
	if b.options.Backlog > 0 {
		b.Say("Creating %d pods that fit no node …", b.options.Backlog)
		backlog := &testbed.Load{Name: "backlog", SchedulerName: schedulingv1beta1.DefaultSchedulerName, Gangs: b.options.Backlog,
			Members: 1, Queues: b.queues, FitsNoNode: true}
		if err := b.Create(ctx, backlog); err != nil {
			return err
		}
	}
	if err := b.calibrate(ctx); err != nil {
		return err
	}
	for number := 1; number <= b.options.Runs; number++ {
		for i := range b.report.Shapes {
			if err := b.measureBoth(ctx, number, i); err != nil {
				return err
			}
		}
	}
	for i := range b.report.Shapes {
		b.report.Shapes[i].Median = medianOf(b.report.Shapes[i].Runs)
	}
	return nil
}

// measureBoth measures both contenders with a shape, one after the other.
func (b *bench) measureBoth(ctx context.Context, number, shape int) error {
	of := &b.report.Shapes[shape]
	run := Pair{LoopFirst: (number+shape)%2 == 1}
	err := testbed.InTurn(run.LoopFirst, func() (err error) {
		run.Loop, err = b.measure(ctx, number, of.Shape, loop, b.runLoop)
		return err
	}, func() (err error) {
		run.Hekla, err = b.measure(ctx, number, of.Shape, hekla, b.runScheduler)
		return err
	})
	if err != nil {
		return err
	}
	run.Ratio = testbed.Ratio(run.Hekla.PodsPerSecond, run.Loop.PodsPerSecond)
	run.RunningRatio = testbed.Ratio(run.Hekla.PodsRunningPerSecond, run.Loop.PodsRunningPerSecond)
	of.Runs = append(of.Runs, run)
	return nil
}
