package rules

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// depthEnv is the variable that says how many moves deep small clusters are searched, worldsEnv which part of them: one
// in so many. Without them it is what CI has time for.
const (
	depthEnv   = "HEKLA_SMALL_DEPTH"
	worldsEnv  = "HEKLA_SMALL_ONE_IN"
	plainDepth = 4
	plainOneIn = 800
)

// smallJob is a gang of which all pods must start together, each with one CPU.
type smallJob struct {
	queue string
	class string
	pods  int
}

// smallWorld is a cluster that is small enough to try all orders of what may happen in it.
type smallWorld struct {
	setting setting
	nodes   []int // CPUs
	queues  string
	jobs    []smallJob // the first is there from the beginning, and runs as far as there is room
}

func (m smallWorld) String() string {
	var jobs []string
	for _, j := range m.jobs {
		jobs = append(jobs, fmt.Sprintf("%d %s in %s", j.pods, j.class, j.queue))
	}
	return fmt.Sprintf("nodes %v, queues %s, %s, %s", m.nodes, m.queues, m.setting.sharer, strings.Join(jobs, "; "))
}

// smallWorlds are all clusters of up to three nodes, two queues and three jobs, but those that differ from another only
// in names or in the order of nodes.
func smallWorlds() []smallWorld {
	shares := plain
	shares.sharer = "proportion"
	var worlds []smallWorld
	for _, queues := range []string{"one", "equal", "ranked"} {
		names := []string{"q0", "q1"}
		if queues == "one" {
			names = names[:1]
		}
		var kinds []smallJob
		for _, queue := range names {
			for _, class := range []string{"low", "high"} {
				for pods := 1; pods <= 2; pods++ {
					kinds = append(kinds, smallJob{queue, class, pods})
				}
			}
		}
		for _, nodes := range [][]int{{1}, {2}, {1, 1}, {2, 1}, {1, 1, 1}} {
			for first := range kinds {
				for second := range kinds {
					for third := second; third <= len(kinds); third++ {
						jobs := []smallJob{kinds[first], kinds[second]}
						if third < len(kinds) {
							jobs = append(jobs, kinds[third])
						}
						worlds = append(worlds, smallWorld{plain, nodes, queues, jobs})
						if queues != "one" {
							worlds = append(worlds, smallWorld{shares, nodes, queues, jobs})
						}
					}
				}
			}
		}
	}
	return worlds
}

// begin makes the cluster as it is before the first move.
func (m smallWorld) begin() *smallRun {
	w := newTestCluster(m.setting, func(int) int { return 0 })
	w.isFrozen = true
	w.makeClasses()
	for i, cpus := range m.nodes {
		n := fixture.Node(fmt.Sprintf("n%d", i), fmt.Sprintf("cpu=%d", cpus))
		w.identify(n)
		w.set(n)
	}
	for i := range 2 {
		if i == 1 && m.queues == "one" {
			break
		}
		q := fixture.Queue(fmt.Sprintf("q%d", i), fixture.Deserving("cpu=1"))
		if m.queues == "ranked" {
			q.Spec.Priority = int32(i)
		}
		w.identify(q)
		w.set(q)
	}
	r := &smallRun{testCluster: w, world: m}
	r.submit(0, true)
	for i := range m.jobs[1:] {
		r.waiting = append(r.waiting, i+1)
	}
	return r
}

// smallRun is a small cluster to which a number of moves has happened.
type smallRun struct {
	*testCluster
	world   smallWorld
	waiting []int // jobs that have not been submitted yet
	// isDisturbed is set once something has happened that may happen only once: a crash, a refused write, a change from
	// outside, or time that passes.
	isDisturbed bool
}

// submit makes a job and its pods.
func (r *smallRun) submit(i int, runs bool) {
	j := r.world.jobs[i]
	g := fixture.Group(fmt.Sprintf("j%d", i), j.queue, int32(j.pods), func(g *schedulingv1beta1.PodGroup) {
		g.Spec.PriorityClassName = j.class
		g.Annotations[schedulingv1beta1.PreemptableKey] = "true"
	})
	g.CreationTimestamp = metav1.NewTime(fixture.Birth.Add(time.Duration(i) * time.Second))
	r.identify(g)
	r.set(g)
	for k := range j.pods {
		p := fixture.Pod(fmt.Sprintf("j%d-%d", i, k), fixture.In(g.Name), fixture.As("worker", k), fixture.Asks("cpu=1"))
		r.identify(p)
		if runs {
			r.settle(p)
		}
		r.set(p)
	}
}

// move is something that may happen next.
type move struct {
	name string
	do   func(r *smallRun)
}

// moves are all that may happen next, in an order that follows from the state alone.
func (r *smallRun) moves() []move {
	all := []move{{"cycle", func(r *smallRun) { r.cycle() }}}
	for _, i := range r.waiting {
		all = append(all, move{fmt.Sprintf("submit j%d", i), func(r *smallRun) {
			r.waiting = slices.DeleteFunc(slices.Clone(r.waiting), func(k int) bool { return k == i })
			r.submit(i, false)
		}})
	}
	for i, b := range r.binds {
		all = append(all, move{"bind " + b.Pod.Name, func(r *smallRun) {
			r.binds = slices.Delete(slices.Clone(r.binds), i, i+1)
			r.land(b)
		}})
		if !r.isDisturbed {
			all = append(all, move{"refuse to bind " + b.Pod.Name, func(r *smallRun) {
				r.isDisturbed = true
				r.binds = slices.Delete(slices.Clone(r.binds), i, i+1)
				r.refuseBind(b)
			}})
		}
	}
	for i, l := range r.letters {
		all = append(all, move{fmt.Sprintf("step %d of plan of %s", l.step, l.plan.Job.Name), func(r *smallRun) { r.carryOn(r.letters[i]); r.dropFinished() }})
		if !r.isDisturbed && l.step == 3 && len(l.unsent) > 0 {
			all = append(all, move{"refuse to evict " + l.unsent[0].Pod.Name, func(r *smallRun) {
				r.isDisturbed = true
				r.refuseEviction(r.letters[i])
				r.dropFinished()
			}})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.pods)) {
		if p := r.pods[name]; p.DeletionTimestamp != nil {
			all = append(all, move{"end " + name, func(r *smallRun) { r.remove(r.pods[name]) }})
		}
	}
	if !r.isDisturbed {
		all = append(all, move{"crash", func(r *smallRun) { r.isDisturbed = true; r.crash() }},
			move{"a minute passes", func(r *smallRun) { r.isDisturbed = true; r.now = r.now.Add(time.Minute) }})
		last := fmt.Sprintf("n%d", len(r.world.nodes)-1)
		all = append(all, move{"cordon " + last, func(r *smallRun) {
			r.isDisturbed = true
			n := r.nodes[last].DeepCopy()
			n.Spec.Unschedulable = true
			r.set(n)
		}})
		for _, name := range slices.Sorted(maps.Keys(r.groups)) {
			all = append(all, move{"delete " + name, func(r *smallRun) { r.isDisturbed = true; r.deleteJob(name) }})
		}
	}
	return all
}

func (r *smallRun) dropFinished() {
	r.letters = slices.DeleteFunc(slices.Clone(r.letters), func(l *letter) bool { return l.finished })
}

// deleteJob deletes a PodGroup and its pods. Those with nodes end later.
func (r *smallRun) deleteJob(name string) {
	r.drop(r.groups[name])
	for _, pod := range slices.Sorted(maps.Keys(r.pods)) {
		switch p := r.pods[pod]; {
		case groupOf(p) != name || p.DeletionTimestamp != nil:
		case p.Spec.NodeName == "":
			r.drop(p)
		default:
			r.end(p)
		}
	}
}

// key tells states apart: what there is, what is under way, and all that the scheduler remembers.
func (r *smallRun) key() [sha256.Size]byte {
	hash := sha256.New()
	write := func(what any) {
		if err := json.NewEncoder(hash).Encode(what); err != nil {
			panic(err)
		}
	}
	for _, event := range r.all() {
		write(event.(cache.Set).Object)
	}
	for _, e := range r.events {
		fmt.Fprintf(hash, "%T", e)
		switch e := e.(type) {
		case cache.Set:
			write(e.Object)
		default:
			write(e)
		}
	}
	for _, l := range r.letters {
		write([]any{l.plan.ID, l.step, len(l.unsent)})
	}
	write([]any{r.binds, r.waiting, r.isDisturbed, r.now})
	fmt.Fprint(hash, harness.Picture(r.scheduler.Cluster()))
	return [sha256.Size]byte(hash.Sum(nil))
}

// after returns the cluster after a path of moves, by their numbers, and the names of the moves.
func (m smallWorld) after(path []byte) (r *smallRun, names []string) {
	r = m.begin()
	for _, number := range path {
		next := r.moves()[number]
		names = append(names, next.name)
		next.do(r)
		r.judge.memory.remember(&r.objects)
	}
	return r, names
}

// leaveAlone judges that a state comes to rest from which nothing more happens from outside.
func (r *smallRun) leaveAlone() {
	r.isFrozen = false
	for _, p := range r.pods {
		if p.DeletionTimestamp != nil {
			r.deaths[p.UID] = r.now
		}
	}
	r.rest()
}

// search tries all paths up to a depth. It returns the number of states, and the first that is bad. That a state comes
// to rest is judged of those at the end of the paths. What happens to the others when they are left alone are some of
// these paths.
func (m smallWorld) search(depth int) (states int, bad outcome) {
	seen := map[[sha256.Size]byte]bool{}
	level := [][]byte{nil}
	for left := depth; left >= 0; left-- {
		var next [][]byte
		for _, path := range level {
			r, names := m.after(path)
			key := r.key()
			if seen[key] {
				continue
			}
			seen[key] = true
			for number := range r.moves() {
				next = append(next, append(slices.Clone(path), byte(number)))
			}
			if len(r.judge.breaches) == 0 && left == 0 {
				r.leaveAlone()
			}
			if o := r.outcome(); o != "" {
				return len(seen), outcome(fmt.Sprintf("%s\nafter: %s\n%s", m, strings.Join(names, ", "), o))
			}
		}
		level = next
	}
	return len(seen), ""
}

// In every small cluster, whatever happens in whatever order up to a depth, each state is allowed, and comes to rest if
// it is left alone from there. The whole of it: HEKLA_SMALL_DEPTH=10 HEKLA_SMALL_ONE_IN=1.
func TestEveryStateOfSmallClustersIsAllowedAndComesToRest(t *testing.T) {
	depth, oneIn := harness.Number(t, depthEnv, plainDepth), harness.Number(t, worldsEnv, plainOneIn)
	states, worlds := 0, 0
	for i, m := range smallWorlds() {
		if i%oneIn != 0 {
			continue
		}
		count, bad := m.search(depth)
		states += count
		if bad != "" {
			t.Fatalf("after %d states: %s", states, bad)
		}
		worlds++
	}
	t.Logf("%d clusters, %d states to depth %d", worlds, states, depth)
}
