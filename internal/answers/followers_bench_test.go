package answers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// followed names, in the environment of a process that only follows, the address whose overviews it follows.
const followed = "HEKLA_TEST_FOLLOWED"

func TestMain(m *testing.M) {
	if address := os.Getenv(followed); address != "" {
		if err := followAll(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// followAll follows with as many clients as may, says so once all hear of changes, and reads until the input ends.
func followAll(address string) error {
	var all sync.WaitGroup
	failures := make(chan error, MaxWatches)
	for i := range MaxWatches {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(connection, "GET %s?watch=true HTTP/1.1\r\nHost: test\r\nX-User: %d\r\n\r\n", api.Overviews.Path("", ""), i%2); err != nil {
			return err
		}
		f := &follower{connection, bufio.NewReaderSize(connection, 512)}
		all.Go(func() {
			if instead := f.change(); instead != "" {
				failures <- fmt.Errorf("client %d hears %s", i, instead)
			}
			go func() { _, _ = io.Copy(io.Discard, f.in) }() // until the process ends
		})
	}
	all.Wait()
	select {
	case err := <-failures:
		return err
	default:
	}
	fmt.Println("following")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// ending is a running scheduler that is shown without a pause that one pod after the other has ended.
type ending struct {
	events
	pods   []*corev1.Pod
	cycles int
}

func (e *ending) IsBusy() bool { return true }

func (e *ending) Take() ([]cache.Event, *framework.Policy) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	taken := e.next
	e.next = nil
	if len(taken) == 0 && len(e.pods) > 0 {
		taken, e.pods = []cache.Event{cache.Set{Object: e.pods[0]}}, e.pods[1:]
		e.cycles++
	}
	select {
	case e.wake <- struct{}{}:
	default:
	}
	return taken, nil
}

func (e *ending) count() int {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.cycles
}

// backlogged is a cluster of 5,000 full nodes, in front of which 10,000 gangs wait.
func backlogged(tb testing.TB, e *ending) *loop.Loop {
	const nodes, perNode, gangs = 5000, 8, 10_000
	l := loop.New(tb, loop.Evicting("predicates", "capacity", "nodeorder"))
	for i := range nodes * perNode {
		name, group := fmt.Sprintf("runs-%05d", i), fmt.Sprintf("runs-%04d", i/10)
		if i < nodes {
			l.Set(fixture.Node(fmt.Sprintf("node-%04d", i), "cpu=8"))
		}
		if i%10 == 0 {
			l.Set(fixture.Group(group, "default", 1))
		}
		pod := fixture.Pod(name, fixture.In(group), fixture.Asks("cpu=1"), fixture.On(fmt.Sprintf("node-%04d", i%nodes)))
		l.Set(pod)
		ended := pod.DeepCopy()
		ended.Status.Phase = corev1.PodSucceeded
		e.pods = append(e.pods, ended)
	}
	for i := range gangs {
		group := fmt.Sprintf("waits-%05d", i)
		l.Set(fixture.Group(group, "default", 2), fixture.Pod(group+"-0", fixture.In(group), fixture.Asks("cpu=8")), fixture.Pod(group+"-1", fixture.In(group), fixture.Asks("cpu=8")))
	}
	l.Cycle()
	return l
}

func cpuTime(tb testing.TB) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkCyclesWithFollowers counts the cycles of a scheduler that pauses for two milliseconds before each, to be
// asked for overviews. It counts in seconds of CPU time without clients and with a thousand that follow. These are
// another process. Before and after them it runs alone, because cycles become faster and slower while pods end.
func BenchmarkCyclesWithFollowers(b *testing.B) {
	e := &ending{events: events{wake: make(chan struct{}, 1)}}
	l := backlogged(b, e)
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Scheduler.Run(ctx, wallTime{}, e, e, scheduler.Pace{Coalesce: 2 * time.Millisecond, Period: time.Hour})
	}()
	defer func() { stop(); <-ended }()
	server := httptest.NewServer(New(l.Scheduler.Questions(), named{}, logr.Discard()).Handler())
	defer server.Close()
	e.wake <- struct{}{}

	// In a window of time: how many cycles there were, and how much CPU time.
	run := func(window time.Duration, cycles *int, spent *time.Duration) {
		from, began := e.count(), cpuTime(b)
		time.Sleep(window)
		*cycles, *spent = *cycles+e.count()-from, *spent+cpuTime(b)-began
	}
	var alone, asked int
	var aloneSpent, askedSpent time.Duration
	const window = 2 * time.Second
	run(window, &alone, &aloneSpent) // memory of the set-up is collected
	alone, aloneSpent = 0, 0
	b.ResetTimer()
	for range b.N {
		run(window, &alone, &aloneSpent)
		disconnect := thousand(b, server.Listener.Addr().String())
		run(2*window, &asked, &askedSpent)
		disconnect()
		run(window, &alone, &aloneSpent)
	}
	if e.count() == 8*5000 {
		b.Fatal("all pods have ended")
	}
	first, second := float64(alone)/aloneSpent.Seconds(), float64(asked)/askedSpent.Seconds()
	b.ReportMetric(first, "cycles/s-alone")
	b.ReportMetric(second, "cycles/s-followed")
	followers := askedSpent.Seconds() - float64(asked)/first
	b.ReportMetric(100*followers/(float64(b.N)*2*window.Seconds()), "%-of-a-core")
}

// thousand starts a process with a thousand clients, and returns what ends it, once all have heard of a change.
func thousand(tb testing.TB, address string) (disconnect func()) {
	command := exec.CommandContext(tb.Context(), os.Args[0])
	command.Env, command.Stderr = append(os.Environ(), followed+"="+address), os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := command.Start(); err != nil {
		tb.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "following\n" {
		tb.Fatalf("%q, %v", line, err)
	}
	return func() {
		_ = in.Close()
		if err := command.Wait(); err != nil {
			tb.Error(err)
		}
	}
}
