package differential

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// outside is an extender, which is served when the first scenario has one. It has no memory: what it says follows from
// objects, of which the scheduler hears by itself. Of a pod that is to be placed it looks only at what all pods of its
// shape have in common.
var outside = sync.OnceValue(func() string {
	mux := http.NewServeMux()
	mux.HandleFunc("/predicate", func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Task struct {
				Resreq struct{ MilliCPU float64 }
			} `json:"task"`
			Node struct{ Node *corev1.Node } `json:"node"`
		}
		said := ""
		if read(w, r, &asked) && asked.Task.Resreq.MilliCPU > 1000 && asked.Node.Node.Labels["zone"] == "b" {
			said = "zone b is not for large pods"
		}
		write(w, map[string]string{"errorMessage": said})
	})
	mux.HandleFunc("/victims", func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Evictees []struct {
				UID string
				Pod *corev1.Pod
			} `json:"evictees"`
		}
		victims := []map[string]string{}
		if read(w, r, &asked) {
			for _, v := range asked.Evictees {
				if v.Pod == nil || v.Pod.Labels["app"] != "z" {
					victims = append(victims, map[string]string{"UID": v.UID})
				}
			}
		}
		write(w, map[string]any{"status": 1, "victims": victims})
	})
	return httptest.NewServer(mux).URL // it ends with the process
})

func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

func write(w http.ResponseWriter, answer any) { _ = json.NewEncoder(w).Encode(answer) } // who asked may be gone
