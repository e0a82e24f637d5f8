package victims

import "hekla.sh/hekla/pkg/cluster/workload"

// Candidates are the Workloads that the policies allow to evict for a claim of quota (rule C13), those first that are
// taken first if nothing else counts (rule C14). spared are those that only rule C20 excepts. Whether enough of them
// may be taken that the claim fits, [Rules.Victims] says.
func (r *Rules) Candidates(c *workload.Claim) (may, spared []*workload.Workload) {
	s := &search{Rules: r, Claim: c, queue: c.Workload.Queue, frs: c.Needs}
	tree := s.queue.Tree()
	mark := tree.Mark()
	defer tree.Undo(mark)
	s.queue.Charge(s.Usage)
	excepted := c.Workload.Spares()
	for _, found := range s.candidates() {
		if excepted[found.Workload] {
			spared = append(spared, found.Workload)
		} else {
			may = append(may, found.Workload)
		}
	}
	return may, spared
}
