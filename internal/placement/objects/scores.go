package objects

import (
	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/internal/placement/limit"
	"hekla.sh/hekla/internal/placement/reason"
	"hekla.sh/hekla/pkg/cluster"
)

// Scores are what the objects of nodes give to classes with the same constraints and common images. They are normalised
// over the nodes whose objects pass, not over those with free resources. Otherwise every placement could change the
// scores of all nodes.
type Scores struct {
	question *kube.Question
	version  uint64          // of the answers that they are of, counted from 1; 0 if they are not worked out
	bySlot   []int64         // nil if the nodes do not differ, or they are of few
	ofFew    map[int32]int64 // nil if the nodes do not differ, or they are of all
}

// BySlot returns the scores of all nodes, nil if the nodes do not differ, or if the answers are about few nodes.
func (s *Scores) BySlot() []int64 { return s.bySlot }

// At returns the score of the node in a slot.
func (s *Scores) At(slot int32) int64 {
	if s.bySlot != nil {
		return s.bySlot[slot]
	}
	return s.ofFew[slot]
}

// AddTo adds the scores of the nodes in some slots.
func (s *Scores) AddTo(scores []int64, slots []int32) {
	switch {
	case s.bySlot != nil:
		for i, slot := range slots {
			scores[i] += s.bySlot[slot]
		}
	case s.ofFew != nil:
		for i, slot := range slots {
			scores[i] += s.ofFew[slot]
		}
	}
}

// Scores returns the scores for a class with some common images, which is one of those that the answers are for. The
// answers must be up to date. The scores are valid until the next question to the table.
func (o *Answers) Scores(images string, k *cluster.Class) *Scores {
	t := o.table
	s := o.scores[images]
	if s == nil {
		if len(o.scores) >= maxImages {
			t.scored -= o.dropScores()
		}
		s = &Scores{question: o.question}
		if images != "" {
			s.question = t.kube.AskCommonImages(k)
		}
		o.scores[images] = s
	}
	if s.version != o.version+1 {
		o.score(s)
		s.version = o.version + 1
	}
	return s
}

// maxImages limits the sets of common images for which scores are stored with each set of constraints.
const maxImages = 1 << 10

// score works scores out.
func (o *Answers) score(s *Scores) {
	t := o.table
	t.passing = t.passing[:0]
	if o.few != nil {
		for i, slot := range o.few.slots {
			if o.few.static[i] == reason.Fits {
				t.passing = append(t.passing, t.cluster.BySlot()[slot])
			}
		}
	} else {
		for slot, n := range t.cluster.BySlot() {
			if o.static[slot] == reason.Fits {
				t.passing = append(t.passing, n)
			}
		}
	}
	if s.bySlot != nil {
		t.scored--
	}
	s.bySlot, s.ofFew = nil, nil
	points := s.question.Preferences(t.passing)
	switch {
	case points == nil:
	case o.few != nil:
		s.ofFew = make(map[int32]int64, len(points))
		for i, n := range t.passing {
			s.ofFew[int32(n.Slot)] = points[i] * t.point
		}
	default:
		t.makeSpaceForScores()
		s.bySlot = make([]int64, len(o.static))
		for i, n := range t.passing {
			s.bySlot[n.Slot] = points[i] * t.point
		}
	}
}

// makeSpaceForScores makes space for one more set of scores of all nodes.
func (t *Table) makeSpaceForScores() {
	if t.scored++; t.scored <= limit.Entries(len(t.cluster.BySlot()), scoresBytes) {
		return
	}
	t.scored = 1
	for _, o := range t.answers {
		o.dropScores()
	}
}

// dropScores drops all scores, and returns how many of them were of all nodes.
func (o *Answers) dropScores() (dropped int) {
	for images, s := range o.scores {
		if s.bySlot != nil {
			dropped++
		}
		s.bySlot, s.ofFew, s.version = nil, nil, 0
		delete(o.scores, images)
	}
	return dropped
}
