package app

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
)

const (
	goodConfiguration  = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]\n"
	otherConfiguration = "actions: \"enqueue, allocate\"\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]\n"
	badConfiguration   = "actions: allocate\ntiers: [{plugins: [{name: gnag}]}]\n"
)

// record is what becomes of configurations.
type record struct {
	used, refused int
	offered       []string // the actions of each policy
	shown         []decision.Notice
}

func (r *record) ConfigurationUsed()    { r.used++ }
func (r *record) ConfigurationRefused() { r.refused++ }

func newPolicies(isStrict bool) (*policies, *record) {
	r := &record{}
	registry := scheduler.NewRegistry()
	return &policies{
		registry: registry, catalogue: registry.Catalogue(), logger: logr.Discard(), judge: r, isStrict: isStrict,
		offer: func(policy *framework.Policy) {
			r.offered = append(r.offered, strings.Join(policy.Configuration.Actions, " "))
		},
		show: func(n decision.Notice) { r.shown = append(r.shown, n) },
	}, r
}

// inAPI is a document from a ConfigMap.
func inAPI(text string) document {
	return document{place: "ConfigMap a/b", text: []byte(text), object: &corev1.ObjectReference{Kind: "ConfigMap", Namespace: "a", Name: "b"}}
}

func (r *record) expect(t *testing.T, used, refused, shown int, offered ...string) {
	t.Helper()
	if r.used != used || r.refused != refused || len(r.shown) != shown {
		t.Errorf("used %d, refused %d, shown %d; want %d, %d, %d", r.used, r.refused, len(r.shown), used, refused, shown)
	}
	if diff := cmp.Diff(offered, r.offered); diff != "" {
		t.Errorf("offered (-want +got):\n%s", diff)
	}
}

func TestTheLastGoodConfigurationStaysInForce(t *testing.T) {
	p, r := newPolicies(false)
	if err := p.begin(inAPI(goodConfiguration)); err != nil {
		t.Fatal(err)
	}
	p.update(inAPI(badConfiguration))
	r.expect(t, 1, 1, 1, "allocate")
	want := `The configuration before it stays in force. volcano-scheduler.conf: line 2: tiers: there is no plugin "gnag"`
	if n := r.shown[0]; n.Type != corev1.EventTypeWarning || n.Regarding.Name != "b" || !strings.HasPrefix(n.Message, want) {
		t.Errorf("shown %+v, want %s…", n, want)
	}
	p.update(inAPI("# the same\n" + goodConfiguration))
	r.expect(t, 2, 1, 1, "allocate")
	p.update(inAPI(otherConfiguration))
	r.expect(t, 3, 1, 1, "allocate", "enqueue allocate")
	p.update(document{place: "file x", problem: errors.New("gone")})
	r.expect(t, 3, 2, 1, "allocate", "enqueue allocate")
}

func TestAConfigurationRefusedAtTheStartIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		document document
		on       string
	}{
		"from a ConfigMap": {inAPI(badConfiguration), "b"},
		"from a file":      {document{place: "file x", text: []byte(badConfiguration)}, "scheduler-pod"},
	} {
		t.Run(name, func(t *testing.T) {
			p, r := newPolicies(false)
			p.self = &corev1.ObjectReference{Kind: "Pod", Namespace: "a", Name: "scheduler-pod"}
			if err := p.begin(test.document); err != nil {
				t.Fatal(err)
			}
			if len(r.shown) != 1 || r.shown[0].Regarding.Name != test.on || !strings.HasPrefix(r.shown[0].Message, "The default configuration is in force. ") {
				t.Errorf("shown %+v", r.shown)
			}
			ready := func() string {
				recorder, fine := httptest.NewRecorder(), func() error { return nil }
				healthHandler(fine, fine, p.warning).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/readyz", nil))
				if recorder.Code != http.StatusOK {
					t.Errorf("it is not ready: %d", recorder.Code)
				}
				return recorder.Body.String()
			}
			want := "ok\nwarning: " + test.document.place + " cannot be used, and the default configuration is in force: line 2"
			if got := ready(); !strings.HasPrefix(got, want) {
				t.Errorf("readiness says %q, want %q", got, want)
			}
			p.update(inAPI(goodConfiguration))
			if got := ready(); got != "ok" {
				t.Errorf("when it is mended readiness says %q", got)
			}
		})
	}
}

func TestWithoutAUsableConfigurationTheDefaultIsInForceUnlessDisabled(t *testing.T) {
	const defaultActions = "enqueue admit allocate backfill"
	for name, d := range map[string]document{
		"none given": {}, "missing": {place: "file x", problem: os.ErrNotExist}, "invalid": inAPI(badConfiguration), "empty": inAPI(""),
	} {
		t.Run(name, func(t *testing.T) {
			p, r := newPolicies(false)
			if err := p.begin(d); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{defaultActions}, r.offered); diff != "" {
				t.Errorf("offered (-want +got):\n%s", diff)
			}
			strict, r := newPolicies(true)
			if err := strict.begin(d); err == nil || !strings.Contains(err.Error(), "--disable-default-scheduler-config") || len(r.offered) > 0 {
				t.Errorf("with the default disabled: got %v and %v", err, r.offered)
			}
		})
	}
}

func TestWithoutAConfigMapTheDefaultIsInForceAndNothingIsWrong(t *testing.T) {
	absent := document{place: "ConfigMap a/b", problem: errors.New("there is none"), isAbsent: true, object: inAPI("").object}
	p, r := newPolicies(false)
	must(t, p.begin(absent))
	r.expect(t, 1, 0, 0, "enqueue admit allocate backfill")
	p.update(inAPI(goodConfiguration))
	p.update(absent) // as a process that starts now would see it
	r.expect(t, 3, 0, 0, "enqueue admit allocate backfill", "allocate", "enqueue admit allocate backfill")

	p, r = newPolicies(true)
	if err := p.begin(absent); err == nil || !strings.Contains(err.Error(), "--disable-default-scheduler-config") {
		t.Errorf("with the default disabled: %v", err)
	}
	must(t, p.begin(inAPI(goodConfiguration)))
	p.update(absent)
	r.expect(t, 1, 1, 1, "allocate")
}

func TestAPolicyThatTheLoopCannotUseIsRefusedAndMayComeAgain(t *testing.T) {
	p, r := newPolicies(false)
	if err := p.begin(inAPI(goodConfiguration)); err != nil {
		t.Fatal(err)
	}
	p.rejected(errors.New("no"), false)
	r.expect(t, 1, 1, 1, "allocate", "enqueue admit allocate backfill")
	p.update(inAPI(otherConfiguration))
	p.rejected(errors.New("no"), true)
	p.update(inAPI(otherConfiguration))
	r.expect(t, 3, 2, 2, "allocate", "enqueue admit allocate backfill", "enqueue allocate", "enqueue allocate")
}

// watchFile starts to watch a file and returns what it tells.
func watchFile(t *testing.T, path string) <-chan document {
	t.Helper()
	f := file{path: path, poll: 5 * time.Millisecond}
	changes := make(chan document, 10)
	ctx, cancel := context.WithCancel(t.Context())
	first := f.read(ctx)
	ended := make(chan struct{})
	go func() {
		f.watch(ctx, first, func(d document) { changes <- d })
		close(ended)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return changes
}

func expectChange(t *testing.T, changes <-chan document, want string) {
	t.Helper()
	select {
	case d := <-changes:
		if got := string(d.text); got != want {
			t.Errorf("changed to %q, want %q", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("the change to %q was not seen", want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAConfigMapVolumeIsFollowedThroughItsSymbolicLinks(t *testing.T) {
	// As the kubelet lays it out: the file is a link into ..data, which is swapped as a whole.
	dir := t.TempDir()
	version := func(name, text string) {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name, configurationKey), []byte(text), 0o644))
		must(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	version("..1", "one")
	path := filepath.Join(dir, configurationKey)
	must(t, os.Symlink(filepath.Join("..data", configurationKey), path))
	changes := watchFile(t, path)
	version("..2", "two")
	expectChange(t, changes, "two")
	version("..3", "three")
	expectChange(t, changes, "three")
}

func TestAFileIsFollowedThroughDeletionAndReplacement(t *testing.T) {
	path := filepath.Join(t.TempDir(), "conf")
	changes := watchFile(t, path)
	must(t, os.WriteFile(path, []byte("one"), 0o644))
	expectChange(t, changes, "one")
	must(t, os.Remove(path))
	select {
	case d := <-changes:
		if !errors.Is(d.problem, os.ErrNotExist) {
			t.Errorf("after the deletion: %v", d.problem)
		}
	case <-time.After(time.Minute):
		t.Fatal("the deletion was not seen")
	}
	must(t, os.WriteFile(path+".new", []byte("one"), 0o644))
	must(t, os.Rename(path+".new", path))
	expectChange(t, changes, "one")
	must(t, os.WriteFile(path, make([]byte, maxConfiguration+1), 0o644))
	for d := range changes {
		// A read in the middle of the write sees a part of it.
		if d.problem != nil {
			if !strings.Contains(d.problem.Error(), "larger than") {
				t.Errorf("of a file that is too large: %v", d.problem)
			}
			break
		}
	}
}

func TestPasswordsLeaveNoScheduler(t *testing.T) {
	p, _ := newPolicies(false)
	if err := p.begin(inAPI("actions: allocate\ntiers: [{plugins: [{name: gang, enableJobOrder: false}, {name: usage}]}]\n" +
		"metrics: {type: elasticsearch, address: \"https://es\", elasticsearch.password: opensesame}\n")); err != nil {
		t.Fatal(err)
	}
	state := &scheduler.State{Configuration: p.offered}
	for answer, text := range map[string]string{"diagnosis": p.diagnosis(nil).Text, "snapshot": (&options{}).headerOf(state).Configuration} {
		if strings.Contains(text, "opensesame") || !strings.Contains(text, "(not shown)") {
			t.Errorf("the %s has\n%s", answer, text)
		}
		read, err := conf.Parse([]byte(text), p.catalogue)
		if err != nil {
			t.Fatalf("the %s cannot be read: %v", answer, err)
		}
		read.Metrics = p.offered.Metrics
		if !read.Equal(p.offered) {
			t.Errorf("the %s has another configuration:\n%s", answer, text)
		}
	}
}
