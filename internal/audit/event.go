package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"hekla.sh/hekla/pkg/apis/bounds"
)

// request is a line of the log, as audit.k8s.io/v1 has it: what is read of it.
type request struct {
	Stage  string `json:"stage"`
	Verb   string `json:"verb"`
	URI    string `json:"requestURI"`
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
	return !r.isDryRun()
}

// isDryRun reports whether a request only asks what would happen. That of a deletion or an eviction may say so in its
// options.
func (r *request) isDryRun() bool {
	if strings.Contains(r.URI, "dryRun=") {
		return true
	}
	if !strings.HasPrefix(r.Verb, "delete") && r.Object.Subresource != "eviction" {
		return false
	}
	type options struct {
		DryRun []string `json:"dryRun"`
	}
	o := &struct {
		options
		DeleteOptions options `json:"deleteOptions"`
	}{}
	err := bounds.UnmarshalKubernetesJSON(r.RequestObject, o)
	return err == nil && len(o.DryRun)+len(o.DeleteOptions.DryRun) > 0 // what cannot be read is read again
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
