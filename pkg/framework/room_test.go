package framework_test

import (
	"testing"
	"time"

	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// shelf is a stock of nodes or of a queue.
type shelf struct {
	source verdict.Help
	left   int64
}

func (s *shelf) Left() int64          { return s.left }
func (s *shelf) Source() verdict.Help { return s.source }

func TestNodesWithoutRoomAreNotAskedAgain(t *testing.T) {
	for _, test := range []struct {
		name            string
		nodes, queue    int64
		fitting         []string
		isSeen, isAsked bool
	}{
		{"enough of neither", 1, 1, nil, false, false},
		{"the queue has more, and nodes have not", 1, 2, nil, true, false},
		{"nodes have more", 2, 1, nil, true, true},
		{"both have more", 2, 2, nil, true, true},
		{"some of its pods had a place", 1, 2, []string{"j0-0"}, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			policy := policyOf(t, nil)
			s, c := openCache(policy, gangs(1)...)
			nodes, queue := &shelf{verdict.HelpNode, 1}, &shelf{verdict.HelpQueue, 1}
			j := s.Jobs(s.Queues()[0])[0]
			refused := (&verdict.Verdict{Code: verdict.NotEnoughResources, Fitting: test.fitting}).Await(verdict.Lack{Stock: nodes, Needed: 2}, 0)
			s.NoteRefused(j, refused)
			s.AddVerdict(j, refused)
			s.AddVerdict(j, (&verdict.Verdict{Code: verdict.NotEnoughResources}).Await(verdict.Lack{Stock: queue, Needed: 2}, 0))
			if rests := framework.Open(c, policy, nil, now.Add(time.Second)); len(rests.Queues()) > 0 {
				t.Fatal("the job is looked at though nothing has happened")
			}
			nodes.left, queue.left = test.nodes, test.queue
			c.Touch(c.Node("n0"))
			s = framework.Open(c, policy, nil, now.Add(2*time.Second))
			if isSeen := len(s.Queues()) > 0; isSeen != test.isSeen {
				t.Fatalf("the job is looked at: %t", isSeen)
			}
			v := s.StillRefused(j)
			if isAsked := test.isSeen && v == nil; isAsked != test.isAsked {
				t.Errorf("nodes are asked: %t", isAsked)
			}
			if v != nil && v != refused {
				t.Errorf("the refusal is %+v", v)
			}
		})
	}
}

// A job waits for room and for pods that it may evict. Nodes are asked again only if there may be room.
func TestNodesAreAskedAgainOnlyForWhatTheyLack(t *testing.T) {
	for _, test := range []struct {
		name    string
		cause   wake.Cause
		nodes   int64
		isAsked bool
	}{
		{"other pods may be evicted", wake.VictimsChanged, 1, false},
		{"a queue deserves less", wake.ShareFallen, 1, false},
		{"other pods may be evicted, and nodes have more", wake.VictimsChanged, 2, true},
		{"a queue has changed, on which stocks depend", wake.QueueShown, 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			policy := policyOf(t, nil)
			s, c := openCache(policy, gangs(1)...)
			nodes := &shelf{verdict.HelpNode, 1}
			j := s.Jobs(s.Queues()[0])[0]
			refused := (&verdict.Verdict{Code: verdict.NotEnoughResources}).Await(verdict.Lack{Stock: nodes, Needed: 2}, 0)
			s.NoteRefused(j, refused)
			s.AddVerdict(j, refused)
			s.AddVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpVictims | verdict.HelpShares})
			nodes.left = test.nodes
			c.Note(test.cause)
			s = framework.Open(c, policy, nil, now.Add(time.Second))
			if len(s.Queues()) == 0 {
				t.Fatal("the job is not looked at")
			}
			if isAsked := s.StillRefused(j) == nil; isAsked != test.isAsked {
				t.Errorf("nodes are asked: %t", isAsked)
			}
		})
	}
}
