package edge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/edge/binder"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// wire is an API server for the pods p0, p1 …, reduced to what goes over the wire for a binding, which answers as a
// script says. Where the script has ended it binds.
type wire struct {
	mutex    sync.Mutex
	pods     map[string]*corev1.Pod
	script   []answer
	sent     []string // names of the pods of which a binding came in
	reads    int
	gate     chan struct{} // if not nil, bindings wait here
	arrivals chan string
}

// answer answers a request for a binding. It returns nil when the reply is lost.
type answer func(w *wire, pod *corev1.Pod, node string) *metav1.Status

var success = &metav1.Status{Status: metav1.StatusSuccess}

func bindIt(_ *wire, pod *corev1.Pod, node string) *metav1.Status {
	switch {
	case pod == nil:
		return statusOf(apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p0"))
	case pod.Spec.NodeName != "":
		return statusOf(apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, pod.Name, nil))
	}
	pod.Spec.NodeName = node
	return success
}

func statusOf(err *apierrors.StatusError) *metav1.Status { return &err.ErrStatus }

// replyWith answers without binding.
func replyWith(code int, reason metav1.StatusReason) answer {
	return func(*wire, *corev1.Pod, string) *metav1.Status {
		return &metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: string(reason)}
	}
}

// replyLost binds, but the reply is lost.
func replyLost(w *wire, pod *corev1.Pod, node string) *metav1.Status {
	bindIt(w, pod, node)
	return nil
}

// requestLost does not bind, and there is no reply.
func requestLost(*wire, *corev1.Pod, string) *metav1.Status { return nil }

// boundMeanwhile binds the pod for another client first.
func boundMeanwhile(w *wire, pod *corev1.Pod, _ string) *metav1.Status {
	pod.Spec.NodeName = "other"
	return bindIt(w, pod, "")
}

// deletedMeanwhile lets the pod go while the request is on its way.
func deletedMeanwhile(w *wire, pod *corev1.Pod, _ string) *metav1.Status {
	delete(w.pods, pod.Name)
	return bindIt(w, nil, "")
}

// recreatedMeanwhile puts another pod in its place; the UID in the binding does not match then.
func recreatedMeanwhile(w *wire, pod *corev1.Pod, _ string) *metav1.Status {
	w.pods[pod.Name] = podOf(pod.Name, "successor")
	return statusOf(apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, pod.Name, nil))
}

// deletingMeanwhile begins the deletion of the pod.
func deletingMeanwhile(_ *wire, pod *corev1.Pod, _ string) *metav1.Status {
	now := metav1.Now()
	pod.DeletionTimestamp = &now
	return statusOf(apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, pod.Name, nil))
}

func (w *wire) ServeHTTP(reply http.ResponseWriter, request *http.Request) {
	path := strings.Split(strings.TrimPrefix(request.URL.Path, "/api/v1/namespaces/default/pods/"), "/")
	switch {
	case request.Method == http.MethodGet && len(path) == 1:
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.reads++
		if pod := w.pods[path[0]]; pod != nil {
			send(reply, http.StatusOK, pod)
		} else {
			missing := statusOf(apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, path[0]))
			send(reply, int(missing.Code), missing)
		}
	case request.Method == http.MethodPost && len(path) == 2 && path[1] == "binding":
		w.bind(reply, request, path[0])
	default:
		// Events.
		send(reply, http.StatusCreated, &metav1.Status{Status: metav1.StatusSuccess})
	}
}

func (w *wire) bind(reply http.ResponseWriter, _ *http.Request, name string) {
	if w.gate != nil {
		w.arrivals <- name
		<-w.gate
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.sent = append(w.sent, name)
	respond := answer(bindIt)
	if len(w.script) > 0 {
		respond, w.script = w.script[0], w.script[1:]
	}
	status := respond(w, w.pods[name], "node")
	if status == nil {
		panic(http.ErrAbortHandler)
	}
	code := http.StatusCreated
	if status.Status != metav1.StatusSuccess {
		code = int(status.Code)
	}
	send(reply, code, status)
}

func send(reply http.ResponseWriter, code int, object any) {
	switch object := object.(type) {
	case *corev1.Pod:
		object.APIVersion, object.Kind = "v1", "Pod"
	case *metav1.Status:
		object.APIVersion, object.Kind = "v1", "Status"
	}
	reply.Header().Set("Content-Type", "application/json")
	if code == http.StatusTooManyRequests {
		reply.Header().Set("Retry-After", "1")
	}
	reply.WriteHeader(code)
	_ = json.NewEncoder(reply).Encode(object)
}

// podOf makes a pod without a node.
func podOf(name string, uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid}}
}

// outcome is what came of bindings.
type outcome struct {
	mutex   sync.Mutex
	results []binder.Result
	refused []types.UID
}

// startWire starts an outbox that talks to the wire. It ends, and leaves nothing behind, with the test.
func startWire(t *testing.T, w *wire) (*Outbox, *outcome) {
	t.Helper()
	return startBehind(t, w)
}

// startBehind is startWire with what answers the requests.
func startBehind(t *testing.T, answers http.Handler) (*Outbox, *outcome) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	server := httptest.NewServer(answers)
	t.Cleanup(server.Close)
	clients, err := apiserver.Connect(&rest.Config{Host: server.URL}, 2000, 2000)
	if err != nil {
		t.Fatal(err)
	}
	out := &outcome{}
	o := NewOutbox(clients, OutboxOptions{
		Name: "test", Logger: logr.Discard(), backOff: &wait.Backoff{Duration: time.Millisecond, Factor: 1.5, Steps: 10},
		Refuse: func(e cache.BindFailed) {
			out.mutex.Lock()
			defer out.mutex.Unlock()
			out.refused = append(out.refused, e.UID)
		},
		Observe: func(outcome binder.Outcome) {
			out.mutex.Lock()
			defer out.mutex.Unlock()
			out.results = append(out.results, outcome.Result)
		},
	})
	o.Start(t.Context())
	t.Cleanup(o.Wait)
	return o, out
}

// finish waits until everything that was handed over is finished.
func finish(t *testing.T, o *Outbox) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		s := o.Stats()
		if s.Waiting+s.InFlight == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not finished: %+v", s)
		}
	}
	if err := o.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func bindsOf(job string, pods ...string) []decision.Bind {
	var binds []decision.Bind
	for _, name := range pods {
		binds = append(binds, decision.Bind{
			Pod: types.NamespacedName{Namespace: "default", Name: name}, UID: types.UID("uid-" + name), Node: "node",
			Job: cluster.JobID{Namespace: "default", Name: job},
		})
	}
	return binds
}

func newWire(pods ...string) *wire {
	w := &wire{pods: map[string]*corev1.Pod{}, arrivals: make(chan string, 1000)}
	for _, name := range pods {
		w.pods[name] = podOf(name, types.UID("uid-"+name))
	}
	return w
}

func repeat(a answer, times int) []answer {
	var script []answer
	for range times {
		script = append(script, a)
	}
	return script
}

func TestBindingsAreSentUntilTheOutcomeIsKnown(t *testing.T) {
	t.Run("a binding ends in what the API server shows", func(t *testing.T) {
		for name, test := range map[string]struct {
			script []answer
			want   binder.Result
			sent   int
			reads  int
		}{
			"bound at once":                         {nil, binder.Bound, 1, 0},
			"the pod is gone":                       {[]answer{deletedMeanwhile}, binder.Gone, 1, 1},
			"another pod has its name":              {[]answer{recreatedMeanwhile}, binder.Gone, 1, 1},
			"the pod is being deleted":              {[]answer{deletingMeanwhile}, binder.Gone, 1, 1},
			"somebody else was faster":              {[]answer{boundMeanwhile}, binder.Elsewhere, 1, 1},
			"bound, and the reply was lost":         {[]answer{replyLost}, binder.Bound, 1, 1},
			"not bound, and the request was lost":   {[]answer{requestLost}, binder.Bound, 2, 1},
			"a conflict with another write":         {[]answer{replyWith(409, metav1.StatusReasonConflict)}, binder.Bound, 2, 1},
			"too many requests":                     {[]answer{replyWith(429, metav1.StatusReasonTooManyRequests)}, binder.Bound, 2, 0},
			"unavailable for a while":               {repeat(replyWith(503, metav1.StatusReasonServiceUnavailable), 3), binder.Bound, 4, 3},
			"a time-out of the server":              {[]answer{replyWith(504, metav1.StatusReasonTimeout)}, binder.Bound, 2, 1},
			"not authorized until the token is new": {[]answer{replyWith(401, metav1.StatusReasonUnauthorized)}, binder.Bound, 2, 1},
			"forbidden":                             {repeat(replyWith(403, metav1.StatusReasonForbidden), 9), binder.Refused, 1, 1},
			"invalid":                               {repeat(replyWith(422, metav1.StatusReasonInvalid), 9), binder.Refused, 1, 1},
			"not understood":                        {repeat(replyWith(400, metav1.StatusReasonBadRequest), 9), binder.Refused, 1, 1},
			"broken for good":                       {repeat(replyWith(500, metav1.StatusReasonInternalError), 99), binder.Refused, apiserver.MaxRequests, apiserver.MaxRequests},
			"lost again and again, bound at last":   {append(repeat(requestLost, 3), replyLost), binder.Bound, 4, 4},
		} {
			t.Run(name, func(t *testing.T) {
				w := newWire("p0")
				w.script = test.script
				o, out := startWire(t, w)
				o.Do(decision.Decisions{Binds: bindsOf("job", "p0")})
				finish(t, o)
				if diff := cmp.Diff([]binder.Result{test.want}, out.results); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
				if len(w.sent) != test.sent || w.reads != test.reads {
					t.Errorf("%d requests and %d reads, want %d and %d", len(w.sent), w.reads, test.sent, test.reads)
				}
				if wantRefused := test.want == binder.Refused; wantRefused != (len(out.refused) == 1) {
					t.Errorf("refusals reported: %v", out.refused)
				}
			})
		}
	})
	t.Run("an unknown outcome is read until it is known", func(t *testing.T) {
		w := newWire("p0")
		var failures int
		proxy := http.HandlerFunc(func(reply http.ResponseWriter, request *http.Request) {
			// The API server is away for longer than the requests for a binding would be repeated.
			if request.Method == http.MethodGet && failures < 3*apiserver.MaxRequests {
				failures++
				panic(http.ErrAbortHandler)
			}
			w.ServeHTTP(reply, request)
		})
		w.script = []answer{replyLost}
		o, out := startBehind(t, proxy)
		o.Do(decision.Decisions{Binds: bindsOf("job", "p0")})
		finish(t, o)
		if diff := cmp.Diff([]binder.Result{binder.Bound}, out.results); diff != "" || len(w.sent) != 1 {
			t.Errorf("sent %d times, result (-want +got):\n%s", len(w.sent), diff)
		}
	})
	t.Run("bindings are sent in the order given", func(t *testing.T) {
		names := podNames("p", binder.Workers+10)
		w := newWire(names...)
		w.gate = make(chan struct{})
		o, _ := startWire(t, w)
		o.Do(decision.Decisions{Binds: bindsOf("job", names...)})
		first := map[string]bool{}
		for range binder.Workers {
			first[<-w.arrivals] = true
		}
		for _, name := range names[:binder.Workers] {
			if !first[name] {
				t.Errorf("%s is not among the first %d", name, binder.Workers)
			}
		}
		select {
		case name := <-w.arrivals:
			t.Errorf("%s is under way as well", name)
		case <-time.After(20 * time.Millisecond):
		}
		if s := o.Stats(); s.InFlight != binder.Workers || s.Waiting != len(names)-binder.Workers {
			t.Errorf("%d under way and %d waiting", s.InFlight, s.Waiting)
		}
		close(w.gate)
		finish(t, o)
	})
}

func podNames(prefix string, count int) []string {
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("%s%02d", prefix, i))
	}
	return names
}

func TestAnOutboxThatEnds(t *testing.T) {
	t.Run("binds the rest of gangs that were begun, and no others", func(t *testing.T) {
		first, second, third := podNames("f", binder.Workers-2), podNames("s", 10), podNames("t", 10)
		w := newWire(append(append(append([]string{}, first...), second...), third...)...)
		w.gate = make(chan struct{})
		o, out := startWire(t, w)
		var binds []decision.Bind
		binds = append(binds, bindsOf("first", first...)...)
		binds = append(binds, bindsOf("second", second...)...)
		binds = append(binds, bindsOf("third", third...)...)
		o.Do(decision.Decisions{Binds: binds})
		for range binder.Workers {
			<-w.arrivals
		}
		drained := make(chan error)
		go func() { drained <- o.Drain(t.Context()) }()
		for !o.isClosed.Load() {
			time.Sleep(time.Millisecond)
		}
		close(w.gate)
		if err := <-drained; err != nil {
			t.Fatal(err)
		}
		o.Do(decision.Decisions{Binds: bindsOf("late", first[0])})
		bound := map[bool]int{}
		for name, pod := range w.pods {
			if pod.Spec.NodeName != "" {
				bound[strings.HasPrefix(name, "t")]++
			}
		}
		if want := len(first) + len(second); bound[false] != want || bound[true] != 0 {
			t.Errorf("%d pods of the gangs that were begun are bound, want %d; %d of the other, want 0", bound[false], want, bound[true])
		}
		unsent := 0
		for _, result := range out.results {
			if result == binder.Unsent {
				unsent++
			}
		}
		if unsent != 10 {
			t.Errorf("%d bindings were reported as not sent, want 10", unsent)
		}
	})
	t.Run("gives up when its time is over", func(t *testing.T) {
		w := newWire("p0")
		w.gate = make(chan struct{})
		o, _ := startWire(t, w)
		o.Do(decision.Decisions{Binds: bindsOf("job", "p0")})
		<-w.arrivals
		defer close(w.gate)
		expired, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		err := o.Drain(expired)
		if err == nil || !strings.Contains(err.Error(), "1 bindings and 0 steps of plans were not finished in time") {
			t.Errorf("got %v", err)
		}
	})
}
