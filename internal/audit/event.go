package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"time"
)

// request is a line of the log, as audit.k8s.io/v1 has it: what is read of it.
type request struct {
	Stage  string `json:"stage"`
	Verb   string `json:"verb"`
	User   user   `json:"user"`
	Object struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestObject  json.RawMessage `json:"requestObject"`
	ResponseObject json.RawMessage `json:"responseObject"`
	Arrived        time.Time       `json:"requestReceivedTimestamp"`
	Answered       time.Time       `json:"stageTimestamp"`
}

type user struct {
	Name string `json:"username"`
}

// isRead reports whether a line tells of a request that changes nothing, or has not been answered yet, without decoding
// it. In doubt it is decoded.
func isRead(line []byte) bool {
	for _, verb := range [...]string{`"verb":"get"`, `"verb":"list"`, `"verb":"watch"`} {
		if i := bytes.Index(line[:min(len(line), 600)], []byte(verb)); i >= 0 {
			return true
		}
	}
	return false
}

// concerns reports whether a request is one that succeeded and that rules look at.
func (r *request) concerns() bool {
	if r.Stage != "ResponseComplete" || r.Response.Code < 200 || r.Response.Code >= 300 {
		return false
	}
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return false
	}
	switch k := kindOf(r.Object.Group, r.Object.Resource); k {
	case nothing:
		return false
	case aPodGroup, aQueue, aClusterQueue, aCohort:
		return r.Object.Subresource == "" // their specs count
	}
	return true
}

// kind is what an object is to the rules.
type kind uint8

const (
	nothing kind = iota
	aPod
	aNode
	aPodGroup // of Volcano
	aQueue
	aBudget
	aClusterQueue
	aCohort
	aWorkload
	aSetting // that decides with others where Workloads are admitted
)

var kinds = map[string]kind{
	"/pods": aPod, "/nodes": aNode, "policy/poddisruptionbudgets": aBudget,
	"scheduling.volcano.sh/podgroups": aPodGroup, "scheduling.volcano.sh/queues": aQueue,
	"kueue.x-k8s.io/clusterqueues": aClusterQueue, "kueue.x-k8s.io/cohorts": aCohort, "kueue.x-k8s.io/workloads": aWorkload,
	"kueue.x-k8s.io/localqueues": aSetting, "kueue.x-k8s.io/resourceflavors": aSetting, "kueue.x-k8s.io/topologies": aSetting, "kueue.x-k8s.io/admissionchecks": aSetting,
}

func kindOf(group, resource string) kind { return kinds[group+"/"+resource] }

// key names an object of one kind.
type key struct{ namespace, name string }

func (k key) String() string { return strings.TrimPrefix(k.namespace+"/"+k.name, "/") }

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}
