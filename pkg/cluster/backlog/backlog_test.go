package backlog_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/backlog"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/verdict"
)

// stock is an amount that the test sets.
type stock struct{ left *int64 }

func (s stock) Left() int64 { return *s.left }

func (stock) Source() verdict.Help { return verdict.HelpNode }

// A backlog looks at jobs by groups, stocks and kinds of help. The jobs that it returns are those that looking at each
// job by itself finds.
func TestGroupsHideNoJob(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var world wake.World
		stocks := make([]int64, 3)
		b, now := backlog.New(), time.Unix(1000, 0)
		jobs := make([]*cluster.Job, 12)
		seen := map[*cluster.Job]wake.Counts{}
		judge := func(j *cluster.Job) {
			v := &verdict.Verdict{Code: verdict.NotEnoughResources}
			v.Help = rapid.SampledFrom([]verdict.Help{verdict.HelpNode, verdict.HelpPod, verdict.HelpPod | verdict.HelpSupply, verdict.HelpStock, verdict.HelpStock | verdict.HelpPlaces}).Draw(r, "help")
			if v.Help&verdict.HelpStock != 0 {
				for i := range rapid.IntRange(1, len(v.Lacks)).Draw(r, "lacks") {
					v.Lacks[i] = verdict.Lack{Stock: stock{&stocks[rapid.IntRange(0, 2).Draw(r, "stock")]}, Needed: rapid.Int64Range(1, 5).Draw(r, "needed")}
				}
			}
			j.Verdict, seen[j] = v, world.Counts
			b.Attend(j)
		}
		for i := range jobs {
			jobs[i] = &cluster.Job{}
			jobs[i].Internal.LookedAt = now
			b.Wait(jobs[i])
			judge(jobs[i])
		}
		for position := range uint64(20) {
			for range rapid.IntRange(0, 2).Draw(r, "causes") {
				world.Note(rapid.SampledFrom([]wake.Cause{wake.NodeShown, wake.NodeLost, wake.NodeRelabelled, wake.ClusterResized, wake.SupplyShown}).Draw(r, "cause"))
			}
			for i := range stocks {
				stocks[i] = rapid.Int64Range(0, 6).Draw(r, "left")
			}
			isHelped := func(j *cluster.Job) bool {
				then := seen[j]
				return then.Differ(&world.Counts, j.Verdict.Help)
			}
			helped, roomed := b.Retry(now, &world.Counts, position, nil, func(j *cluster.Job, _ time.Time) bool { return isHelped(j) })
			for _, j := range jobs {
				hasEnough := false
				for _, of := range roomed {
					hasEnough = hasEnough || slices.Contains(of, j)
				}
				if got, want := slices.Contains(helped, j), isHelped(j); got != want {
					r.Fatalf("a job with the help %b is helped: %t, want %t", j.Verdict.Help, got, want)
				}
				if want := !isHelped(j) && j.Verdict.Lacks.AnyIsMet(); hasEnough != want {
					r.Fatalf("a job that lacks %v has enough: %t, want %t", j.Verdict.Lacks, hasEnough, want)
				}
			}
			for _, j := range helped {
				judge(j)
			}
		}
	})
}
