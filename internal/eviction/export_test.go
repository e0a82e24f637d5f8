package eviction

// TryAll has a search try every node for every preemptor, without lower bounds.
func (f *Search) TryAll() { f.triesAll = true }
