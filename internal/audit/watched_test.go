package audit_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/audit"
)

// kindsOf are the kinds of resources, which typed objects in the lines of stories leave out.
var kindsOf = map[string]string{"pods": "Pod", "nodes": "Node", "podgroups": "PodGroup", "queues": "Queue", "poddisruptionbudgets": "PodDisruptionBudget",
	"clusterqueues": "ClusterQueue", "cohorts": "Cohort", "workloads": "Workload", "localqueues": "LocalQueue", "admissionchecks": "AdmissionCheck"}

// line is what is read of a line of a story.
type line struct {
	Verb string `json:"verb"`
	User struct {
		Name string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Name        string `json:"name"`
		Namespace   string `json:"namespace"`
	} `json:"objectRef"`
	Asked   map[string]any `json:"requestObject"`
	Answer  map[string]any `json:"responseObject"`
	Arrived time.Time      `json:"requestReceivedTimestamp"`
}

// cluster is what the requests of a story make, as an API server would store it.
type cluster struct {
	t       *testing.T
	objects map[string]map[string]any // by resource and name
	evicted map[string]bool           // pods that a scheduler evicts
	told    []audit.Sighting
}

// serve stores what a request makes, and tells the watches.
func (c *cluster) serve(l *line) {
	id := l.Object.Resource + " " + l.Object.Namespace + "/" + l.Object.Name
	stored := c.objects[id]
	isDeletion := l.Verb == "delete"
	switch {
	case kindsOf[l.Object.Resource] == "", l.Answer["kind"] == "PartialObjectMetadata":
		return
	case l.Object.Subresource == "binding":
		if stored == nil {
			return
		}
		spec := stored["spec"].(map[string]any)
		if spec["nodeName"] != nil { // the API server takes no second one
			return
		}
		spec["nodeName"], spec["schedulerName"] = l.Asked["target"].(map[string]any)["name"], l.User.Name
	case l.Object.Subresource == "eviction":
		if c.evicted[id] = l.User.Name == theScheduler; stored == nil || stored["status"].(map[string]any)["phase"] != string(corev1.PodSucceeded) {
			return
		}
		isDeletion = true // the API server gives a pod that has ended no time to end in
	case isDeletion && l.Answer["metadata"] == nil:
		if stored == nil {
			stored = map[string]any{"metadata": map[string]any{"name": l.Object.Name, "namespace": l.Object.Namespace}}
		}
	default:
		if stored != nil && l.Object.Resource == "pods" { // a binding has said by whom
			l.Answer["spec"].(map[string]any)["schedulerName"] = stored["spec"].(map[string]any)["schedulerName"]
		}
		stored = l.Answer
	}
	stored["kind"] = kindsOf[l.Object.Resource]
	if l.Object.Resource == "pods" {
		if isDeletion && l.User.Name == theScheduler || c.evicted[id] {
			c.mark(stored)
			if isDeletion && !c.evicted[id] {
				c.tell(l.Arrived, stored, false)
			}
		}
	}
	c.objects[id] = stored
	c.tell(l.Arrived, stored, isDeletion)
}

// mark gives a pod the condition by which a scheduler says that it evicts it.
func (c *cluster) mark(pod map[string]any) {
	status := pod["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	status["conditions"] = append(conditions, map[string]any{"type": corev1.DisruptionTarget, "status": "True", "reason": corev1.PodReasonPreemptionByScheduler})
}

func (c *cluster) tell(at time.Time, object map[string]any, isGone bool) {
	object["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(len(c.told) + 1)
	text, err := json.Marshal(object)
	if err != nil {
		c.t.Fatal(err)
	}
	c.told = append(c.told, audit.Sighting{At: at, Object: text, IsGone: isGone})
}

// watched is what watches prove of a story, as objects by rule.
func (s *story) watched() (proven []string) {
	s.t.Helper()
	c := &cluster{t: s.t, objects: map[string]map[string]any{}, evicted: map[string]bool{}}
	for lines := bufio.NewScanner(bytes.NewReader(s.log.Bytes())); lines.Scan(); {
		l := &line{}
		if err := json.Unmarshal(lines.Bytes(), l); err != nil {
			s.t.Fatal(err)
		}
		c.serve(l)
	}
	a := audit.New(audit.Options{})
	found := 0
	for _, sighting := range c.told {
		violations, err := a.Watched(sighting)
		if err != nil {
			s.t.Fatal(err)
		}
		found += len(violations)
	}
	found += len(a.Advance(s.now))
	report := a.End()
	if found != len(report.Violations) {
		s.t.Errorf("%d violations were told, and %d reported", found, len(report.Violations))
	}
	for i := range report.Violations {
		proven = append(proven, report.Violations[i].Rule+" "+report.Violations[i].Objects[0])
	}
	return proven
}

// expectWatched checks that watches prove what the log proves, but what takes a request.
func (s *story) expectWatched(want []string) {
	s.t.Helper()
	want = slices.DeleteFunc(slices.Clone(want), func(v string) bool {
		return strings.HasPrefix(v, audit.RuleDoubleBind) || strings.HasPrefix(v, audit.RuleBudget)
	})
	if got := s.watched(); !slices.Equal(got, want) {
		s.t.Errorf("watches prove %q, want %q", got, want)
	}
}

func TestAWatchThatShowsNothingHasABegin(t *testing.T) {
	a := audit.New(audit.Options{})
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	a.Advance(at)
	a.Advance(at.Add(time.Minute))
	if r := a.End(); !r.From.Equal(at) || !r.To.Equal(at.Add(time.Minute)) {
		t.Errorf("the report is from %v to %v", r.From, r.To)
	}
}
