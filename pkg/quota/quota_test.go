package quota_test

import (
	"testing"

	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
)

// amounts are CPUs, memory and devices by short names. A test lists only what it needs.
type amounts map[string]int64

// index has the dimensions of the tests.
func index() *resources.Index {
	x := resources.NewIndex()
	x.Dim("example.com/a")
	x.Dim("example.com/b")
	return x
}

func dim(name string) resources.Dim {
	switch name {
	case "cpu":
		return resources.CPU
	case "memory":
		return resources.Memory
	case "pods":
		return resources.Pods
	case "example.com/b":
		return 4
	}
	return 3
}

func (a amounts) vector() resources.Vector {
	var v resources.Vector
	for name, amount := range a {
		v.Set(dim(name), amount)
	}
	return v
}

func (a amounts) limits() resources.Limits {
	var l resources.Limits
	for name, amount := range a {
		l.Set(dim(name), amount)
	}
	return l
}

// grow makes a tree of nodes. The first is the root; parents has the index of each node's parent.
func grow(nodes []*quota.Node, parents []int) *quota.Tree {
	t := &quota.Tree{}
	above := map[*quota.Node]*quota.Node{}
	for i, n := range nodes[1:] {
		above[n] = nodes[parents[i+1]]
	}
	t.Grow(nodes[0], nodes, func(n *quota.Node) *quota.Node { return above[n] })
	return t
}

// pair is a root with two queues that deserve 4 CPUs each.
func pair() (t *quota.Tree, one, other *quota.Node) {
	terms := quota.Terms{Weight: 1, Deserved: amounts{"cpu": 4}.limits(), Reclaimable: true}
	nodes := []*quota.Node{{Name: "root", Terms: quota.Terms{Reclaimable: true}}, {Name: "one", Terms: terms}, {Name: "other", Terms: terms}}
	return grow(nodes, []int{0, 0, 0}), nodes[1], nodes[2]
}

func TestSurplusIsWhatLiesAboveTheShare(t *testing.T) {
	for name, test := range map[string]struct {
		held, deserved, leaving, wanted amounts
		want                            bool
	}{
		"all above":                               {amounts{"cpu": 4}, amounts{"cpu": 2}, amounts{"cpu": 2}, amounts{"cpu": 1}, true},
		"partly above":                            {amounts{"cpu": 4}, amounts{"cpu": 3}, amounts{"cpu": 2}, amounts{"cpu": 1}, false},
		"all within":                              {amounts{"cpu": 2}, amounts{"cpu": 2}, amounts{"cpu": 1}, amounts{"cpu": 1}, false},
		"above in one that is wanted":             {amounts{"cpu": 4, "memory": 4}, amounts{"cpu": 2, "memory": 4}, amounts{"cpu": 1, "memory": 1}, amounts{"cpu": 1}, true},
		"above in one that is not wanted":         {amounts{"cpu": 4, "memory": 4}, amounts{"cpu": 2, "memory": 4}, amounts{"cpu": 1, "memory": 1}, amounts{"memory": 1}, false},
		"above in one that does not leave":        {amounts{"cpu": 4, "memory": 4}, amounts{"cpu": 2, "memory": 4}, amounts{"memory": 1}, amounts{"cpu": 1, "memory": 1}, false},
		"the share does not speak of what leaves": {amounts{"cpu": 4, "memory": 4}, amounts{"cpu": 9}, amounts{"memory": 1}, amounts{"memory": 1}, true},
		"the share speaks of pods alone":          {amounts{"cpu": 4, "pods": 4}, amounts{"pods": 9}, amounts{"cpu": 1, "pods": 1}, amounts{"cpu": 1, "pods": 1}, true},
		"no share at all":                         {amounts{"cpu": 4}, amounts{}, amounts{"cpu": 4}, amounts{"cpu": 1}, true},
		"deserving nothing":                       {amounts{"cpu": 4}, amounts{"cpu": 0}, amounts{"cpu": 4}, amounts{"cpu": 1}, true},
		"another resource":                        {amounts{"cpu": 4, "example.com/b": 1}, amounts{"cpu": 1, "example.com/b": 2}, amounts{"example.com/b": 1}, amounts{"example.com/b": 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := &quota.Node{Name: "q", Terms: quota.Terms{Deserved: test.deserved.limits()}}
			tree := grow([]*quota.Node{{Name: "root"}, n}, []int{0, 0})
			tree.Book(n, quota.Allocated, test.held.vector(), +1)
			if got := quota.Written(quota.Policy{}).IsSurplus(n, test.leaving.vector(), test.wanted.vector()); got != test.want {
				t.Errorf("it is surplus: %t", got)
			}
		})
	}
}

func TestAQueueIsAboveItsShareInWhatIsAskedAbout(t *testing.T) {
	for name, test := range map[string]struct {
		held, deserved, asked amounts
		want                  bool
	}{
		"above":                        {amounts{"cpu": 3}, amounts{"cpu": 2}, amounts{"cpu": 1}, true},
		"at it":                        {amounts{"cpu": 2}, amounts{"cpu": 2}, amounts{"cpu": 1}, false},
		"above in what is not asked":   {amounts{"cpu": 3, "memory": 1}, amounts{"cpu": 2, "memory": 1}, amounts{"memory": 1}, false},
		"above in one of two":          {amounts{"cpu": 3, "memory": 1}, amounts{"cpu": 2, "memory": 1}, amounts{"cpu": 1, "memory": 1}, true},
		"above in what is not named":   {amounts{"cpu": 3}, amounts{"memory": 1}, amounts{"cpu": 1}, false},
		"above in the number of pods":  {amounts{"pods": 3}, amounts{"pods": 1}, amounts{"pods": 1}, false},
		"deserving nothing of what is": {amounts{"cpu": 1}, amounts{"cpu": 0}, amounts{"cpu": 1}, true},
		"above in any":                 {amounts{"cpu": 1, "memory": 3}, amounts{"cpu": 2, "memory": 2}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := &quota.Node{Name: "q", Terms: quota.Terms{Deserved: test.deserved.limits()}}
			tree := grow([]*quota.Node{{Name: "root"}, n}, []int{0, 0})
			tree.Book(n, quota.Allocated, test.held.vector(), +1)
			view := quota.Written(quota.Policy{})
			if got := view.IsAboveShare(n, test.asked.vector()); got != test.want {
				t.Errorf("it is above its share: %t", got)
			}
			if got, held, deserved := view.Borrowed(n, resources.CPU), test.held["cpu"], test.deserved["cpu"]; got > 0 && got != held-deserved {
				t.Errorf("it has borrowed %d, and holds %d of the %d it deserves", got, held, deserved)
			}
		})
	}
}

func TestAQueueTakesOfRightOrByBorrowing(t *testing.T) {
	for name, test := range map[string]struct {
		levels  int
		held    amounts // by the queue
		sibling amounts // by another queue below the same parent
		asked   amounts
		want    quota.Ground
	}{
		"within its own share":                  {1, amounts{"cpu": 1}, nil, amounts{"cpu": 1}, quota.OfRight},
		"beyond it, and nobody lends":           {0, amounts{"cpu": 2}, nil, amounts{"cpu": 1}, quota.NoGround},
		"beyond it, within that of the parent":  {1, amounts{"cpu": 2}, nil, amounts{"cpu": 1}, quota.Borrowing},
		"beyond that of the parent too":         {1, amounts{"cpu": 2}, amounts{"cpu": 4}, amounts{"cpu": 1}, quota.NoGround},
		"what no share names":                   {1, nil, nil, amounts{"memory": 1}, quota.NoGround},
		"a place alone":                         {1, nil, nil, amounts{"pods": 1}, quota.NoGround},
		"what is named and what is not":         {0, nil, nil, amounts{"cpu": 1, "memory": 5}, quota.OfRight},
		"the share of the root is lent to none": {9, amounts{"cpu": 2}, amounts{"cpu": 4}, amounts{"cpu": 1}, quota.NoGround},
	} {
		t.Run(name, func(t *testing.T) {
			named := func(name string, cpus int64) *quota.Node {
				return &quota.Node{Name: name, Terms: quota.Terms{Deserved: amounts{"cpu": cpus}.limits()}}
			}
			nodes := []*quota.Node{named("root", 100), named("up", 6), named("q", 2), named("sibling", 4)}
			tree := grow(nodes, []int{0, 0, 1, 1})
			tree.Book(nodes[2], quota.Allocated, test.held.vector(), +1)
			tree.Book(nodes[3], quota.Allocated, test.sibling.vector(), +1)
			if got := quota.Written(quota.Policy{Levels: test.levels}).Ground(nodes[2], test.asked.vector()); got != test.want {
				t.Errorf("the ground is %d, want %d", got, test.want)
			}
		})
	}
}

func TestWhatIsSurplusIsNoRightToComeBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tree, one, other := pair()
		for _, n := range []*quota.Node{one, other} {
			n.Deserved = drawAmounts(r, "deserved").limits()
		}
		tree.Grow(tree.Root(), []*quota.Node{tree.Root(), one, other}, parentOf(tree.Root()))
		tree.Book(one, quota.Allocated, drawAmounts(r, "held by one").vector(), +1)
		tree.Book(other, quota.Allocated, drawAmounts(r, "held by the other").vector(), +1)
		asked, leaving := drawAmounts(r, "asked").vector(), drawAmounts(r, "leaving").vector()
		leaving.AtMost(other.Own.Allocated)
		view := quota.Written(quota.Policy{})
		takes := func(preemptor, victim *quota.Node, asked, leaving resources.Vector) bool {
			return view.Ground(preemptor, asked) == quota.OfRight && view.MayGive(victim, preemptor, leaving).IsNone() &&
				view.IsSurplus(victim, leaving, asked) && !isNothing(leaving)
		}
		if !takes(one, other, asked, leaving) {
			return
		}
		tree.Book(other, quota.Allocated, leaving, -1)
		tree.Book(one, quota.Allocated, asked, +1)
		if takes(other, one, leaving, asked) {
			r.Fatalf("%v left for %v, which may leave for it again", leaving, asked)
		}
	})
}

func isNothing(v resources.Vector) bool {
	for d, amount := range v {
		if amount > 0 && resources.Dim(d) != resources.Pods {
			return false
		}
	}
	return true
}

func parentOf(root *quota.Node) func(*quota.Node) *quota.Node {
	return func(n *quota.Node) *quota.Node {
		if n == root {
			return nil
		}
		return root
	}
}

func drawAmounts(r *rapid.T, what string) amounts {
	a := amounts{}
	for _, name := range []string{"cpu", "memory", "pods", "example.com/a", "example.com/b"} {
		if rapid.Bool().Draw(r, what+" "+name) {
			a[name] = rapid.Int64Range(0, 4).Draw(r, what)
		}
	}
	return a
}
