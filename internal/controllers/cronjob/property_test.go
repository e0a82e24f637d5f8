package cronjob

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/timetable"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

var (
	// errCrash is what every request gets after the process has died.
	errCrash = errors.New("the process has died")

	// errRefused is what a request gets that fails while the process lives on.
	errRefused = errors.New("the API server has no time")
)

// simulation is a CronJob, a clock, and a controller whose cache is behind by as much as the test likes and which dies
// before or after any of its writes.
type simulation struct {
	client.Client // what the API server has
	t             *rapid.T
	clock         *testingclock.FakePassiveClock
	controller    *Reconciler
	key           client.ObjectKey
	times         timetable.Timetable

	// What the caches show.
	cronJob *batch.CronJob
	jobs    []*batch.Job

	// crashIn is how many writes the process has left to live, and crashAfter whether the last of them is carried out.
	// It lives on if crashIn is negative.
	crashIn    int
	crashAfter bool

	// refuseIn is how many writes there are until one is refused.
	refuseIn int

	// started are the names of the Jobs that were ever made.
	started map[string]bool
}

func newSimulation(t *rapid.T, cronJob *batch.CronJob) *simulation {
	scheme := runtime.NewScheme()
	if err := batch.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &simulation{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&batch.CronJob{}, &batch.Job{}).WithObjects(cronJob).Build(),
		t:      t, clock: testingclock.NewFakePassiveClock(midnight), key: client.ObjectKeyFromObject(cronJob),
		times: mustParse(t, cronJob.Spec.Schedule, "UTC"), crashIn: -1, started: map[string]bool{},
	}
	w.restart()
	return w
}

// restart begins again with nothing remembered and full caches.
func (w *simulation) restart() {
	w.crashIn = -1
	w.controller = &Reconciler{
		client: process{w}, live: reader{w}, events: events.NewFakeRecorder(1000), clock: w.clock,
	}
	w.seeCronJob()
	w.seeJobs()
}

func (w *simulation) seeCronJob() { w.cronJob = w.storedCronJob() }

func (w *simulation) seeJobs() { w.jobs = w.storedJobs() }

func (w *simulation) storedCronJob() *batch.CronJob {
	stored := &batch.CronJob{}
	w.must(w.Client.Get(context.Background(), w.key, stored))
	return stored
}

func (w *simulation) storedJobs() []*batch.Job {
	list := &batch.JobList{}
	w.must(w.Client.List(context.Background(), list))
	jobs := make([]*batch.Job, len(list.Items))
	for i := range list.Items {
		jobs[i] = &list.Items[i]
	}
	return jobs
}

func (w *simulation) must(err error) {
	if err != nil {
		w.t.Fatal(err)
	}
}

// reconcile runs the controller once, and starts it again if that killed it.
func (w *simulation) reconcile() {
	_, err := w.controller.Reconcile(context.Background(), reconcile.Request{NamespacedName: w.key})
	switch {
	case errors.Is(err, errCrash):
		w.restart()
	case !errors.Is(err, errRefused):
		w.must(err)
	}
}

// reader is the API server as the process reads it, past its cache.
type reader struct{ *simulation }

func (r reader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if r.crashIn == 0 {
		return errCrash
	}
	return r.Client.Get(ctx, key, object, options...)
}

// process is the API server as the process writes to it, and its cache.
type process struct{ *simulation }

func (p process) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	p.cronJob.DeepCopyInto(object.(*batch.CronJob))
	return nil
}

func (p process) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	for _, job := range p.jobs {
		if len(indexByCronJob(job)) == 1 {
			list.(*batch.JobList).Items = append(list.(*batch.JobList).Items, *job)
		}
	}
	return nil
}

// write carries out a write, unless the process dies first.
func (p process) write(do func() error) error {
	if p.crashIn == 0 {
		return errCrash
	}
	if p.crashIn > 0 {
		p.crashIn--
	}
	if p.crashIn == 0 && !p.crashAfter {
		return errCrash
	}
	p.refuseIn--
	if p.refuseIn == 0 {
		return errRefused
	}
	err := do()
	if p.crashIn == 0 {
		return errCrash
	}
	return err
}

func (p process) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return p.write(func() error {
		object.SetUID(types.UID(object.GetName()))
		err := p.Client.Create(ctx, object, options...)
		if err == nil {
			p.checkStart(object.(*batch.Job))
		}
		return err
	})
}

// checkStart holds that a Job may be made now.
func (p process) checkStart(job *batch.Job) {
	stored, due := p.storedCronJob(), Due(job)
	if p.started[job.Name] {
		p.t.Fatalf("%s was started twice", job.Name)
	}
	p.started[job.Name] = true
	if late := p.clock.Since(due); late < 0 || stored.Spec.StartingDeadlineSeconds != nil && late >= time.Duration(*stored.Spec.StartingDeadlineSeconds+1)*time.Second {
		p.t.Fatalf("%s was started %s after it was due", job.Name, late)
	}
	if *stored.Spec.Suspend {
		p.t.Fatalf("%s was started, though the CronJob is suspended", job.Name)
	}
	if active := len(notEnded(p.storedJobs())); active > 1 && stored.Spec.ConcurrencyPolicy != batch.AllowConcurrent {
		p.t.Fatalf("with %s, %d Jobs have not ended", stored.Spec.ConcurrencyPolicy, active)
	}
}

func (p process) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return p.write(func() error { return p.Client.Delete(ctx, object, options...) })
}

func (p process) Status() client.SubResourceWriter {
	return statusWriter{p.Client.Status(), p}
}

type statusWriter struct {
	client.SubResourceWriter
	process process
}

func (s statusWriter) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return s.process.write(func() error { return s.SubResourceWriter.Patch(ctx, object, patch, options...) })
}

// anyJob draws one of the Jobs, or none.
func (w *simulation) anyJob(fits func(*batch.Job) bool) *batch.Job {
	var fitting []*batch.Job
	for _, job := range w.storedJobs() {
		if fits(job) {
			fitting = append(fitting, job)
		}
	}
	if len(fitting) == 0 {
		return nil
	}
	return rapid.SampledFrom(fitting).Draw(w.t, "job")
}

// step lets something happen that a controller cannot help.
func (w *simulation) step() {
	ctx := context.Background()
	switch rapid.SampledFrom([]string{
		"time", "time", "time", "look", "look", "see the CronJob", "see the Jobs", "crash", "refuse", "end", "end", "delete", "suspend", "release",
	}).Draw(w.t, "step") {
	case "time":
		w.clock.SetTime(w.clock.Now().Add(time.Duration(rapid.IntRange(1, 100).Draw(w.t, "tenths")) * 100 * time.Millisecond))
		w.reconcile()
	case "look":
		w.reconcile()
	case "see the CronJob":
		w.seeCronJob()
	case "see the Jobs":
		w.seeJobs()
	case "crash":
		w.crashIn = rapid.IntRange(1, 4).Draw(w.t, "writes left")
		w.crashAfter = rapid.Bool().Draw(w.t, "after the write")
	case "refuse":
		w.refuseIn = rapid.IntRange(1, 4).Draw(w.t, "writes until then")
	case "end":
		if job := w.anyJob(func(job *batch.Job) bool { return !hasEnded(job) }); job != nil {
			job.Status.State.Phase = rapid.SampledFrom([]batch.JobPhase{
				batch.Running, batch.Completed, batch.Completed, batch.Failed, batch.Terminated, batch.Aborted,
			}).Draw(w.t, "phase")
			job.Status.State.LastTransitionTime = metav1.NewTime(w.clock.Now())
			w.must(w.Client.Status().Update(ctx, job))
		}
	case "delete":
		// By its ttlSecondsAfterFinished or a user, but not before its run is on record.
		stored := w.storedCronJob()
		if job := w.anyJob(func(job *batch.Job) bool { return IsRecorded(stored, job) }); job != nil {
			w.must(w.Client.Delete(ctx, job))
		}
	case "suspend":
		stored := w.storedCronJob()
		*stored.Spec.Suspend = !*stored.Spec.Suspend
		w.must(w.Client.Update(ctx, stored))
	case "release":
		if job := w.anyJob(func(job *batch.Job) bool { return job.DeletionTimestamp != nil }); job != nil {
			job.Finalizers = nil
			w.must(w.Client.Update(ctx, job))
		}
	}
}

// settle lets everything that is under way arrive, and the controller look until it has nothing to do.
func (w *simulation) settle() {
	w.crashIn, w.refuseIn = -1, 0
	for range 6 {
		for _, job := range w.storedJobs() {
			if job.DeletionTimestamp != nil {
				job.Finalizers = nil
				w.must(w.Client.Update(context.Background(), job))
			}
		}
		w.seeCronJob()
		w.seeJobs()
		w.reconcile()
	}
}

// check holds what must be true whenever everything has settled.
func (w *simulation) check() {
	stored, jobs := w.storedCronJob(), w.storedJobs()
	now, active := w.clock.Now(), notEnded(jobs)
	if due, passed := w.times.Latest(midnight, now); passed > 0 && !w.started[JobName(stored, w.times, due)] {
		isLate := stored.Spec.StartingDeadlineSeconds != nil && now.Sub(due) >= time.Duration(*stored.Spec.StartingDeadlineSeconds+1)*time.Second
		isHeld := len(active) > 0 && stored.Spec.ConcurrencyPolicy == batch.ForbidConcurrent
		if !isLate && !isHeld && !*stored.Spec.Suspend {
			w.t.Fatalf("the run of %s was not started by %s", due, now)
		}
	}
	var listed, present []string
	for _, reference := range stored.Status.Active {
		listed = append(listed, reference.Name)
	}
	for _, job := range active {
		present = append(present, job.Name)
	}
	if fmt.Sprint(listed) != fmt.Sprint(present) {
		w.t.Fatalf("status.active is %v, and %v have not ended", listed, present)
	}
	if left := superfluous(stored, jobs); len(left) > 0 {
		w.t.Fatalf("%d Jobs beyond the history are left", len(left))
	}
	for _, job := range jobs {
		if !IsRecorded(stored, job) {
			w.t.Fatalf("%s is not on record", job.Name)
		}
	}
}

func TestNoRunIsStartedTwiceNoneIsMissedAndNoneIsTooMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		suspend := false
		cronJob := newCronJob(func(c *batch.CronJob) {
			c.Spec.Suspend = &suspend
			c.Spec.Schedule = rapid.SampledFrom([]string{"* * * * *", "*/3 * * * *", "@every 7s", "@every 1s", "@every 100s"}).Draw(t, "schedule")
			c.Spec.ConcurrencyPolicy = rapid.SampledFrom([]batch.ConcurrencyPolicy{
				batch.AllowConcurrent, batch.ForbidConcurrent, batch.ReplaceConcurrent,
			}).Draw(t, "policy")
			if seconds := rapid.Int64Range(-1, 20).Draw(t, "deadline"); seconds >= 0 {
				c.Spec.StartingDeadlineSeconds = &seconds
			}
			one, none := int32(1), int32(0)
			c.Spec.SuccessfulJobsHistoryLimit = rapid.SampledFrom([]*int32{nil, &one, &none}).Draw(t, "successful")
			c.Spec.FailedJobsHistoryLimit = rapid.SampledFrom([]*int32{nil, &one, &none}).Draw(t, "failed")
			if rapid.Bool().Draw(t, "go slowly") {
				c.Spec.JobTemplate.Finalizers = []string{"foregroundDeletion"}
			}
		})
		w := newSimulation(t, cronJob)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.step()
			if rapid.IntRange(0, 9).Draw(t, "settle") == 0 {
				w.settle()
				w.check()
			}
		}
		w.settle()
		w.check()
	})
}
