package explain_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
)

// shift changes a small cluster at random: nodes, jobs and their pods, a queue.
func (a *asker) shift(r *rand.Rand) {
	job := fmt.Sprint("g", r.IntN(4))
	pod := fmt.Sprint(job, "-", r.IntN(3))
	switch r.IntN(9) {
	case 0, 1:
		node := fixture.Node(fmt.Sprint("n", r.IntN(4)), fmt.Sprintf("cpu=%d gpu=%d", 1+r.IntN(6), r.IntN(3)), fixture.InZone(fmt.Sprint(r.IntN(2))))
		if node.Spec.Unschedulable = r.IntN(5) == 0; r.IntN(6) == 0 {
			a.Remove(node)
		} else {
			a.Set(node)
		}
	case 2:
		a.Set(fixture.Group(job, []string{"default", "other"}[r.IntN(2)], int32(1+r.IntN(3))))
	case 3, 4, 5:
		options := []func(*corev1.Pod){fixture.In(job), preemptable, fixture.Asks(fmt.Sprintf("cpu=%d gpu=%d", 1+r.IntN(4), r.IntN(2)))}
		if r.IntN(3) == 0 {
			options = append(options, fixture.Selecting("zone", fmt.Sprint(r.IntN(2))))
		}
		if r.IntN(4) == 0 {
			options = append(options, fixture.Labelled("app", "x"), fixture.ApartFrom("app", "x"))
		}
		if a.Task(fixture.Key(pod)) == nil {
			a.Set(fixture.Pod(pod, options...))
		}
	case 6:
		if t := a.Task(fixture.Key(pod)); t != nil {
			ended := t.Pod.DeepCopy()
			ended.Status.Phase = corev1.PodSucceeded
			a.Set(ended)
			a.Remove(ended)
		}
	case 7:
		a.Set(fixture.Queue("other", fixture.Capped(fmt.Sprint("cpu=", 1+r.IntN(6)))))
	default:
		a.Cycle()
		a.StartBound()
		a.Now = a.Now.Add(time.Duration(r.IntN(1500)) * time.Millisecond)
	}
}

// What is kept between questions changes no answer: a model that is asked again and again says what a new one says.
func TestANewModelAnswersTheSame(t *testing.T) {
	const worlds, steps = 12, 120
	reasons, proposals := map[string]int{}, 0
	for seed := range uint64(worlds) {
		a, r := newAsker(t, evicting, fixture.Queue("other")), rand.New(rand.NewPCG(seed, 14))
		for step := range steps {
			a.shift(r)
			if r.IntN(2) == 0 {
				continue // what was asked before is some changes old
			}
			fresh, err := explain.New(a.Scheduler.Cache(), a.Scheduler.Policy())
			if err != nil {
				t.Fatal(err)
			}
			for i := range 4 {
				job := cluster.GroupID(fixture.Key(fmt.Sprint("g", i)))
				got, err := a.model().Why(a.Now, job, true)
				want, wantErr := fresh.Why(a.Now, job, true)
				if difference := cmp.Diff(want, got); difference != "" || (err == nil) != (wantErr == nil) {
					t.Fatalf("world %d, step %d, job %s: %v, %v (-new +asked before):\n%s", seed, step, job, wantErr, err, difference)
				}
				if again, _ := a.model().Why(a.Now, job, true); !cmp.Equal(again, got) {
					t.Fatalf("world %d, step %d, job %s, asked twice (-first +second):\n%s", seed, step, job, cmp.Diff(got, again))
				}
				proposals += len(got.Proposals)
				pod := fixture.Key(job.Name + "-0")
				gotPod, _ := a.model().Pod(a.Now, pod)
				wantPod, _ := fresh.Pod(a.Now, pod)
				if difference := cmp.Diff(wantPod, gotPod); difference != "" {
					t.Fatalf("world %d, step %d, pod %s (-new +asked before):\n%s", seed, step, pod, difference)
				}
				for _, n := range got.Cause.Nodes {
					reasons[n.Reason] += n.Nodes
				}
			}
		}
	}
	if proposals < worlds*steps/10 {
		t.Errorf("only %d proposals were made", proposals)
	}
	for _, reason := range []string{"Insufficient cpu", "Insufficient gpu", "node(s) were unschedulable"} {
		if reasons[reason] < worlds {
			t.Errorf("nodes refuse for %v", reasons)
		}
	}
}
