package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"

	"hekla.sh/hekla/internal/edge/apiserver"
)

// note is a change that is written into a log.
type note struct {
	namespace string // "default" if it has none
	name      string
	life      types.UID
	text      string
	isNews    bool // users wait for it
	isAwaited bool // further pods wait for it
	isRefresh bool // it only refreshes a message
	written   *notes
}

// notes is a log of what was written and when.
type notes struct {
	mutex   sync.Mutex
	begin   time.Time
	lines   []string
	answers []error       // to the next writes; success when there are none left
	takes   time.Duration // how long a write takes
	busy    sync.Map      // the objects that are being written
}

func (n note) key() key {
	return key{ofGroup, types.NamespacedName{Namespace: cmp.Or(n.namespace, "default"), Name: n.name}}
}
func (n note) uid() types.UID     { return n.life }
func (n note) urgent(Change) bool { return n.isNews }
func (n note) awaited() bool      { return n.isAwaited }
func (n note) refresh() bool      { return n.isRefresh }
func (n note) write(ctx context.Context, _ *apiserver.Clients) error {
	if _, isBusy := n.written.busy.LoadOrStore(n.name, true); isBusy {
		return errors.New("two writes at once")
	}
	defer n.written.busy.Delete(n.name)
	select {
	case <-time.After(n.written.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	n.written.mutex.Lock()
	defer n.written.mutex.Unlock()
	var answer error
	if len(n.written.answers) > 0 {
		answer, n.written.answers = n.written.answers[0], n.written.answers[1:]
	}
	line := fmt.Sprintf("%s %s", time.Since(n.written.begin).Round(100*time.Millisecond), n.text)
	if answer != nil {
		line += ": " + answer.Error()
	}
	n.written.lines = append(n.written.lines, line)
	return answer
}

// read returns a copy of the lines.
func (n *notes) read() []string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return slices.Clone(n.lines)
}

// writing runs a test with a writer on a clock that stands still while anything is busy.
func writing(t *testing.T, isBusy *atomic.Bool, test func(t *testing.T, w *Writer, n *notes)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := New(nil, flowcontrol.NewTokenBucketRateLimiter(1, 1), func() bool { return isBusy.Load() }, logr.Discard())
		w.settle = 0
		w.Start(ctx, 2)
		test(t, w, &notes{begin: time.Now()})
		cancel()
		w.workers.Wait()
	})
}

func expectNotes(t *testing.T, n *notes, want ...string) {
	t.Helper()
	synctest.Wait()
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if diff := gocmp.Diff(want, n.lines); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

func TestANamespaceWithManyStatusesHoldsUpNoOther(t *testing.T) {
	writing(t, new(atomic.Bool), func(t *testing.T, w *Writer, n *notes) {
		n.takes = 100 * time.Millisecond
		for i := range 50 {
			w.Put(note{namespace: "much", name: fmt.Sprint(i), text: "much", isAwaited: true, written: n})
		}
		w.Put(note{namespace: "little", name: "alone", text: "little", isAwaited: true, written: n})
		time.Sleep(time.Minute)
		if at := slices.IndexFunc(n.read(), func(line string) bool { return strings.HasSuffix(line, "little") }); at < 0 || at > 9 {
			t.Errorf("it is written as number %d, want it among the first ten of 51", at)
		}
	})
}

func TestAStatusIsWrittenUntilItIsReplacedOrDropped(t *testing.T) {
	t.Run("only the newest is written after a pause", func(t *testing.T) {
		writing(t, new(atomic.Bool), func(t *testing.T, w *Writer, n *notes) {
			w.Put(note{name: "a", text: "1", written: n})
			for i := 2; i <= 15; i++ {
				time.Sleep(130 * time.Millisecond)
				w.Put(note{name: "a", text: fmt.Sprint(i), written: n})
			}
			time.Sleep(time.Minute)
			expectNotes(t, n, "0s 1", "1s 8", "2s 15")
			if len(w.slots) > 0 {
				t.Errorf("%d objects are remembered after a minute of rest", len(w.slots))
			}
		})
	})
	t.Run("one that is waited for is not delayed", func(t *testing.T) {
		writing(t, new(atomic.Bool), func(t *testing.T, w *Writer, n *notes) {
			n.takes = 200 * time.Millisecond
			w.Put(note{name: "a", text: "1", written: n})
			time.Sleep(300 * time.Millisecond)
			w.Put(note{name: "a", text: "2", isNews: true, written: n})
			time.Sleep(100 * time.Millisecond)
			w.Put(note{name: "a", text: "3", isNews: true, written: n}) // while 2 is under way
			time.Sleep(time.Minute)
			expectNotes(t, n, "200ms 1", "500ms 2", "700ms 3")
		})
	})
	t.Run("one that fails is tried until it is replaced", func(t *testing.T) {
		writing(t, new(atomic.Bool), func(t *testing.T, w *Writer, n *notes) {
			failure := errors.New("no")
			n.answers = []error{failure, failure, failure}
			w.Put(note{name: "a", text: "1", written: n})
			time.Sleep(time.Second)
			w.Put(note{name: "a", text: "2", isNews: true, written: n})
			time.Sleep(time.Minute)
			expectNotes(t, n, "0s 1: no", "500ms 1: no", "1.5s 2: no", "3.5s 2")
			if written, failed := w.Counts(); written != 1 || failed != 3 {
				t.Errorf("counted %d writes and %d failures", written, failed)
			}
		})
	})
	t.Run("one of an object that is gone is forgotten", func(t *testing.T) {
		writing(t, new(atomic.Bool), func(t *testing.T, w *Writer, n *notes) {
			n.answers = []error{apiserver.ErrObjectGone}
			w.Put(note{name: "a", text: "1", written: n})
			time.Sleep(time.Minute)
			expectNotes(t, n, "0s 1: the object is gone")
			if len(w.slots) > 0 {
				t.Errorf("%d objects are remembered", len(w.slots))
			}
			w.Put(note{name: "a", life: "next", text: "2", written: n})
			time.Sleep(time.Minute)
			expectNotes(t, n, "0s 1: the object is gone", "1m0s 2")
		})
	})
	t.Run("one that was dropped is not tried again", func(t *testing.T) {
		writing(t, new(atomic.Bool), func(t *testing.T, w *Writer, n *notes) {
			n.takes = time.Second
			n.answers = []error{errors.New("no")}
			w.Put(note{name: "a", life: "1", text: "1", written: n})
			synctest.Wait()
			sending := w.drop(note{name: "a"}.key(), "1")
			begin := time.Now()
			<-sending
			if took := time.Since(begin); took != time.Second {
				t.Errorf("the write was over after %s, want when it returned", took)
			}
			time.Sleep(time.Minute)
			expectNotes(t, n, "1s 1: no")
			if w.drop(note{name: "a"}.key(), "1") != nil {
				t.Error("a write is under way")
			}
		})
	})
}

func TestTheFirstStatusWaitsForNewerOnes(t *testing.T) {
	for name, test := range map[string]struct {
		then func(w *Writer, n *notes) // 100 ms after the first
		want []string
	}{
		"none comes":            {func(*Writer, *notes) {}, []string{"200ms 1"}},
		"a newer one comes":     {func(w *Writer, n *notes) { w.Put(note{name: "a", text: "2", isNews: true, written: n}) }, []string{"200ms 2"}},
		"pods wait for the new": {func(w *Writer, n *notes) { w.Put(note{name: "a", text: "2", isAwaited: true, written: n}) }, []string{"100ms 2"}},
		"the new one is observed": {func(w *Writer, n *notes) {
			w.PutObserved(note{name: "a", text: "2", written: n}, func(error) bool { return false })
		}, []string{"100ms 2"}},
		"it is dropped": {func(w *Writer, _ *notes) { w.drop(note{name: "a"}.key(), "1") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			writing(t, new(atomic.Bool), func(t *testing.T, w *Writer, n *notes) {
				w.settle = settle
				w.Put(note{name: "a", life: "1", text: "1", written: n})
				time.Sleep(100 * time.Millisecond)
				test.then(w, n)
				time.Sleep(time.Minute)
				expectNotes(t, n, test.want...)
				if len(w.slots) > 0 {
					t.Errorf("%d objects are remembered", len(w.slots))
				}
			})
		})
	}
	writing(t, new(atomic.Bool), func(t *testing.T, w *Writer, n *notes) {
		w.settle = settle
		w.Put(note{name: "a", text: "1", isAwaited: true, written: n})
		time.Sleep(time.Minute)
		expectNotes(t, n, "0s 1")
	})
}

func TestStatusesAreDeferredWhileBindingsWait(t *testing.T) {
	t.Run("those that pods wait for trickle", func(t *testing.T) {
		var isBusy atomic.Bool
		isBusy.Store(true)
		writing(t, &isBusy, func(t *testing.T, w *Writer, n *notes) {
			for _, name := range []string{"a", "b", "c"} {
				w.Put(note{name: name, text: "1", isAwaited: true, written: n}) // which worker is quicker does not matter
			}
			time.Sleep(time.Minute)
			expectNotes(t, n, "0s 1", "1s 1", "2s 1")
		})
	})
	t.Run("all others are written one by one, the newest state of each", func(t *testing.T) {
		var isBusy atomic.Bool
		isBusy.Store(true)
		writing(t, &isBusy, func(t *testing.T, w *Writer, n *notes) {
			w.Put(note{name: "a", text: "a1", isNews: true, written: n})
			synctest.Wait()
			w.Put(note{name: "b", text: "b1", isNews: true, written: n})
			synctest.Wait()
			w.Put(note{name: "b", text: "b2", isNews: true, written: n})
			time.Sleep(time.Minute)
			expectNotes(t, n, "300ms a1", "600ms b2")
			if len(w.slots) > 0 || len(w.later) > 0 {
				t.Errorf("%d objects are remembered, %d are deferred", len(w.slots), len(w.later))
			}
		})
	})
	t.Run("none of them for longer than a minute", func(t *testing.T) {
		var isBusy atomic.Bool
		isBusy.Store(true)
		writing(t, &isBusy, func(t *testing.T, w *Writer, n *notes) {
			const all = 1000 // which would take five minutes one by one
			for i := range all {
				w.Put(note{name: fmt.Sprint(i), text: "1", written: n})
			}
			time.Sleep(longestDeferral - time.Second)
			if written := len(n.read()); written >= all/4 {
				t.Errorf("%d are written although bindings wait", written)
			}
			time.Sleep(2 * time.Second)
			if written := len(n.read()); written != all {
				t.Errorf("%d of %d are written", written, all)
			}
		})
	})
	t.Run("and all at once when no bindings wait", func(t *testing.T) {
		var isBusy atomic.Bool
		isBusy.Store(true)
		writing(t, &isBusy, func(t *testing.T, w *Writer, n *notes) {
			for i := range 10 {
				w.Put(note{name: fmt.Sprint(i), text: "1", written: n})
			}
			time.Sleep(400 * time.Millisecond)
			isBusy.Store(false)
			time.Sleep(time.Minute)
			want := []string{"300ms 1"}
			for range 9 {
				want = append(want, "600ms 1")
			}
			expectNotes(t, n, want...)
		})
	})
	t.Run("one that becomes awaited or observed is not deferred further", func(t *testing.T) {
		var isBusy atomic.Bool
		isBusy.Store(true)
		writing(t, &isBusy, func(t *testing.T, w *Writer, n *notes) {
			for i := range 5 {
				w.Put(note{name: fmt.Sprint(i), text: fmt.Sprintf("%d.1", i), written: n})
				synctest.Wait()
			}
			time.Sleep(50 * time.Millisecond)
			w.Put(note{name: "3", text: "3.2", isAwaited: true, written: n})
			synctest.Wait()
			w.PutObserved(note{name: "4", text: "4.2", written: n}, func(error) bool { return false })
			time.Sleep(time.Minute)
			expectNotes(t, n, "100ms 3.2", "300ms 0.1", "600ms 1.1", "900ms 2.1", "1.1s 4.2")
		})
	})
	t.Run("one that is dropped is not written", func(t *testing.T) {
		var isBusy atomic.Bool
		isBusy.Store(true)
		writing(t, &isBusy, func(t *testing.T, w *Writer, n *notes) {
			w.Put(note{name: "a", life: "1", text: "1", written: n})
			synctest.Wait()
			if w.drop(note{name: "a"}.key(), "1") != nil {
				t.Error("a write is under way")
			}
			time.Sleep(time.Minute)
			expectNotes(t, n)
			if len(w.slots) > 0 {
				t.Errorf("%d objects are remembered", len(w.slots))
			}
		})
	})
}

func TestNothingIsWrittenAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := New(nil, nil, func() bool { return false }, logr.Discard())
		w.Start(ctx, 2)
		n := &notes{begin: time.Now(), takes: time.Second}
		w.Put(note{name: "a", text: "1", written: n})
		synctest.Wait()
		cancel()
		w.workers.Wait()
		w.Put(note{name: "b", text: "2", written: n})
		expectNotes(t, n)
	})
}

// pass lets time pass until all workers have come to a stop.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestAPlanIsRecordedWithItsStatusOrANewerOne(t *testing.T) {
	writing(t, new(atomic.Bool), func(t *testing.T, w *Writer, n *notes) {
		n.answers = []error{nil, errors.New("no")}
		heard := 0
		w.Put(note{name: "a", text: "1", written: n})
		pass(100 * time.Millisecond)
		w.PutObserved(note{name: "a", text: "2", written: n}, func(err error) bool {
			if err == nil {
				n.lines = append(n.lines, "recorded")
			}
			heard++
			return true
		})
		pass(100 * time.Millisecond)
		w.Put(note{name: "a", text: "3", written: n})
		pass(time.Minute)
		// Without the wait of an object whose status was written a moment ago; and after the failure the newer one
		// counts.
		expectNotes(t, n, "0s 1", "100ms 2: no", "600ms 3", "recorded")
		if heard != 2 {
			t.Errorf("heard %d times", heard)
		}
	})
}

func TestMessagesAreRefreshedSlowly(t *testing.T) {
	writing(t, new(atomic.Bool), func(t *testing.T, w *Writer, n *notes) {
		started, changed := &notes{begin: n.begin}, &notes{begin: n.begin}
		for i := range 100 {
			w.Put(note{name: fmt.Sprint("waits-", i), text: "a number", isRefresh: true, written: n})
		}
		w.Put(note{name: "starts", text: "news", written: started})
		w.Put(note{name: "waits-99", text: "news", written: changed})
		w.Put(note{name: "waits-98", text: "another number", isRefresh: true, written: n})
		time.Sleep(time.Second)
		synctest.Wait()
		for _, n := range []*notes{started, changed} {
			if diff := gocmp.Diff([]string{"0s news"}, n.read()); diff != "" {
				t.Errorf("what is more than a message (-want +got):\n%s", diff)
			}
		}
		if count := len(n.read()); count < 19 || count > 21 {
			t.Errorf("%d messages were written in a second", count)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		counts := map[string]int{}
		for _, line := range n.read() {
			_, text, _ := strings.Cut(line, " ")
			counts[text]++
		}
		if diff := gocmp.Diff(map[string]int{"a number": 98, "another number": 1}, counts); diff != "" {
			t.Errorf("written (-want +got):\n%s", diff)
		}
	})
}

func TestASlowAPIServerIsSentManyStatusesAtOnce(t *testing.T) {
	writing(t, new(atomic.Bool), func(t *testing.T, w *Writer, n *notes) {
		n.takes = 10 * time.Second
		for i := range 100 {
			w.Put(note{name: fmt.Sprint(i), text: fmt.Sprint(i), isAwaited: true, written: n})
		}
		inFlight := func() (count int) {
			synctest.Wait()
			n.busy.Range(func(any, any) bool { count++; return true })
			return count
		}
		for _, test := range []struct {
			after time.Duration
			want  int
		}{{0, 2}, {slowRequest + time.Millisecond, 4}, {slowRequest, 6}, {3 * time.Second, 2 + maxAssistants}} {
			time.Sleep(test.after)
			if got := inFlight(); got != test.want {
				t.Errorf("after %s more %d are in flight, want %d", test.after, got, test.want)
			}
		}
		time.Sleep(5 * time.Minute)
		if got := len(n.read()); got != 100 {
			t.Errorf("%d statuses are written, want 100", got)
		}
	})
}

// TestNothingIsKeptOfObjectsThatAreGone creates jobs and deletes them before their statuses are written.
func TestNothingIsKeptOfObjectsThatAreGone(t *testing.T) {
	for name, isRefresh := range map[string]bool{"deferred": false, "refreshed": true} {
		t.Run(name, func(t *testing.T) {
			var isBusy atomic.Bool
			isBusy.Store(!isRefresh)
			writing(t, &isBusy, func(t *testing.T, w *Writer, n *notes) {
				w.Put(note{name: "stays", text: "1", isRefresh: isRefresh, written: n})
				for i := range 1000 {
					w.Put(note{name: fmt.Sprint(i), text: "gone", isRefresh: isRefresh, written: n})
				}
				synctest.Wait()
				for i := range 1000 {
					w.Void(note{name: fmt.Sprint(i)}.key().name)
				}
				if len(w.slots) != 1 {
					t.Errorf("%d objects are remembered", len(w.slots))
				}
				w.Put(note{name: "7", text: "another of this name", isRefresh: isRefresh, written: n})
				time.Sleep(5 * time.Second)
				synctest.Wait()
				written := n.read()
				if len(written) != 2 || strings.Contains(strings.Join(written, " "), "gone") || len(w.later)+len(w.refresh) > 0 {
					t.Errorf("written are %v, %d and %d wait", written, len(w.later), len(w.refresh))
				}
			})
		})
	}
	t.Run("while it is written", func(t *testing.T) {
		writing(t, new(atomic.Bool), func(t *testing.T, w *Writer, n *notes) {
			n.takes, n.answers = time.Second, []error{errors.New("refused")}
			w.Put(note{name: "a", text: "1", written: n})
			synctest.Wait()
			w.Put(note{name: "a", text: "2", written: n})
			w.Void(note{name: "a"}.key().name)
			time.Sleep(time.Minute)
			expectNotes(t, n, "1s 1: refused")
		})
	})
}
