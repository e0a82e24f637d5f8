package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/internal/localcluster/network"
)

// fault is a kind of what is broken.
type fault struct {
	// Name is how it is chosen and reported.
	Name string
	// About says what it does, for people.
	About string
	// Every is the mean time between two of them; the time varies by half of it to either side. The first
	// comes within half of it, so that a short run has each.
	Every time.Duration
	// Lasts is when it is undone, 0 for a fault that needs no undoing.
	Lasts time.Duration
	// do breaks something, and says what it met and what undoes it, nil for nothing.
	do func(ctx context.Context, r *run, random *rand.Rand) (what string, undo func(context.Context) error, err error)
}

// faults are all of them.
var faults = [...]fault{
	{Name: "kill", About: "kill a component (SIGKILL); its Lease is freed, as it would have done itself at its end", Every: 10 * time.Second, do: kill},
	{Name: "pause", About: "stop a component from running (SIGSTOP) for longer than its Lease holds", Every: 75 * time.Second, Lasts: 20 * time.Second, do: pause},
	{Name: "lease", About: "give the Lease of a component to another holder, who does not renew it", Every: 60 * time.Second, do: takeLease},
	{Name: "apiserver", About: "stop the API server in order, and start it again", Every: 60 * time.Second, do: stopAPIServer},
	{Name: "etcd", About: "kill etcd (SIGKILL), and start it again", Every: 80 * time.Second, do: killEtcd},
	{Name: "delay", About: "delay requests and events of a component by up to two seconds", Every: 40 * time.Second, Lasts: 10 * time.Second, do: delay},
	{Name: "refuse", About: "refuse a third of the requests of a component", Every: 40 * time.Second, Lasts: 8 * time.Second, do: refuse},
	{Name: "lose", About: "carry a third of the writes of a component out, and lose the answers", Every: 40 * time.Second, Lasts: 8 * time.Second, do: lose},
	{Name: "cut", About: "cut a component off the API server, without telling either side", Every: 70 * time.Second, Lasts: 20 * time.Second, do: cut},
	{Name: "configuration", About: "change the actions of the scheduler", Every: 30 * time.Second, Lasts: 12 * time.Second, do: changeConfiguration},
	{Name: "definitions", About: "apply all that the installer applies again", Every: 60 * time.Second, do: applyAgain},
}

// FaultNames are the names of all faults, in the order of the table.
func FaultNames() []string {
	var names []string
	for i := range faults {
		names = append(names, faults[i].Name)
	}
	return names
}

// DescribeFaults is a line for each fault, for the help of a command.
func DescribeFaults() string {
	var text strings.Builder
	for i := range faults {
		fmt.Fprintf(&text, "  %-14s %s\n", faults[i].Name, faults[i].About)
	}
	return text.String()
}

// NoFaults is the name that stands for none of them.
const NoFaults = "none"

// selectFaults returns the faults with these names; all of them if there are no names.
func selectFaults(names []string) ([]*fault, error) {
	if len(names) == 1 && names[0] == NoFaults {
		return nil, nil
	}
	for _, name := range names {
		if !slices.Contains(FaultNames(), name) {
			return nil, fmt.Errorf("there is no fault %q; there are %s, or "+NoFaults+" alone", name, strings.Join(FaultNames(), ", "))
		}
	}
	var selected []*fault
	for i := range faults {
		if len(names) == 0 || slices.Contains(names, faults[i].Name) {
			selected = append(selected, &faults[i])
		}
	}
	return selected, nil
}

// planned is a fault at its time after the start of a run.
type planned struct {
	at    time.Duration
	fault *fault
}

// plan says which faults happen when. Each fault has numbers of its own, so that leaving one out changes no other.
func plan(selected []*fault, seed uint64, total time.Duration) []planned {
	var all []planned
	for _, f := range selected {
		random := randomOf(seed, "plan "+f.Name)
		for at := time.Duration(random.Int64N(int64(f.Every / 2))); at+f.Lasts < total; at += f.Every/2 + time.Duration(random.Int64N(int64(f.Every))) {
			all = append(all, planned{at, f})
		}
	}
	slices.SortStableFunc(all, byTime)
	return all
}

func byTime(a, b planned) int { return cmp.Compare(a.at, b.at) }

// errNotRunning is why a process is not broken.
var errNotRunning = errors.New("it does not run")

// running is the process with a name, if it runs.
func (r *run) running(name string) (*localcluster.Process, error) {
	p := r.process(name)
	if p == nil || !p.IsAlive() {
		return nil, errNotRunning
	}
	return p, nil
}

// randomOf returns numbers for one purpose.
func randomOf(seed uint64, purpose string) *rand.Rand {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(purpose))
	return rand.New(rand.NewPCG(seed, hash.Sum64()))
}

// target is a component of the run.
func (r *run) target(random *rand.Rand) *Component {
	return &r.options.Components[random.IntN(len(r.options.Components))]
}

func kill(ctx context.Context, r *run, random *rand.Rand) (string, func(context.Context) error, error) {
	c := r.target(random)
	p, err := r.running(c.Name)
	if err != nil {
		return c.Name, nil, err
	}
	if err := p.Kill(); err != nil {
		return "", nil, err
	}
	what := fmt.Sprintf("%s, pid %d", c.Name, p.PID)
	if err := r.changeLease(ctx, c, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil }); err != nil {
		what += ", whose Lease is not freed"
	}
	return what, nil, nil
}

func pause(_ context.Context, r *run, random *rand.Rand) (string, func(context.Context) error, error) {
	c := r.target(random)
	p, err := r.running(c.Name)
	if err != nil {
		return c.Name, nil, err
	}
	return fmt.Sprintf("%s, pid %d", c.Name, p.PID), func(context.Context) error { return p.Resume() }, p.Pause()
}

func takeLease(ctx context.Context, r *run, random *rand.Rand) (string, func(context.Context) error, error) {
	c := r.target(random)
	return c.Lease, nil, r.changeLease(ctx, c, func(l *coordinationv1.Lease) {
		holder, now := "chaos", metav1.NowMicro()
		l.Spec.HolderIdentity, l.Spec.AcquireTime, l.Spec.RenewTime = &holder, &now, &now
	})
}

// changeLease changes the Lease of a component, if it has made one yet.
func (r *run) changeLease(ctx context.Context, c *Component, change func(*coordinationv1.Lease)) error {
	leases := r.core.CoordinationV1().Leases(c.Account.Namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		lease, err := leases.Get(ctx, c.Lease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(lease)
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// apiServerPatience is how long the API server may take to end: requests under way have a minute, and their lines in
// the audit log must be written.
const apiServerPatience = 90 * time.Second

func stopAPIServer(_ context.Context, r *run, _ *rand.Rand) (string, func(context.Context) error, error) {
	p, err := r.running("kube-apiserver")
	if err != nil {
		return "", nil, err
	}
	r.stops.Go(func() { // it takes its time, and others are broken meanwhile
		if err := p.StopWithin(apiServerPatience); err != nil {
			r.say("apiserver: %v", err)
		}
	})
	return fmt.Sprintf("pid %d", p.PID), nil, nil
}

func killEtcd(_ context.Context, r *run, _ *rand.Rand) (string, func(context.Context) error, error) {
	p, err := r.running("etcd")
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("pid %d", p.PID), nil, p.Kill()
}

// disturb has a network do something to requests, until it is undone.
func disturb(r *run, random *rand.Rand, effect func(*rand.Rand, *http.Request) network.Effect) (string, func(context.Context) error, error) {
	c := r.target(random)
	n, own := r.networks[c.Name], rand.New(rand.NewPCG(random.Uint64(), random.Uint64()))
	var mutex sync.Mutex
	n.SetEffect(func(request *http.Request) network.Effect {
		mutex.Lock()
		defer mutex.Unlock()
		return effect(own, request)
	})
	return c.Name, func(context.Context) error { n.SetEffect(nil); return nil }, nil
}

func delay(_ context.Context, r *run, random *rand.Rand) (string, func(context.Context) error, error) {
	return disturb(r, random, func(own *rand.Rand, _ *http.Request) network.Effect {
		return network.Effect{Delay: time.Duration(own.Int64N(int64(2 * time.Second)))}
	})
}

func refuse(_ context.Context, r *run, random *rand.Rand) (string, func(context.Context) error, error) {
	return disturb(r, random, func(own *rand.Rand, _ *http.Request) network.Effect {
		return network.Effect{Refused: own.IntN(3) == 0}
	})
}

func lose(_ context.Context, r *run, random *rand.Rand) (string, func(context.Context) error, error) {
	return disturb(r, random, func(own *rand.Rand, request *http.Request) network.Effect {
		return network.Effect{Lost: request.Method != http.MethodGet && own.IntN(3) == 0}
	})
}

func cut(_ context.Context, r *run, random *rand.Rand) (string, func(context.Context) error, error) {
	c := r.target(random)
	n := r.networks[c.Name]
	n.Sever()
	return c.Name, func(context.Context) error { n.Heal(); return nil }, nil
}

// usualActions are in force unless the fault configuration changes them. Each of the others leaves something out.
const usualActions = "enqueue, admit, allocate, preempt, reclaim, backfill"

var otherActions = []string{"enqueue, admit, allocate, backfill", "enqueue, admit, backfill", "enqueue, allocate, preempt, backfill",
	"enqueue, admit, allocate, there-is-no-such-action"}

func changeConfiguration(ctx context.Context, r *run, random *rand.Rand) (string, func(context.Context) error, error) {
	actions := otherActions[random.IntN(len(otherActions))]
	return actions, func(ctx context.Context) error { return r.setActions(ctx, usualActions) }, r.setActions(ctx, actions)
}

func applyAgain(ctx context.Context, r *run, _ *rand.Rand) (string, func(context.Context) error, error) {
	return fmt.Sprintf("%d objects", len(r.options.Manifests)), nil, r.cluster.Apply(ctx, r.options.Manifests)
}
