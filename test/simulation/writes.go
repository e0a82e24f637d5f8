package simulation

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// writes are the rules about how our programs write, whatever comes of it: a scheduler sends nothing once another one
// leads, and begins with no list that may be of any time; a pod is deleted or evicted by its UID, so that no pod is hit
// that has taken its name; and a plan is recorded on a pod that waits before its first victim is evicted.
type writes struct {
	driver  *driver
	leader  *incarnation
	leads   time.Time       // since when
	plans   map[string]bool // by their IDs, those that were recorded on a pod
	deleted time.Time       // when a pod that waits was deleted the last time: no plan can be recorded on it then
}

// schedulerName is how the program is called whose leader alone may write, and controllersName the other one of ours.
const schedulerName, controllersName = "hekla-scheduler", "hekla-controllers"

// seen takes in a change.
func (w *writes) seen(before, now *object) {
	switch {
	case now == nil && before.pod != nil && before.pod.Spec.NodeName == "":
		w.deleted = time.Now()
	case now != nil && now.pod != nil:
		if plan := planOf(now, schedulingv1beta1.PromiseRecordKey); plan != "" {
			w.plans[plan] = true
		}
	}
}

// planOf is the ID of the plan that a record on a pod names, "" if there is none.
func planOf(o *object, key string) string {
	var record struct {
		Plan string `json:"plan"`
	}
	_ = json.Unmarshal([]byte(o.GetAnnotations()[key]), &record) // what cannot be read names none
	return record.Plan
}

// wrote looks at a write that has succeeded.
func (w *writes) wrote(c *call) {
	p, from := placeOf(c.request.URL.Path), c.from
	if !isOurs(from) {
		return
	}
	if c.isLease() {
		if from.program == schedulerName {
			w.elected(from, c.request.URL.Path)
		}
		return
	}
	if from.program == schedulerName && w.leader != nil && w.leader != from && c.sent.After(w.leads) {
		w.driver.rules.violate("%s writes %s, and %s leads since %s", from, c.request.URL.Path, w.leader, time.Since(w.leads).Round(time.Millisecond))
	}
	isEviction := p.Subresource == "eviction" || p.Subresource == "" && c.request.Method == http.MethodDelete && p.Name != ""
	if p.Resource != "pods" || !isEviction || c.request.URL.Query().Get("dryRun") != "" {
		return
	}
	o := w.driver.observer.get(pods, p.Namespace, p.Name)
	if o == nil {
		return
	}
	if !bytes.Contains(c.body, []byte(o.GetUID())) {
		w.driver.rules.violate("%s deletes or evicts pod %s by its name and not by its UID", from, o.id())
	}
	plan := planOf(o, schedulingv1beta1.EvictionRecordKey)
	if from.program == schedulerName && plan != "" && !w.plans[plan] && time.Since(w.deleted) > unseen {
		w.driver.rules.violate("%s evicts pod %s for plan %s, which is recorded on no pod", from, o.id(), plan)
	}
}

// read looks at a request that only reads. A list with resourceVersion=0 comes from the cache of an API server, which
// may be minutes behind.
func (w *writes) read(c *call) {
	if c.from.program == schedulerName && c.request.Method == http.MethodGet && c.request.URL.Query().Get("resourceVersion") == "0" {
		w.driver.rules.violate("%s lists %s as of any time, and a scheduler must not begin with an old state", c.from, c.request.URL.Path)
	}
}

// elected notes who leads after a process has written the Lease: only the leader writes it.
func (w *writes) elected(by *incarnation, path string) {
	r, err := http.NewRequest(http.MethodGet, "http://hekla.test"+path, nil)
	must(err == nil, "a request for the Lease")
	r.Header.Set("Accept", jsonType)
	lease := unstructured.Unstructured{}
	if lease.UnmarshalJSON(w.driver.handle("admin", r, nil).Body) != nil {
		return
	}
	switch holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity"); {
	case holder == "":
		w.leader = nil
	case w.leader != by:
		if w.leader != nil {
			w.driver.contests.tookOver(w.leader)
		}
		w.leader, w.leads = by, time.Now()
	}
}
