package enqueue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// timeline is a scheduler that runs cycles when they are due. It has a node of 10 CPU, of which jobs may claim 10.
type timeline struct {
	*loop.Loop
	t      *testing.T
	shown  map[string]*schedulingv1beta1.PodGroup
	writes int // of statuses of PodGroups
}

func newTimeline(t *testing.T, argument string, objects ...runtime.Object) *timeline {
	t.Helper()
	text := "{actions: \"enqueue, allocate\", tiers: [{plugins: [{name: gang}, {name: overcommit, arguments: {overcommit-factor: 1.0}}]}]" + argument + "}"
	l := &timeline{t: t, Loop: loop.New(t, text), shown: map[string]*schedulingv1beta1.PodGroup{}}
	l.Now = fixture.Birth
	return l.set(fixture.Node("n1", "cpu=10")).set(objects...)
}

func (l *timeline) set(objects ...runtime.Object) *timeline {
	for _, o := range objects {
		if g, ok := o.(*schedulingv1beta1.PodGroup); ok {
			l.shown[g.Name] = g
		}
	}
	l.Set(objects)
	return l
}

// cycle runs a cycle, applies the statuses that it decides, and returns when the next is due.
func (l *timeline) cycle() time.Time {
	l.t.Helper()
	for _, g := range l.CycleAfter(0).Groups {
		l.writes++
		group := l.shown[g.Job.Name].DeepCopy()
		group.Status = g.Status
		l.set(group)
	}
	return l.Result.Wake
}

// until runs all cycles that are due until a time.
func (l *timeline) until(after time.Duration) *timeline {
	l.t.Helper()
	end := fixture.Birth.Add(after)
	for {
		wake := l.cycle()
		if wake.IsZero() || wake.After(end) {
			break
		}
		l.Now = wake
	}
	l.Now = end
	l.cycle()
	return l
}

func (l *timeline) expect(name string, phase schedulingv1beta1.PodGroupPhase, code verdict.Code) *timeline {
	l.t.Helper()
	j, have := l.JobNamed(name), l.Code(name)
	if j.Phase != phase || have != code {
		l.t.Errorf("after %s %s is %s and waits for %q, should be %s and wait for %q", l.Now.Sub(fixture.Birth), name, j.Phase, have, phase, code)
	}
	return l
}

func wanting(name, wants string, members int32) *schedulingv1beta1.PodGroup {
	return fixture.Group(name, "default", members, fixture.PendingAdmission, fixture.Wanting(wants))
}

const pending, inqueue, running = schedulingv1beta1.PodGroupPending, schedulingv1beta1.PodGroupInqueue, schedulingv1beta1.PodGroupRunning

func TestAnAdmittedJobThatBringsNoPodsGoesBackOnceOthersWait(t *testing.T) {
	l := newTimeline(t, "", wanting("hog", "cpu=10", 1)).until(time.Second).expect("hog", inqueue, verdict.NotEnoughTasks)
	l.set(wanting("waits", "cpu=10", 1)).until(29*time.Second).expect("hog", inqueue, verdict.NotEnoughTasks).expect("waits", pending, verdict.OverCommitted)
	l.until(31*time.Second).expect("hog", pending, verdict.PodsMissing).expect("waits", inqueue, verdict.NotEnoughTasks)
	l.set(fixture.Pod("w", fixture.In("waits"), fixture.Asks("cpu=10"))).until(40*time.Second).expect("waits", inqueue, "")
	if says := l.shown["hog"].Status.Conditions[0].Message; !strings.Contains(says, "may be admitted again from 2026-01-01T00:01:00Z on") {
		t.Errorf("it says %q", says)
	}
	l.set(fixture.Pod("w", fixture.In("waits"), fixture.Asks("cpu=10"), fixture.On("n1")))
	l.until(2*time.Minute).expect("waits", running, "").expect("hog", pending, verdict.OverCommitted)
}

func TestAnAdmittedJobKeepsItsRoomForTheTimeoutIfNoOtherWaits(t *testing.T) {
	l := newTimeline(t, "", wanting("slow", "cpu=10", 1))
	l.until(299*time.Second).expect("slow", inqueue, verdict.NotEnoughTasks)
	l.until(301*time.Second).expect("slow", pending, verdict.PodsMissing)
	// It may try again after as long as it had quota.
	l.until(599*time.Second).expect("slow", pending, verdict.PodsMissing).until(601*time.Second).expect("slow", inqueue, verdict.NotEnoughTasks)
	l.set(fixture.Pod("p", fixture.In("slow"), fixture.Asks("cpu=10"))).until(602*time.Second).expect("slow", inqueue, "")
}

// sentBack runs until a time, and returns when a job was sent back until then.
func (l *timeline) sentBack(name string, until time.Duration) (times []time.Duration) {
	was := l.JobNamed(name).Phase
	for at := l.Now.Sub(fixture.Birth); at < until; at += 10 * time.Second {
		l.until(at)
		if is := l.JobNamed(name).Phase; is != was {
			if was = is; is == pending {
				times = append(times, at.Round(time.Minute))
			}
		}
	}
	return times
}

func TestAJobWhosePodsNeverComeIsTriedLessAndLessOften(t *testing.T) {
	minutes := func(numbers ...time.Duration) (times []time.Duration) {
		for _, n := range numbers {
			times = append(times, n*time.Minute)
		}
		return times
	}
	l := newTimeline(t, "", wanting("left", "cpu=10", 1)).until(time.Second)
	// Five minutes each, and then a pause of 5, 10, 20, 40, 80, and so on.
	if got, want := l.sentBack("left", 4*time.Hour), minutes(5, 15, 30, 55, 100, 185); !slices.Equal(got, want) {
		t.Errorf("it is sent back after %v, want %v", got, want)
	}
	// Another process goes on as this one would.
	next := newTimeline(t, "", l.shown["left"])
	next.Now = l.Now
	if next.cycle(); !next.JobNamed("left").BarredUntil.Equal(l.JobNamed("left").BarredUntil) {
		t.Errorf("another process lets it wait until %s, and this one until %s", next.JobNamed("left").BarredUntil, l.JobNamed("left").BarredUntil)
	}
	if got, want := next.sentBack("left", 24*time.Hour), minutes(350, 675, 1320); !slices.Equal(got, want) {
		t.Errorf("with another process it is sent back after %v, want %v", got, want)
	}
	// Its pods come all the same, and are not kept waiting.
	at := next.Now.Sub(fixture.Birth)
	next.expect("left", pending, verdict.PodsMissing).set(fixture.Pod("p", fixture.In("left"), fixture.Asks("cpu=10"))).
		until(at+time.Second).expect("left", inqueue, "")
	// When they have come and are gone, it begins again.
	if next.Remove(fixture.Pod("p")); next.JobNamed("left").BarredFor != 0 {
		t.Errorf("the next pause follows one of %s", next.JobNamed("left").BarredFor)
	}
	// The controller of Volcano Jobs tries to create pods when the Job is admitted, so it is tried twice an hour.
	job := wanting("job", "cpu=10", 1)
	isController := true
	job.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Name: "j", UID: "j", Controller: &isController}}
	if got, want := newTimeline(t, "", job).until(time.Second).sentBack("job", 3*time.Hour), minutes(5, 15, 30, 55, 90, 125, 160); !slices.Equal(got, want) {
		t.Errorf("a Volcano Job is sent back after %v, want %v", got, want)
	}
}

// What the message says comes from another process, or from a client that may write it.
func TestAFalseMessageBarsNoJobForLong(t *testing.T) {
	for _, until := range []string{"2999-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "tomorrow"} {
		group := wanting("hog", "cpu=10", 1)
		group.Status.Phase = pending
		group.Status.Conditions = []schedulingv1beta1.PodGroupCondition{{
			Type: schedulingv1beta1.PodGroupUnschedulableType, Status: corev1.ConditionTrue, Reason: "PodsMissing",
			LastTransitionTime: metav1.Time{Time: fixture.Birth.Add(time.Minute)}, Message: "it may be admitted again from " + until + " on",
		}}
		l := newTimeline(t, "", group)
		l.Now = fixture.Birth.Add(time.Minute)
		l.until(119*time.Second).expect("hog", pending, verdict.PodsMissing).until(121*time.Second).expect("hog", inqueue, verdict.NotEnoughTasks)
	}
}

func TestTheTimeoutIsAnArgument(t *testing.T) {
	const argument = ", configurations: [{name: enqueue, arguments: {podsTimeout: 40s}}]"
	newTimeline(t, argument, wanting("slow", "cpu=10", 1)).until(39*time.Second).expect("slow", inqueue, verdict.NotEnoughTasks).
		until(41*time.Second).expect("slow", pending, verdict.PodsMissing)
}

func TestPodsThatComeOneByOneKeepTheRoom(t *testing.T) {
	l := newTimeline(t, "", wanting("gang", "cpu=3", 3), wanting("waits", "cpu=8", 1))
	for i, name := range []string{"a", "b"} {
		l.until(time.Duration(20+200*i) * time.Second).set(fixture.Pod(name, fixture.In("gang")))
	}
	l.until(519*time.Second).expect("gang", inqueue, verdict.NotEnoughTasks)
	// A pod that is deleted and created again is no progress.
	l.Remove(fixture.Pod("b"))
	l.until(519*time.Second).set(fixture.Pod("b", fixture.In("gang"))).until(522*time.Second).expect("gang", pending, verdict.PodsMissing)
}

func TestAJobThatHasItsPodsIsKeptMoreThanTheyAskForOnlyForAWhile(t *testing.T) {
	const nowhere = " example.com/gpu=1" // no node has this resource
	l := newTimeline(t, "", wanting("hog", "cpu=10", 2)).until(10 * time.Second)
	for i, name := range []string{"h-0", "h-1"} {
		l.set(fixture.Pod(name, fixture.In("hog"), fixture.Asks(fmt.Sprintf("cpu=%d", 1+i)+nowhere))).until(time.Duration(20+20*i) * time.Second)
	}
	l.set(wanting("waits", "cpu=7", 1)).until(49*time.Second).expect("waits", pending, verdict.OverCommitted)
	l.until(51*time.Second).expect("waits", inqueue, verdict.NotEnoughTasks).expect("hog", inqueue, verdict.NotEnoughResources)
	l.set(wanting("also", "cpu=1", 1)).until(52*time.Second).expect("also", pending, verdict.OverCommitted)
	// When one of its pods ends, another is expected, and its quota is kept as for any job without pods.
	l.Remove(fixture.Pod("h-1"))
	claims := func(want int64) {
		t.Helper()
		if claims := l.Job(cluster.GroupID(fixture.Key("hog"))).Usage.Inqueue.At(l.Resources.Dim("cpu")); claims != want {
			t.Errorf("it is kept %d", claims)
		}
	}
	claims(10_000)
	// No other job waits, so it keeps its quota.
	l = newTimeline(t, "", wanting("hog", "cpu=10", 1), fixture.Pod("h-0", fixture.In("hog"), fixture.Asks("cpu=1"+nowhere)))
	l.until(299 * time.Second)
	claims(10_000)
	l.until(301 * time.Second)
	claims(1_000)
}

// No event follows when a job gives up quota that it claims beyond its pods, so a cycle is due.
func TestQuotaThatIsGivenUpIsOfferedAtOnce(t *testing.T) {
	l := newTimeline(t, "", wanting("hog", "cpu=10", 1), fixture.Pod("h-0", fixture.In("hog"), fixture.Asks("cpu=1 example.com/gpu=1"))).until(0)
	l.set(wanting("waits", "cpu=7", 1)).until(20 * time.Second)
	l.Now = fixture.Birth.Add(31 * time.Second)
	wake := l.cycle()
	l.expect("waits", pending, verdict.OverCommitted)
	if wake.IsZero() || wake.Sub(l.Now) > time.Second {
		t.Fatalf("the next cycle is due at %s, and it is %s", wake, l.Now)
	}
	l.Now = wake
	l.cycle()
	l.expect("waits", inqueue, verdict.NotEnoughTasks)
}

func TestAJobThatNeedsNoPodsToStartIsSentBackToo(t *testing.T) {
	l := newTimeline(t, "", wanting("hog", "cpu=10", 0)).until(0).set(wanting("waits", "cpu=10", 1))
	l.until(29*time.Second).expect("hog", inqueue, "").expect("waits", pending, verdict.OverCommitted)
	l.until(31*time.Second).expect("hog", pending, verdict.PodsMissing).expect("waits", inqueue, verdict.NotEnoughTasks)
}

func TestAJobThatClaimsNothingIsNotSentBack(t *testing.T) {
	newTimeline(t, "", fixture.Group("free", "default", 3, fixture.PendingAdmission)).until(time.Hour).expect("free", inqueue, verdict.NotEnoughTasks)
	gated := fixture.Pod("g", fixture.In("gated"))
	gated.Spec.SchedulingGates = append(gated.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: "wait"})
	newTimeline(t, "", fixture.Group("gated", "default", 1, fixture.Wanting("cpu=1")), gated).until(time.Hour).expect("gated", inqueue, verdict.SchedulingGated)
}

func TestControllersThatAreDownCauseNoStorm(t *testing.T) {
	var objects []runtime.Object
	for i := range 20 {
		objects = append(objects, wanting("job-"+string(rune('a'+i)), "cpu=1", 1))
	}
	l := newTimeline(t, "", objects...).until(time.Hour)
	// Each of ten jobs is admitted and sent back at most once in half a minute, later in five minutes, with two or
	// three writes.
	if l.writes > 20*3*14 {
		t.Errorf("%d statuses were written in an hour", l.writes)
	}
}

func TestAnotherProcessSendsBackAndAdmitsAtTheSameTimes(t *testing.T) {
	l := newTimeline(t, "", wanting("hog", "cpu=10", 1), wanting("waits", "cpu=10", 1)).until(20*time.Second).expect("hog", inqueue, verdict.NotEnoughTasks)
	next := newTimeline(t, "", l.shown["hog"], l.shown["waits"])
	next.Now = l.Now
	// The condition says since when it lacks pods. It was written when none had come for five seconds.
	next.until(34*time.Second).expect("hog", inqueue, verdict.NotEnoughTasks).until(36*time.Second).expect("hog", pending, verdict.PodsMissing)
	until := next.Job(cluster.GroupID(fixture.Key("hog"))).BarredUntil
	third := newTimeline(t, "", next.shown["hog"], wanting("other", "cpu=1", 1))
	third.Now = next.Now
	third.cycle()
	if got := third.Job(cluster.GroupID(fixture.Key("hog"))).BarredUntil; !got.Equal(until) {
		t.Errorf("it is barred until %s, was until %s", got, until)
	}
	edited := next.shown["hog"].DeepCopy()
	edited.Generation++
	next.set(edited).until(40*time.Second).expect("hog", pending, verdict.PodsMissing)
}

// A status that this process wrote does not count when the job is admitted again, even if the watch delivers it late.
func TestWhatAProcessWroteItselfIsNotTakenForAnothers(t *testing.T) {
	l := newTimeline(t, "", wanting("hog", "cpu=10", 1), wanting("waits", "cpu=10", 1)).until(20*time.Second).expect("hog", inqueue, verdict.NotEnoughTasks)
	late := l.shown["hog"].DeepCopy()
	l.until(40*time.Second).expect("hog", pending, verdict.PodsMissing).Remove(l.shown["waits"])
	for l.Now = fixture.Birth.Add(59 * time.Second); l.Now.Before(fixture.Birth.Add(65 * time.Second)); {
		l.Set(late).CycleAfter(time.Second)
	}
	l.set(wanting("next", "cpu=10", 1)).until(85*time.Second).expect("hog", inqueue, verdict.NotEnoughTasks)
	l.until(95*time.Second).expect("hog", pending, verdict.PodsMissing).expect("next", inqueue, verdict.NotEnoughTasks)
}

func TestATimeoutBelowHalfAMinuteIsAnError(t *testing.T) {
	_, err := conf.Parse([]byte("{actions: enqueue, tiers: [], configurations: [{name: enqueue, arguments: {podsTimeout: 10s}}]}"), scheduler.NewRegistry().Catalogue())
	if err == nil || !strings.Contains(err.Error(), "at least 30s") {
		t.Errorf("the error is %v", err)
	}
}

// claims is how much CPU is kept for an admitted job.
func (l *timeline) claims(name string, want int64) *timeline {
	l.t.Helper()
	if claims := l.Job(cluster.GroupID(fixture.Key(name))).Usage.Inqueue.At(l.Resources.Dim("cpu")); claims != want {
		l.t.Errorf("after %s %s is kept %d, should be %d", l.Now.Sub(fixture.Birth), name, claims, want)
	}
	return l
}

func TestWhatIsGoneOrTerminatesIsNotToCome(t *testing.T) {
	pod := fixture.Pod("p", fixture.In("old"), fixture.Asks("cpu=10 example.com/gpu=1")) // no node has this device
	volcano := func(g *schedulingv1beta1.PodGroup) *schedulingv1beta1.PodGroup {
		isController := true
		g.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Name: "j", UID: "j", Controller: &isController}}
		return g
	}
	t.Run("the pods of a group that ran are deleted and come back", func(t *testing.T) {
		runs := fixture.Pod("p", fixture.In("old"), fixture.Asks("cpu=10"), fixture.On("n1"))
		l := newTimeline(t, "", wanting("old", "cpu=10", 1), runs).until(time.Second).expect("old", running, "")
		l.Remove(runs)
		l.until(2*time.Second).set(wanting("new", "cpu=10", 1)).until(3*time.Second).expect("old", inqueue, verdict.NotEnoughTasks).claims("old", 0).expect("new", inqueue, verdict.NotEnoughTasks).claims("new", 10_000)
		l.until(time.Hour).expect("old", inqueue, verdict.NotEnoughTasks) // it keeps nothing from others
		l.set(pod).until(time.Hour+time.Second).claims("old", 10_000)
	})
	t.Run("a Volcano Job makes others, so its room is kept", func(t *testing.T) {
		runs := fixture.Pod("p", fixture.In("old"), fixture.Asks("cpu=10"), fixture.On("n1"))
		l := newTimeline(t, "", volcano(wanting("old", "cpu=10", 1)), runs).until(time.Second)
		l.Remove(runs)
		l.until(2*time.Second).set(wanting("new", "cpu=10", 1)).until(3*time.Second).claims("old", 10_000).expect("new", pending, verdict.OverCommitted)
	})
	t.Run("one of two pods terminates", func(t *testing.T) {
		other := fixture.Pod("q", fixture.In("old"), fixture.Asks("cpu=4 example.com/gpu=1"))
		l := newTimeline(t, "", wanting("old", "cpu=14", 2), fixture.Node("n2", "cpu=10"), pod, other).until(time.Second).claims("old", 14_000)
		ends := other.DeepCopy()
		ends.DeletionTimestamp = &metav1.Time{Time: l.Now.Add(time.Hour)}
		l.set(ends).until(2*time.Second).claims("old", 10_000)
	})
	t.Run("a group that is being deleted claims what its pods request", func(t *testing.T) {
		small := fixture.Pod("p", fixture.In("old"), fixture.Asks("cpu=1 example.com/gpu=1"))
		l := newTimeline(t, "", volcano(wanting("old", "cpu=10", 1)), small).until(time.Second).claims("old", 10_000)
		ends := l.shown["old"].DeepCopy()
		ends.DeletionTimestamp = &metav1.Time{Time: l.Now}
		l.set(ends).until(2*time.Second).claims("old", 1_000)
	})
}
