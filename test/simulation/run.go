package simulation

import (
	"fmt"
	mathrand "math/rand"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"hekla.sh/hekla/internal/audit"
	"hekla.sh/hekla/test/simulation/apiserver"
)

// Result is what came of a plan.
type Result struct {
	Violations []string
	Steps      int
	Requests   int // that the API server answered
	Writes     int // of programs
	Events     int // that watches delivered
	Binds      int
	Evictions  int
	Happened   map[string]int // faults and moves by kind
	StepsHash  string         // of all steps
	EndHash    string         // of what the API server holds in the end
	Virtual    time.Duration
	Trace      []string
	Log        []byte // the audit log of the API server
}

// String is the result without its trace.
func (r *Result) String() string {
	return fmt.Sprintf("%d steps, %s, %d requests, %d writes, %d events, %d bindings, %d evictions, steps %s, end %s",
		r.Steps, r.Virtual.Round(time.Second), r.Requests, r.Writes, r.Events, r.Binds, r.Evictions, r.StepsHash, r.EndHash)
}

// Run carries out a plan. It changes settings of the process, so that tests that call it cannot be parallel.
func Run(t *testing.T, plan *Plan, programs []Program) (result *Result) {
	t.Helper()
	logf.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	// The library's handlers log, and delay a client that has many errors by a time that the process keeps.
	defer func(before []utilruntime.ErrorHandler) { utilruntime.ErrorHandlers = before }(utilruntime.ErrorHandlers)
	utilruntime.ErrorHandlers = nil
	// What programs take from chance is the seed's; //go:debug randseednop=0 stands in the tests.
	//lint:ignore SA1019 there is no other way for libraries that use the global source
	mathrand.Seed(int64(plan.Seed))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	cryptotest.SetGlobalRandom(t, plan.Seed)
	// Programs that were killed leave goroutines behind, as a process may that ends. The bubble complains of them when
	// the run is over.
	defer func() {
		if problem := recover(); problem != nil && result == nil {
			panic(problem)
		}
	}()
	synctest.Test(t, func(*testing.T) { result = runInBubble(plan, programs) })
	return result
}

func runInBubble(plan *Plan, programs []Program) *Result {
	plan.begin = time.Now()
	d := &driver{plan: plan, random: rand.New(rand.NewPCG(plan.Seed, 2)), arrived: make(chan struct{}, 1), api: newLock(), written: map[string]bool{}, steps: newHash(), log: &auditLog{}}
	d.result.Happened = map[string]int{}
	d.world = newWorld(rand.New(rand.NewPCG(plan.Seed, 3)))
	server, err := apiserver.New(apiserver.Options{Seed: int64(plan.Seed), User: userOf, Audit: d.log.add, CacheRevision: d.cacheRevision})
	if err != nil {
		panic(err)
	}
	d.server = server
	defer server.Close()
	d.install()
	d.defineJobSets()
	if d.observer, err = newObserver(server); err != nil {
		panic(err)
	}
	d.kubelets = kubelets{driver: d, due: map[string]time.Time{}, slow: map[string]time.Time{}}
	d.rules = &rules{driver: d, changed: map[string]time.Time{}, evictions: map[string]int{}}
	d.writes = &writes{driver: d, plans: map[string]bool{}}
	d.charges = &charges{driver: d}
	d.operator = operator{driver: d, stopped: map[string]bool{}}
	d.groups = groups{driver: d}
	d.contests = contests{driver: d}
	d.contests.end()
	d.last = lastFaults{driver: d}
	others := &foreign{driver: d, children: map[types.UID]bool{}}
	d.disturbances = disturbances{driver: d}
	d.provisioner = provisioner{driver: d, wanted: map[string]bool{}, over: map[string]bool{}}
	twice := &devices{driver: d, of: map[string]string{}}
	d.quotas = &quotas{driver: d, of: map[types.UID]string{}, queued: map[types.UID]types.UID{}, last: map[string]admission{}}
	d.observer.seen = append(d.observer.seen, d.seenByFaults, d.kubelets.seen, d.rules.seen, d.writes.seen, d.charges.seen, d.operator.seen, d.contests.seen, d.provisioner.seen, others.seen, d.quotas.seen, twice.seen, lives{d}.seen, (&places{driver: d, first: map[types.UID]int64{}}).seen)
	d.build()
	for _, p := range programs {
		copies := 1
		if p.HasCopies {
			copies = plan.Copies
		}
		for i := range copies {
			d.programs = append(d.programs, &program{Program: p, driver: d, copy: i})
		}
	}
	d.run()
	if !d.isBroken() && !plan.isCut {
		d.rest()
	}
	return d.end()
}

const (
	// longestRest is how long it may take until everything is at rest after the last fault, and after the last pod has
	// ended: gangs that each need all CPUs run one after the other.
	longestRest = time.Hour
	// mostSteps is how many steps that may take.
	mostSteps = 100_000
)

// rest lets everything run without faults and moves until nothing is written any more, and looks at what has become.
// All room and all quota must be free then.
func (d *driver) rest() {
	d.faults, d.lagTo, d.lagUntil = nil, 0, time.Time{}
	d.disturbances.end()
	for _, s := range d.streams {
		s.release()
	}
	d.mutex.Lock()
	for _, c := range d.calls {
		c.heldTo = 0
	}
	d.mutex.Unlock()
	d.goOnUneasy()
	d.contests.end()
	d.heal()
	d.happen() // what the plan has for the way to the rest
	d.comeToRest()
	d.last.end()
	if !d.isBroken() {
		d.refill()
	}
}

// uneasyTime is how long a run goes on without faults and moves before it is healed.
const uneasyTime = 3 * stopTakes

// goOnUneasy lets a run go on for a while without faults and moves, while there is less quota and room than is asked
// for. What must not last for longer than the programs need is seen then.
func (d *driver) goOnUneasy() {
	for begin := time.Now(); time.Since(begin) < uneasyTime && !d.isBroken(); d.step++ {
		d.disturbances.pass()
		d.goOn()
	}
}

// comeToRest makes steps until nothing is written any more, and looks at what there is then.
func (d *driver) comeToRest() {
	begin, isTidy, isRestarted := time.Now(), false, false
	d.rules.lastWrite = begin
	for end := d.step + mostSteps; time.Since(d.rules.lastWrite) < restTime && !d.isBroken(); d.step++ {
		if time.Since(begin) > longestRest && time.Since(d.rules.lastEnd) > longestRest || d.step == end {
			d.rules.violate("no rest %s after the last fault; the last writes:\n  %s", time.Since(begin).Round(time.Second), strings.Join(d.rules.writes, "\n  "))
			return
		}
		d.disturbances.pass()
		d.expireMissed()
		d.last.disturb()
		if !isTidy && time.Since(begin) > time.Minute {
			isTidy = true
			d.tidy() // once more: a Job may have been deleted a moment ago
			d.giveUpGroups()
		}
		if !isRestarted && time.Since(d.rules.lastWrite) > restTime/2 && d.hasForgottenClaims() {
			isRestarted = true
			d.restartKubeControllers()
		}
		d.goOn()
	}
	if !d.isBroken() {
		d.rules.atRest()
	}
}

// hasForgottenClaims reports whether there are claims whose pods are gone. When a pod takes the name of one that is
// deleted while the watch of the garbage collector is cut, that sees one pod that has changed, and never looks for what
// the first has owned. Only its next process does.
func (d *driver) hasForgottenClaims() bool {
	return slices.ContainsFunc(slices.Concat(d.observer.all(volumeClaims), d.observer.all(resourceClaims)), lives{d}.isLeftAlone)
}

// restartKubeControllers has the controllers of Kubernetes begin again.
func (d *driver) restartKubeControllers() {
	for _, p := range d.programs {
		if !p.HasCopies {
			p.kill()
		}
	}
	d.rules.lastWrite = time.Now()
	d.count("claims forgotten by the garbage collector")
}

// goOn makes a step without faults and moves.
func (d *driver) goOn() {
	d.settle()
	d.take(d.options())
	d.look()
	d.drift()
}

// end kills all programs, waits for their goroutines, and sums up.
func (d *driver) end() *Result {
	for _, p := range d.programs {
		p.kill()
	}
	for _, p := range d.programs {
		for _, i := range p.dying {
			<-i.ended
		}
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	report, err := d.log.report()
	if err != nil {
		panic(err)
	}
	for i := range report.Violations {
		if v := &report.Violations[i]; v.Rule != audit.RuleBudget || d.world.keepsBudgets() {
			d.rules.violate("audit: %s", v.String())
		}
	}
	d.result.Evictions = report.Evictions
	d.result.Steps, d.result.Virtual, d.result.Trace = d.step, time.Since(d.plan.begin), d.trace
	d.result.StepsHash, d.result.EndHash, d.result.Log = sum(d.steps), d.stateHash(), d.log.lines.Bytes()
	return &d.result
}

func (d *driver) stateHash() string {
	h := newHash()
	var ids []string
	for id := range d.observer.objects {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		document, err := d.observer.objects[id].MarshalJSON()
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(h, id, string(document))
	}
	return sum(h)
}

// logger is where a process logs: nowhere, unless HEKLA_SIMULATION_LOG is set.
func (d *driver) logger(i *incarnation) logr.Logger {
	if os.Getenv("HEKLA_SIMULATION_LOG") == "" {
		return logr.Discard()
	}
	return funcr.New(func(prefix, args string) {
		fmt.Fprintf(os.Stderr, "%d %s %s: %s %s\n", d.step, time.Since(d.plan.begin), i, prefix, args)
	}, funcr.Options{})
}
