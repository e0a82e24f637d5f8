package chaos

import (
	"context"
	"crypto/tls"
	"embed"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"hekla.sh/hekla/internal/audit"
	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/internal/localcluster/network"
	"hekla.sh/hekla/internal/trend"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/client/clientset/versioned"
)

const (
	schedulerName = scheduling.DefaultSchedulerName
	// nodes is how many nodes the cluster has: so few that gangs wait and evict.
	nodes = 3
	// tick is how often is looked what is to be done next.
	tick = 200 * time.Millisecond
	// moveEvery is how often the churn does something.
	moveEvery = time.Second
	// againAfter is when a fault is tried again that could not be done, as another one was in its way.
	againAfter = 2 * time.Second
	// relaunchAfter is how long a component stays away, as with a kubelet.
	relaunchAfter = time.Second
	// patience is how long everything may take to come to an end once nothing is in its way: leases pass over, jobs of
	// a full cluster run, and what was missed is tried again after five minutes at the latest.
	patience = 8 * time.Minute
	// restTime is for how long nothing must be written at rest.
	restTime = 20 * time.Second
	// requestTimeout bounds the requests of this package, which meet an API server that is stopped.
	requestTimeout = 20 * time.Second
)

// Component is a program of Hekla that is started, and broken.
type Component struct {
	// Name is that of its process.
	Name string
	// Account is its ServiceAccount, and Lease the name of the Lease by which it leads, in the same namespace.
	Account types.NamespacedName
	Lease   string
	// BindsPods is whether the audit judges its evictions.
	BindsPods bool
	// Start starts it on the cluster, and returns when it is ready. It says where it serves its metrics, which do not
	// change when it is launched again.
	Start func(ctx context.Context, cluster *localcluster.Cluster) (metricsURL string, err error)
}

// Options say what is run, and for how long.
type Options struct {
	// For is how long faults happen; what comes before and after takes some minutes more.
	For time.Duration
	// Seed decides which faults happen when.
	Seed uint64
	// Faults are the names of those that happen; all if there are no names, and none if the only one is [NoFaults].
	Faults []string
	// Jobs is how many jobs are unfinished at a time, at least one.
	Jobs int
	// Components are started in this order.
	Components []Component
	// Manifests are what the installer applies; Configuration is the ConfigMap with the actions, and its key.
	Manifests     []*unstructured.Unstructured
	Configuration types.NamespacedName
	Key           string
	// Dir keeps the logs and the audit log; a temporary folder that is removed when nothing is found if it is empty.
	Dir string
	// Log receives a line for each fault.
	Log io.Writer
}

// run is one run.
type run struct {
	options  Options
	began    time.Time
	cluster  *localcluster.Cluster
	core     kubernetes.Interface
	hekla    versioned.Interface
	any      dynamic.Interface
	networks map[string]*network.Network
	metrics  map[string]string // where components serve theirs
	report   Report
	deadAt   map[string]time.Time // since when a process is known not to run
	stops    sync.WaitGroup       // of processes that are asked to stop
	saying   sync.Mutex           // guards the log
}

//go:embed surroundings/*.yaml
var surroundings embed.FS

// Run starts a cluster, breaks it, and reports what it found. An error says that it could not be done.
func Run(ctx context.Context, options Options) (report *Report, err error) {
	selected, err := selectFaults(options.Faults)
	if err != nil {
		return nil, err
	}
	isTemporary := options.Dir == ""
	if isTemporary {
		if options.Dir, err = os.MkdirTemp("", "hekla-chaos-"); err != nil {
			return nil, err
		}
	}
	if options.Log == nil {
		options.Log = io.Discard
	}
	r := &run{options: options, began: time.Now(), networks: map[string]*network.Network{}, metrics: map[string]string{}, deadAt: map[string]time.Time{}}
	r.report = newReport(&options, selected)
	auditLog := filepath.Join(options.Dir, "audit.log")
	r.say("starting a cluster in %s", options.Dir)
	if r.cluster, err = localcluster.Start(ctx, localcluster.Options{Name: "chaos", Dir: options.Dir, Nodes: nodes, Manifests: options.Manifests,
		AuditLog: auditLog, Progress: options.Log}); err != nil {
		return nil, err
	}
	err = r.work(ctx, selected)
	if err := errors.Join(err, r.cluster.Stop()); err != nil {
		return nil, fmt.Errorf("%w; logs are in %s", err, options.Dir)
	}
	if err := r.audit(auditLog); err != nil {
		return nil, err
	}
	if isTemporary && len(r.report.Violations) == 0 {
		return &r.report, os.RemoveAll(options.Dir)
	}
	r.say("logs and the audit log are in %s", options.Dir)
	return &r.report, nil
}

func (r *run) work(ctx context.Context, selected []*fault) (err error) {
	stop, err := r.start(ctx)
	defer stop()
	if err != nil {
		return err
	}
	churn, err := newChurn(ctx, r)
	if err != nil {
		return err
	}
	before, err := r.takeInventory(ctx)
	if err != nil {
		return err
	}
	r.report.From = time.Now()
	if err := r.breakThings(ctx, plan(selected, r.options.Seed, r.options.For), churn); err != nil {
		return err
	}
	r.report.To = time.Now()
	r.say("all faults are undone")
	for _, name := range slices.Sorted(maps.Keys(r.report.Usage)) {
		r.violate(rising(name, r.report.Usage[name], r.report.From)...)
	}
	if err := r.settle(ctx, before, churn); err != nil {
		return err
	}
	r.report.Created, r.report.Ended, r.report.UsedPart = churn.created, churn.ended, trend.Mean(churn.used)
	return nil
}

// start starts the components behind their networks, and makes what the churn needs. What it returns ends the networks.
func (r *run) start(ctx context.Context) (stop func(), err error) {
	var servers []*http.Server
	stop = func() {
		for _, n := range r.networks {
			n.Heal()
		}
		for _, s := range servers {
			_ = s.Close()
		}
	}
	config := r.cluster.Config()
	config.Timeout = requestTimeout
	var failures [3]error
	r.core, failures[0] = kubernetes.NewForConfig(config)
	r.hekla, failures[1] = versioned.NewForConfig(config)
	r.any, failures[2] = dynamic.NewForConfig(config)
	if err := errors.Join(failures[:]...); err != nil {
		return stop, err
	}
	if err := r.setActions(ctx, usualActions); err != nil {
		return stop, err
	}
	certificate, err := r.cluster.ServingCertificate()
	if err != nil {
		return stop, err
	}
	for i := range r.options.Components {
		c := &r.options.Components[i]
		n, err := network.To(rest.AnonymousClientConfig(r.cluster.Config()))
		if err != nil {
			return stop, err
		}
		server, address, err := serve(n, certificate)
		if err != nil {
			return stop, err
		}
		servers, r.networks[c.Name] = append(servers, server), n
		r.cluster.RouteServiceAccount(c.Account, "https://"+address)
		if r.metrics[c.Name], err = c.Start(ctx, r.cluster); err != nil {
			return stop, err
		}
	}
	objects, err := localcluster.ReadManifests(surroundings)
	if err != nil {
		return stop, err
	}
	return stop, r.cluster.Apply(ctx, objects)
}

// serve serves a network on a free address of the loopback interface.
func serve(n *network.Network, certificate tls.Certificate) (*http.Server, string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	server := &http.Server{Handler: n, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}, ReadHeaderTimeout: requestTimeout,
		ErrorLog: log.New(io.Discard, "", 0)} // it breaks connections on purpose, and would say so each time
	go func() { _ = server.ServeTLS(listener, "", "") }()
	return server, listener.Addr().String(), nil
}

// undoing is a fault that is in force.
type undoing struct {
	at    time.Duration
	fault *fault
	undo  func(context.Context) error
}

// breakThings carries the plan out, with the churn around it, and returns when everything is undone.
func (r *run) breakThings(ctx context.Context, todo []planned, churn *churn) error {
	var inForce []undoing
	counts, began := map[string]int{}, time.Now()
	var user sync.WaitGroup // the churn does not wait for faults, nor they for it
	defer user.Wait()
	defer r.stops.Wait()
	ended := make(chan struct{})
	defer close(ended)
	user.Go(func() { r.churnUntil(ctx, ended, churn) })
	if len(r.report.Faults) == 0 { // a process that is launched again holds what it held at first
		user.Go(func() { r.askUsageUntil(ctx, ended) })
	}
	for at := time.Duration(0); at < r.options.For || len(inForce) > 0; at = time.Since(began) {
		if err := pauseFor(ctx, tick); err != nil {
			return err
		}
		r.relaunch()
		inForce = slices.DeleteFunc(inForce, func(u undoing) bool {
			if at < u.at && at < r.options.For {
				return false
			}
			if err := r.bounded(ctx, u.undo); err != nil {
				return false // the API server is away: again at the next tick
			}
			r.say("%s: undone", u.fault.Name)
			return true
		})
		for len(todo) > 0 && todo[0].at <= at && at < r.options.For {
			f := todo[0].fault
			if slices.ContainsFunc(inForce, func(u undoing) bool { return u.fault == f }) || !r.inflict(ctx, f, counts[f.Name], began, &inForce) {
				todo[0].at = at + againAfter
				slices.SortStableFunc(todo, byTime)
				continue
			}
			counts[f.Name]++
			todo = todo[1:]
		}
	}
	return nil
}

// inflict carries a fault out, the one with a number of its kind, and reports whether it could be done.
func (r *run) inflict(ctx context.Context, f *fault, number int, began time.Time, inForce *[]undoing) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	what, undo, err := f.do(ctx, r, randomOf(r.options.Seed, fmt.Sprint(f.Name, number)))
	if undo != nil { // also if it is not known to have been done
		*inForce = append(*inForce, undoing{time.Since(began) + f.Lasts, f, undo})
	}
	if err != nil {
		r.say("%s: %s: not done: %v", f.Name, what, err)
		return undo != nil
	}
	r.report.Faults[f.Name]++
	r.say("%s: %s", f.Name, what)
	return true
}

func (r *run) bounded(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return do(ctx)
}

// churnUntil has the churn move until a channel is closed.
func (r *run) churnUntil(ctx context.Context, ended <-chan struct{}, churn *churn) {
	for {
		select {
		case <-ended:
			return
		case <-ctx.Done():
			return
		case <-time.After(moveEvery):
		}
		if err := errors.Join(r.bounded(ctx, churn.move), r.bounded(ctx, churn.watchPods)); err != nil {
			r.report.failedMoves.Add(1)
		}
	}
}

// relaunch launches what has ended again: a component after a moment, the control plane at once.
func (r *run) relaunch() {
	for _, p := range r.cluster.Processes() {
		if p.IsAlive() {
			delete(r.deadAt, p.Name)
			continue
		}
		since, isKnown := r.deadAt[p.Name]
		if !isKnown {
			since = time.Now()
			r.deadAt[p.Name] = since
		}
		if r.isComponent(p.Name) && time.Since(since) < relaunchAfter {
			continue
		}
		if err := r.cluster.Relaunch(p.Name); err != nil {
			r.say("%s is not launched again: %v", p.Name, err)
			continue
		}
		delete(r.deadAt, p.Name)
		r.report.Restarts[p.Name]++
	}
}

func (r *run) isComponent(name string) bool {
	return slices.ContainsFunc(r.options.Components, func(c Component) bool { return c.Name == name })
}

// process is the process with a name as it was launched last, nil if there is none.
func (r *run) process(name string) *localcluster.Process {
	for _, p := range r.cluster.Processes() {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// settle waits until all jobs have ended, removes them, and checks what is left.
func (r *run) settle(ctx context.Context, before inventory, churn *churn) error {
	if err := r.expectNone(ctx, "%d jobs do not end; what is left is removed", func(ctx context.Context) ([]audit.Violation, error) {
		if err := churn.end(ctx); err != nil {
			return nil, err
		}
		jobs, err := churn.tidy(ctx)
		return unfinished(jobs, time.Now()), err
	}); err != nil {
		return err
	}
	if err := r.expectNone(ctx, "%d objects are left over", func(ctx context.Context) ([]audit.Violation, error) {
		jobs, err := churn.jobs(ctx)
		for _, j := range jobs {
			err = errors.Join(err, churn.remove(ctx, j, "stuck"))
		}
		now, listed := r.takeInventory(ctx)
		return left(before, now, time.Now()), errors.Join(err, listed)
	}); err != nil {
		return err
	}
	// What was done last may still be answered by a write or two.
	return r.expectNone(ctx, "%d objects are written at rest", func(ctx context.Context) ([]audit.Violation, error) {
		first, err := r.takeInventory(ctx)
		if err != nil {
			return nil, err
		}
		if err := pauseFor(ctx, restTime); err != nil {
			return nil, err
		}
		second, err := r.takeInventory(ctx)
		return written(first, second, time.Now()), err
	})
}

// expectNone looks until it finds no violation, or patience has passed, and notes those of the last look. It says how
// many there are. What has ended is launched again meanwhile. It is an error if the last look failed.
func (r *run) expectNone(ctx context.Context, say string, look func(context.Context) ([]audit.Violation, error)) error {
	for deadline := time.Now().Add(patience); ; {
		r.relaunch()
		found, err := look(ctx)
		isLast := time.Now().After(deadline)
		if err == nil && (len(found) == 0 || isLast) {
			r.violate(found...)
			r.say(say, len(found))
			return nil
		}
		if isLast {
			return err
		}
		if err := pauseFor(ctx, moveEvery); err != nil {
			return err
		}
	}
}

func pauseFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

var actionsLine = regexp.MustCompile(`(?m)^actions:.*$`)

// setActions changes the actions of the configuration.
func (r *run) setActions(ctx context.Context, actions string) error {
	all := r.core.CoreV1().ConfigMaps(r.options.Configuration.Namespace)
	m, err := all.Get(ctx, r.options.Configuration.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	text := m.Data[r.options.Key]
	if !actionsLine.MatchString(text) {
		return fmt.Errorf("the ConfigMap %s has no actions in %s", r.options.Configuration, r.options.Key)
	}
	m.Data[r.options.Key] = actionsLine.ReplaceAllLiteralString(text, fmt.Sprintf("actions: %q", actions))
	_, err = all.Update(ctx, m, metav1.UpdateOptions{})
	return err
}

// audit has package audit read the log, oldest first.
func (r *run) audit(path string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	options := audit.Options{}
	for i := range r.options.Components {
		if c := &r.options.Components[i]; c.BindsPods {
			options.Schedulers = append(options.Schedulers, "system:serviceaccount:"+c.Account.Namespace+":"+c.Account.Name)
		}
	}
	auditor := audit.New(options)
	if err := auditor.Read(file); err != nil {
		return err
	}
	r.report.take(auditor.End())
	return nil
}

func (r *run) violate(found ...audit.Violation) {
	for i := range found {
		r.say("VIOLATION %s", &found[i])
	}
	r.report.mutex.Lock()
	defer r.report.mutex.Unlock()
	r.report.Violations = append(r.report.Violations, found...)
}

func (r *run) say(format string, values ...any) {
	r.saying.Lock()
	defer r.saying.Unlock()
	_, _ = fmt.Fprintf(r.options.Log, "[%7.1f s] "+format+"\n", append([]any{time.Since(r.began).Seconds()}, values...)...)
}
