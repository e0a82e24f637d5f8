package cluster

import "hekla.sh/hekla/pkg/quota"

// AccountOf is where what a job holds counts: in its queue, or in that below which the quotas of its Workload stand
// (rule C22). It is nil if there is neither.
func (j *Job) AccountOf() *quota.Node {
	switch {
	case j == nil:
	case j.Queue != nil:
		return &j.Queue.Node
	case j.Below != nil:
		return &j.Below.Node
	}
	return nil
}

// SetBelow counts what the job of a Workload holds in a queue of a tree from now on; nil if there is none of that
// name.
func SetBelow(t *quota.Tree, j *Job, name string, q *Queue) {
	if j.BelowName == name && j.Below == q {
		return
	}
	if j.Below != nil {
		t.BookAll(&j.Below.Node, &j.Usage, -1)
		j.Below.Free()
	}
	j.BelowName, j.Below = name, q
	if q != nil {
		t.BookAll(&q.Node, &j.Usage, +1)
	}
}
