package board

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"hekla.sh/hekla/internal/explain/rows"
	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/pkg/scheduler"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// seen is an overview with some jobs, NAMESPACE/NAME and a state.
func seen(cycle uint64, jobs ...string) scheduler.Overview {
	b := &rows.Board{Resources: []string{"cpu"}, Nodes: []*rows.Node{
		{Node: "gone", Allocatable: []int64{4000}}, {Node: "n", Ready: true, Allocatable: []int64{4000}, Used: []int64{1000}, Idle: []int64{3000}},
	}}
	for i := 0; i < len(jobs); i += 2 {
		b.Jobs = append(b.Jobs, &rows.Job{Job: jobs[i], State: jobs[i+1], Created: noon})
	}
	return scheduler.Overview{Cycle: cycle, Time: noon, Board: b}
}

func names(list []rows.Job) (all []string) {
	for _, r := range list {
		all = append(all, r.Job)
	}
	return all
}

func TestAReaderIsSentWhatHasChanged(t *testing.T) {
	all := &View{Everything: true}
	s := New(7)
	s.Update(seen(1, "a/x", "Pending", "b/y", "Running"))
	first := s.Jobs(all, "")
	if !first.Whole || !reflect.DeepEqual(names(first.Rows), []string{"a/x", "b/y"}) {
		t.Fatalf("the first list is %+v", first)
	}
	if again := s.Jobs(all, first.Token); again.Whole || len(again.Rows)+len(again.Gone) != 0 || again.Token != first.Token {
		t.Errorf("without a change the list is %+v", again)
	}
	s.Update(seen(2, "a/x", "Running", "c/z", "Pending"))
	next := s.Jobs(all, first.Token)
	if next.Whole || !reflect.DeepEqual(names(next.Rows), []string{"a/x", "c/z"}) || !reflect.DeepEqual(next.Gone, []string{"b/y"}) {
		t.Errorf("what has changed is %+v", next)
	}
	s.Update(seen(3, "a/x", "Running", "b/y", "Running", "c/z", "Pending"))
	if back := s.Jobs(all, first.Token); len(back.Gone) != 0 || len(back.Rows) != 3 {
		t.Errorf("a job that came back is %+v", back)
	}
	for name, token := range map[string]string{
		"of another process": New(8).token(all).String(), "of another view": s.token(&View{Namespaces: []string{"a"}}).String(), "nonsense": "x",
		"of the future": token{process: 7, view: all.hash(), version: 99}.String(),
	} {
		if got := s.Jobs(all, token); !got.Whole || len(got.Rows) != 3 {
			t.Errorf("with a token %s the list is %+v", name, got)
		}
	}
}

func TestOtherNamespacesAreSums(t *testing.T) {
	s := New(7)
	first := seen(1, "a/x", "Pending", "b/secret", "Running", "c/other", "Finished", "c/secret", "Pending")
	for i, names := range [][2]string{{"a/v", "c/secret"}, {"b/v", "c/secret"}, {"b/v", "a/x"}} {
		first.Entries = append(first.Entries, journal.Entry{Cycle: 1, Time: noon.Add(time.Duration(i) * time.Minute), Kind: journal.Evicted, Job: names[0],
			Pod: names[0] + "-0", For: names[1]})
	}
	s.Update(first)
	mine := &View{Namespaces: []string{"a"}}
	jobs := s.Jobs(mine, "")
	if !reflect.DeepEqual(names(jobs.Rows), []string{"a/x"}) || jobs.Others != (JobCounts{Pending: 1, Running: 1, Finished: 1}) || jobs.OtherNamespaces != 2 {
		t.Errorf("the jobs are %+v", jobs)
	}
	if nodes := s.Nodes(mine, ""); len(nodes.Rows) != 0 || !nodes.Hidden || nodes.Totals.Nodes != 2 || nodes.Totals.NotReady != 1 || nodes.Totals.Idle[0] != 3000 {
		t.Errorf("the nodes are %+v", nodes)
	}
	if evictions := s.Evictions(mine); len(evictions.Rows) != 2 || evictions.Others != 1 {
		t.Errorf("the evictions are %+v", evictions)
	}
	cycles := s.Cycles(mine)
	if len(cycles.Rows) != 1 || cycles.Rows[0].Evicted != 3 || len(cycles.Rows[0].Decisions) != 2 || cycles.Rows[0].More != 1 {
		t.Errorf("the cycles are %+v", cycles)
	}
	if all := s.Cycles(&View{Everything: true}); len(all.Rows[0].Decisions) != 3 {
		t.Errorf("a narrow view has changed what is stored: %+v", all)
	}
	summary := s.Summary(mine)
	if summary.Jobs != (JobCounts{Pending: 2, Running: 1, Finished: 1}) || summary.Evictions != 3 || len(summary.Decisions) != 3 {
		t.Errorf("the summary is %+v", summary)
	}
	s.Update(seen(2, "a/x", "Pending"))
	if next := s.Jobs(mine, jobs.Token); len(next.Gone) != 0 || len(next.Rows) != 0 {
		t.Errorf("of hidden jobs that are gone is said %+v", next)
	}
}

func TestOldDecisionsAreDropped(t *testing.T) {
	s := New(7)
	for cycle := range uint64(3 * maxCycles) {
		o := seen(cycle + 1)
		for i := range maxDecisions + 1 {
			o.Entries = append(o.Entries, journal.Entry{Cycle: cycle + 1, Time: noon.Add(time.Duration(cycle) * time.Minute), Kind: journal.Evicted, Job: "a/x", Pod: fmt.Sprint("a/", i)})
		}
		s.Update(o)
	}
	all := &View{Everything: true}
	cycles := s.Cycles(all)
	if len(cycles.Rows) != maxCycles || len(s.cycles) > 2*maxCycles || cycles.Rows[0].Cycle != 3*maxCycles || len(cycles.Rows[0].Decisions) != maxDecisions || cycles.Rows[0].More != 1 {
		t.Errorf("%d cycles, the newest is %d with %d decisions", len(cycles.Rows), cycles.Rows[0].Cycle, len(cycles.Rows[0].Decisions))
	}
	if found := s.Evictions(all); len(found.Rows) != maxEvictions || len(s.evictions) > 2*maxEvictions {
		t.Errorf("%d evictions, %d stored", len(found.Rows), len(s.evictions))
	}
	if minutes := s.Summary(all).Decisions; len(minutes) != maxMinutes {
		t.Errorf("%d minutes", len(minutes))
	}
}

func TestItIsSaidSinceWhenDecisionsAreKnown(t *testing.T) {
	evicted := func(cycle uint64, count int) scheduler.Overview {
		o := seen(cycle)
		for i := range count {
			o.Entries = append(o.Entries, journal.Entry{Cycle: cycle, Time: noon.Add(time.Duration(cycle)*time.Hour + time.Duration(i)*time.Millisecond), Kind: journal.Evicted, Job: "a/x", Pod: fmt.Sprint("a/", i)})
		}
		return o
	}
	all, leads := &View{Everything: true}, noon.Add(-time.Hour)
	for name, test := range map[string]struct {
		overviews         []scheduler.Overview
		evictions, cycles time.Time
	}{
		"since the process leads":             {[]scheduler.Overview{evicted(1, 3)}, leads, leads},
		"since the oldest that is kept":       {[]scheduler.Overview{evicted(1, 1), evicted(2, maxEvictions)}, noon.Add(2 * time.Hour), leads},
		"since the oldest that was ever read": {[]scheduler.Overview{evicted(3, scheduler.MaxOverviewEntries)}, noon.Add(3*time.Hour + (scheduler.MaxOverviewEntries-maxEvictions)*time.Millisecond), noon.Add(3 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(7)
			s.Lead(leads)
			for _, o := range test.overviews {
				s.Update(o)
			}
			if evictions, cycles := s.Evictions(all).Since, s.Cycles(all).Since; !evictions.Equal(test.evictions) || !cycles.Equal(test.cycles) {
				t.Errorf("evictions are known since %s, cycles since %s, want %s and %s", evictions, cycles, test.evictions, test.cycles)
			}
		})
	}
}

func TestWhoAppliesAllChangesHasTheWholeList(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 14))
	s, mine := New(7), &View{Namespaces: []string{"a", "c"}}
	s.Update(seen(1))
	client, token := map[string]string{}, ""
	for cycle := range uint64(2000) {
		var jobs []string
		for _, name := range []string{"a/v", "a/w", "a/x", "b/y", "c/z"} {
			if r.IntN(3) > 0 {
				jobs = append(jobs, name, []string{rows.StatePending, rows.StateRunning}[r.IntN(2)])
			}
		}
		s.Update(seen(cycle+2, jobs...))
		if r.IntN(3) == 0 {
			continue // it does not look each time
		}
		changes := s.Jobs(mine, token)
		if changes.Whole {
			client = map[string]string{}
		}
		token = changes.Token
		for _, row := range changes.Rows {
			client[row.Job] = row.State
		}
		for _, name := range changes.Gone {
			delete(client, name)
		}
		whole := map[string]string{}
		for _, row := range s.Jobs(mine, "").Rows {
			whole[row.Job] = row.State
		}
		if !reflect.DeepEqual(client, whole) {
			t.Fatalf("after cycle %d the client has %v, want %v", cycle, client, whole)
		}
	}
}

func TestQuotasAreForAllAndLocalQueuesOfOwnNamespaces(t *testing.T) {
	s := New(7)
	o := seen(1, "a/workload/w", "Pending", "a/x", "Foreign")
	o.Board.Jobs[0].Kind = rows.KindWorkload
	o.Board.Quotas = []*rows.Quota{{Kind: rows.KindClusterQueue, Name: "same"}, {Kind: rows.KindCohort, Name: "same"}}
	o.Board.LocalQueues = []*rows.LocalQueue{{LocalQueue: "a/q", ClusterQueue: "same"}, {LocalQueue: "b/q", ClusterQueue: "same"}}
	for _, e := range []journal.Entry{{Job: "a/workload/w", For: "b/workload/v", Reason: "InClusterQueue"}, {Job: "a/x"}, {Job: "b/workload/v"}} {
		e.Cycle, e.Time, e.Kind = 1, noon, journal.SentBack
		o.Entries = append(o.Entries, e)
	}
	s.Update(o)
	mine := &View{Namespaces: []string{"a"}}
	quotas, locals := s.Quotas(mine, ""), s.LocalQueues(mine, "")
	if len(quotas.Rows) != 2 || len(locals.Rows) != 1 || locals.Rows[0].LocalQueue != "a/q" || locals.Others != 1 {
		t.Errorf("the quotas are %+v, and the LocalQueues %+v", quotas, locals)
	}
	if summary := s.Summary(mine); summary.ClusterQueues != 1 || summary.Workloads != 1 || summary.Jobs != (JobCounts{Pending: 1, Foreign: 1}) {
		t.Errorf("the summary is %+v", summary)
	}
	// A PodGroup that is sent back loses no pods.
	if evictions := s.Evictions(mine); len(evictions.Rows) != 1 || evictions.Rows[0].Reason != "InClusterQueue" || evictions.Others != 1 {
		t.Errorf("the evictions are %+v", evictions)
	}
	if spaces := s.Namespaces(); len(spaces) != 2 {
		t.Errorf("the namespaces are %v", spaces)
	}
	next := seen(2, "a/workload/w", "Pending", "a/x", "Foreign")
	next.Board.Quotas = o.Board.Quotas[:1]
	s.Update(next)
	if changed := s.Quotas(mine, quotas.Token); len(changed.Rows) != 0 || !reflect.DeepEqual(changed.Gone, []string{"Cohort/same"}) {
		t.Errorf("what has changed of the quotas is %+v", changed)
	}
	if changed := s.LocalQueues(mine, locals.Token); !reflect.DeepEqual(changed.Gone, []string{"a/q"}) {
		t.Errorf("what has changed of the LocalQueues is %+v", changed)
	}
}
