package survey

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// The limits of a survey.
const (
	// MaxListed is the number of nodes that a list names.
	MaxListed = 20
	// MaxGangs is the number of gangs for which room is counted, half of them like jobs that wait. These are looked for
	// among the oldest MaxOldest.
	MaxGangs, MaxOldest = 16, 200
)

// Survey describes a cluster.
type Survey struct {
	Queues []Line `json:"queues"`
	Room   Room   `json:"room"`
	Nodes  Nodes  `json:"nodes"`
}

// Gang is n pods that request the same.
type Gang struct {
	Pods    int                 `json:"pods"`
	Request corev1.ResourceList `json:"request"`
}

// Room is what is free, and what of it gangs could use now.
type Room struct {
	Free []Free `json:"free"`
	// Asked says how many of the gangs that were asked for could start now, Waiting how many like those that wait.
	Asked   []GangRoom `json:"asked,omitempty"`
	Waiting []GangRoom `json:"waiting,omitempty"`
}

// Free is how much of a resource is free on nodes that can be used, and in how large pieces.
type Free struct {
	Resource    string `json:"resource"`
	Allocatable string `json:"allocatable"`
	Free        string `json:"free"`
	// Largest is the most that is free on one node.
	Largest string `json:"largest"`
	// Pieces says for how many pods with 1, 2, 4, 8 and 16 of it there is room, as far as it is concerned. It is there
	// for devices and other countable resources.
	Pieces []Piece `json:"pieces,omitempty"`
}

// Piece is for how many pods with an amount of a resource there is room.
type Piece struct {
	Amount int64 `json:"amount"`
	Pods   int64 `json:"pods"`
}

// GangRoom says how many gangs could start now, at most.
type GangRoom struct {
	// Like is a job that waits with such pods, "" if the gang was asked for.
	Like    string            `json:"like,omitempty"`
	Pods    int               `json:"pods"`
	Request map[string]string `json:"request"`
	// Room is for how many pods nodes have room, Gangs how many gangs that makes.
	Room  int64 `json:"room"`
	Gangs int64 `json:"gangs"`
}

// Nodes counts the nodes, and names those that cannot be used.
type Nodes struct {
	Total    int `json:"total"`
	Usable   int `json:"usable"` // ready and not cordoned
	Pods     int `json:"pods"`   // with a node, of all schedulers
	Promised int `json:"promised"`
	// NotReady, Cordoned, Silent and Ahead name some of the nodes that are not ready, are cordoned, have not reported
	// for [Silence], or whose clock is ahead by more than [Skew]. Unknown are named by pods and do not exist.
	NotReady NodeList `json:"notReady"`
	Cordoned NodeList `json:"cordoned"`
	Silent   NodeList `json:"silent"`
	Ahead    NodeList `json:"ahead"`
	Unknown  NodeList `json:"unknown"`
}

// NodeList counts nodes and names the first by name.
type NodeList struct {
	Count int      `json:"count"`
	Nodes []string `json:"nodes,omitempty"`
}

const (
	// Silence is how long a node may not report: a kubelet reports its status every five minutes, also if nothing has
	// changed.
	Silence = 11 * time.Minute
	// Skew is how far the clock of a node may be ahead.
	Skew = 10 * time.Second
)

// Of surveys the cluster of a session. Names in gangs that the cluster does not know have no room.
func Of(s *framework.Session, asked []Gang) Survey {
	answer := Survey{Queues: lines(s), Nodes: nodes(s)}
	answer.Room.Free = free(s)
	for _, g := range asked[:min(len(asked), MaxGangs)] {
		answer.Room.Asked = append(answer.Room.Asked, roomFor(s, g))
	}
	answer.Room.Waiting = roomForWaiting(s)
	return answer
}

func isUsable(n *cluster.Node) bool {
	return n.Object != nil && n.Ready() && !n.Object.Spec.Unschedulable
}

func nodes(s *framework.Session) Nodes {
	var all Nodes
	add := func(list *NodeList, n *cluster.Node, is bool) {
		if !is {
			return
		}
		if list.Count++; len(list.Nodes) < MaxListed {
			list.Nodes = append(list.Nodes, n.Name)
		}
	}
	for _, n := range s.Cluster.Nodes() {
		if all.Total++; isUsable(n) {
			all.Usable++
		}
		all.Pods += len(n.Tasks())
		if !n.Promised.IsZero() {
			all.Promised++
		}
		if add(&all.Unknown, n, n.Object == nil); n.Object == nil {
			continue
		}
		add(&all.NotReady, n, !n.Ready())
		add(&all.Cordoned, n, n.Object.Spec.Unschedulable)
		for i := range n.Object.Status.Conditions {
			c := &n.Object.Status.Conditions[i]
			if at := c.LastHeartbeatTime.Time; c.Type == corev1.NodeReady && !at.IsZero() {
				add(&all.Silent, n, s.Now.Sub(at) > Silence)
				add(&all.Ahead, n, at.Sub(s.Now) > Skew)
			}
		}
	}
	return all
}

// free lists the resources of the nodes.
func free(s *framework.Session) []Free {
	index := s.Cluster.Resources
	var all []Free
	for d, name := range index.Resources() {
		if name == corev1.ResourcePods {
			continue
		}
		var total, sum, most int64
		pieces := []Piece{{Amount: 1}, {Amount: 2}, {Amount: 4}, {Amount: 8}, {Amount: 16}}
		for _, n := range s.Cluster.Nodes() {
			if !isUsable(n) || !n.Has(d) {
				continue
			}
			left := max(n.Free(d), 0)
			total, sum, most = total+n.Allocatable.At(d), sum+left, max(most, left)
			for p := range pieces {
				pieces[p].Pods += left / pieces[p].Amount
			}
		}
		if total == 0 {
			continue
		}
		f := Free{Resource: string(name), Allocatable: resources.Format(name, total), Free: resources.Format(name, sum), Largest: resources.Format(name, most)}
		if isCounted(name) {
			f.Pieces = pieces
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Free) int { return cmp.Compare(a.Resource, b.Resource) })
	return all
}

// isCounted reports whether amounts of a resource are whole things, such as devices.
func isCounted(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourceStorage:
		return false
	}
	return !isHugePages(name)
}

func isHugePages(name corev1.ResourceName) bool {
	return len(name) > len(corev1.ResourceHugePagesPrefix) && name[:len(corev1.ResourceHugePagesPrefix)] == corev1.ResourceHugePagesPrefix
}

// roomFor counts how many of the gangs could start, by what is free on each node.
func roomFor(s *framework.Session, g Gang) GangRoom {
	index := s.Cluster.Resources
	answer := GangRoom{Pods: max(g.Pods, 1), Request: map[string]string{}}
	type need struct {
		dim    resources.Dim
		amount int64
	}
	pods, _ := index.Find(corev1.ResourcePods)
	needs := []need{{pods, 1}}
	for _, name := range slices.Sorted(maps.Keys(g.Request)) {
		d, isKnown := index.Find(name)
		amount := resources.Saturated(name, g.Request[name])
		answer.Request[string(name)] = resources.Format(name, amount)
		if amount <= 0 {
			continue
		}
		if !isKnown {
			return answer
		}
		needs = append(needs, need{d, amount})
	}
	for _, n := range s.Cluster.Nodes() {
		if !isUsable(n) {
			continue
		}
		fit := max(n.Free(pods), 0)
		for _, x := range needs[1:] {
			fit = min(fit, max(n.Free(x.dim), 0)/x.amount)
		}
		answer.Room += fit
	}
	answer.Gangs = answer.Room / int64(answer.Pods)
	return answer
}

// roomForWaiting counts how many gangs could start like those that wait for nodes, the oldest first, one for each class
// of pods. The rules of nodes count: selectors, taints, ports.
func roomForWaiting(s *framework.Session) []GangRoom {
	counter, ok := s.Placer.(framework.RoomCounter)
	if !ok {
		return nil
	}
	var jobs []*cluster.Job
	for _, j := range s.Cluster.Waiting() {
		if !j.IsForeign && j.Queue != nil && j.Lacks() > 0 && j.Count(cluster.Pending) > 0 {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b *cluster.Job) int {
		return cmp.Or(a.Created().Compare(b.Created()), a.ID.Compare(b.ID))
	})
	type shape struct {
		class *cluster.Class
		pods  int
	}
	seen := map[shape]bool{}
	var all []GangRoom
	for _, j := range jobs[:min(len(jobs), MaxOldest)] {
		if len(all) == MaxGangs/2 {
			break
		}
		for _, t := range cluster.OnePerClass(s.Pending(j)) {
			k := shape{t.Class, j.Lacks()}
			if seen[k] || len(all) == MaxGangs/2 {
				continue
			}
			seen[k] = true
			room, _ := counter.Room(t.Class)
			g := GangRoom{Like: j.Name(), Pods: j.Lacks(), Request: map[string]string{}, Room: room, Gangs: room / int64(j.Lacks())}
			for d, amount := range t.Request() {
				if name := s.Cluster.Resources.Name(resources.Dim(d)); amount > 0 && name != corev1.ResourcePods {
					g.Request[string(name)] = resources.Format(name, amount)
				}
			}
			all = append(all, g)
		}
	}
	return all
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
