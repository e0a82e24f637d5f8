package history

// Running is how many jobs are kept that run, as far as is known.
func (h *History) Running() int { return len(h.running) }

// SweepSlack is [sweepSlack].
const SweepSlack = sweepSlack
