package binder_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"hekla.sh/hekla/internal/edge/binder"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/supplies"
)

// apiServer holds one pod and the claim of its volume. It stands for what internal/edge tests with a real one.
type apiServer struct {
	mutex    sync.Mutex
	pod      *corev1.Pod // nil if it does not exist
	claim    *corev1.PersistentVolumeClaim
	answer   func(s *apiServer) int // to a binding; nil binds
	bindings []corev1.Binding
	requests []string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	status := func(code int) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: int32(code),
			Status: map[bool]string{true: metav1.StatusSuccess, false: metav1.StatusFailure}[code < 300],
			Reason: map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict}[code]})
	}
	kind := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/team/"), "/")[0]
	s.requests = append(s.requests, r.Method+" "+kind)
	switch {
	case r.Method == http.MethodPost:
		var binding corev1.Binding
		_ = json.NewDecoder(r.Body).Decode(&binding)
		s.bindings = append(s.bindings, binding)
		if s.answer != nil {
			status(s.answer(s))
			return
		}
		s.pod.Spec.NodeName = binding.Target.Name
		status(http.StatusCreated)
	case kind == "pods" && s.pod != nil:
		_ = json.NewEncoder(w).Encode(s.pod)
	case kind == "persistentvolumeclaims" && r.Method == http.MethodPut:
		_ = json.NewDecoder(r.Body).Decode(s.claim)
		// The provisioner and the volume controller do their part at once.
		s.claim.Spec.VolumeName = "made"
		metav1.SetMetaDataAnnotation(&s.claim.ObjectMeta, "pv.kubernetes.io/bind-completed", "yes")
		_ = json.NewEncoder(w).Encode(s.claim)
	case kind == "persistentvolumeclaims":
		_ = json.NewEncoder(w).Encode(s.claim)
	case strings.Contains(r.URL.Path, "/persistentvolumes/"):
		_ = json.NewEncoder(w).Encode(corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "made"}})
	default:
		status(http.StatusNotFound)
	}
}

func podOf(uid types.UID) *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train-0", UID: uid}}
}

var bind = decision.Bind{Pod: types.NamespacedName{Namespace: "team", Name: "train-0"}, UID: "first", Node: "n1", Account: "research/team/train"}

// run sends the bindings to the server, and returns their outcomes.
func (s *apiServer) run(use func(*binder.Binder), binds ...decision.Bind) []binder.Outcome {
	server := httptest.NewServer(s)
	defer server.Close()
	outcomes := make(chan binder.Outcome, len(binds))
	b := binder.New(kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}), binder.Options{
		Settle:   func(context.Context, decision.Bind) {},
		Finished: func(_ decision.Bind, o binder.Outcome) { outcomes <- o },
		BackOff:  wait.Backoff{Duration: time.Millisecond, Factor: 1, Steps: 100}, Logger: logr.Discard(),
	})
	ctx, stop := context.WithCancel(context.Background())
	b.Add(binds)
	use(b)
	b.Start(ctx)
	var all []binder.Outcome
	for range binds {
		all = append(all, <-outcomes)
	}
	stop()
	b.Wait()
	return all
}

func asItIs(*binder.Binder) {}

// A pod of a job gets its node.
func ExampleBinder() {
	s := &apiServer{pod: podOf("first")}
	outcome := s.run(asItIs, bind)[0]
	sent := s.bindings[0]
	fmt.Println(outcome.Result, outcome.Requests)
	fmt.Println(sent.UID, sent.Target.Name, sent.Annotations[decision.AccountAnnotation])
	// Output:
	// bound 1
	// first n1 research/team/train
}

func TestABindingEndsWithWhatTheAPIServerShows(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(*apiServer) int
		want   binder.Result
		sent   int
	}{
		"bound, and the reply says no": {func(s *apiServer) int { s.pod.Spec.NodeName = "n1"; return 500 }, binder.Bound, 1},
		"bound by another program":     {func(s *apiServer) int { s.pod.Spec.NodeName = "n2"; return 409 }, binder.Elsewhere, 1},
		"deleted":                      {func(s *apiServer) int { s.pod = nil; return 404 }, binder.Gone, 1},
		"a new pod of that name":       {func(s *apiServer) int { s.pod = podOf("second"); return 409 }, binder.Gone, 1},
		"being deleted":                {func(s *apiServer) int { s.pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}; return 409 }, binder.Gone, 1},
		"refused for good":             {func(*apiServer) int { return 403 }, binder.Refused, 1},
		"lost once": {func(s *apiServer) int {
			if len(s.bindings) == 1 {
				return 500
			}
			s.pod.Spec.NodeName = "n1"
			return 201
		}, binder.Bound, 2},
	} {
		s := &apiServer{pod: podOf("first"), answer: c.answer}
		if o := s.run(asItIs, bind)[0]; o.Result != c.want || o.Requests != c.sent || (o.Err != nil) != (c.want == binder.Refused) {
			t.Errorf("%s: %s after %d requests, %v; want %s after %d", name, o.Result, o.Requests, o.Err, c.want, c.sent)
		}
		for _, sent := range s.bindings {
			if sent.UID != "first" {
				t.Errorf("%s: a binding names the UID %q", name, sent.UID)
			}
		}
	}
}

func TestTheBindingIsSentWhenTheVolumesAreBound(t *testing.T) {
	s := &apiServer{pod: podOf("first"), claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data", UID: "data"}}}
	withVolume := bind
	withVolume.Reservation = &supplies.Reservation{Patience: time.Minute, Volumes: []supplies.VolumeReservation{{Claim: types.NamespacedName{Namespace: "team", Name: "data"}, UID: "data"}}}
	if o := s.run(asItIs, withVolume)[0]; o.Result != binder.Bound || o.Prepared == 0 {
		t.Errorf("the outcome is %+v", o)
	}
	if node := s.claim.Annotations["volume.kubernetes.io/selected-node"]; node != "n1" {
		t.Errorf("the volume is made for the node %q", node)
	}
	written, sent := slices.Index(s.requests, "PUT persistentvolumeclaims"), slices.Index(s.requests, "POST pods")
	if written < 0 || sent < written || !slices.Contains(s.requests[written:sent], "GET persistentvolumeclaims") {
		t.Errorf("the requests are %q", s.requests)
	}
}

func TestAClosedBinderStartsNoGangAndTakesNoBinding(t *testing.T) {
	s := &apiServer{pod: podOf("first")}
	var idle <-chan struct{}
	outcome := s.run(func(b *binder.Binder) {
		idle = b.Close()
		b.Add([]decision.Bind{bind})
		if waiting, _, _ := b.Stats(); waiting != 1 {
			t.Errorf("%d bindings wait", waiting)
		}
		select {
		case <-idle:
			t.Error("it is idle while a binding waits")
		default:
		}
	}, bind)[0]
	<-idle
	if outcome.Result != binder.Unsent || len(s.bindings) > 0 {
		t.Errorf("%s, sent are %v", outcome.Result, s.bindings)
	}
}
