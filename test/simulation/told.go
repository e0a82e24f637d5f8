package simulation

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// told is what a process was told of the quotas of ClusterQueues, by lists and watches. What it decides it decides by
// that.
type told struct {
	nominal map[string]int64 // by ClusterQueue
	sums    []sumTold        // what they were together, in the order of time
}

type sumTold struct {
	from time.Time
	sum  int64
}

// isOfQuotas reports whether the answers to a request tell of all ClusterQueues.
func isOfQuotas(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == clusterQueues
}

// listed takes in the answer to a list.
func (t *told) listed(body []byte) {
	var list struct {
		Items []map[string]any `json:"items"`
	}
	if json.Unmarshal(body, &list) != nil {
		return
	}
	t.nominal = map[string]int64{}
	for _, item := range list.Items {
		t.note(item)
	}
	t.add()
}

// watched takes in an event of a watch.
func (t *told) watched(frame []byte) {
	var event struct {
		Type   string         `json:"type"`
		Object map[string]any `json:"object"`
	}
	if json.Unmarshal(frame, &event) != nil {
		return
	}
	switch event.Type {
	case "ADDED", "MODIFIED":
		t.note(event.Object)
	case "DELETED":
		delete(t.nominal, (&unstructured.Unstructured{Object: event.Object}).GetName())
	default:
		return
	}
	t.add()
}

func (t *told) note(item map[string]any) {
	if t.nominal == nil {
		t.nominal = map[string]int64{}
	}
	o := &object{Unstructured: unstructured.Unstructured{Object: item}}
	if !strings.HasPrefix(o.GetKind(), "Partial") {
		t.nominal[o.GetName()] = nominal(o)
	}
}

func (t *told) add() {
	sum := int64(0)
	for _, amount := range t.nominal {
		sum += amount
	}
	t.sums = append(t.sums, sumTold{time.Now(), sum})
}

// most is the largest sum that the process was told from a second on in which it decided; false if it was not told of
// any. What is written late is added to what was decided later, and written before, by what the process was told then.
func (t *told) most(second time.Time) (most int64, ok bool) {
	second = second.Truncate(time.Second)
	for i, s := range t.sums {
		if isOver := i+1 < len(t.sums) && !t.sums[i+1].from.After(second); !isOver {
			most, ok = max(most, s.sum), true
		}
	}
	return most, ok
}
