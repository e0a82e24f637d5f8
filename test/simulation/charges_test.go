package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// rogue is a program that makes some requests and then does nothing.
type rogue struct {
	ctx        context.Context
	connection *rest.Config
}

// send sends a request, and returns the UID of the object in the answer.
func (r *rogue) send(method, path, contentType, body string) (string, error) {
	request, err := http.NewRequestWithContext(r.ctx, method, r.connection.Host+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", contentType)
	response, err := (&http.Client{Transport: r.connection.Transport}).Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return "", fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, answer)
	}
	o := unstructured.Unstructured{}
	if err := json.Unmarshal(answer, &o.Object); err != nil {
		return "", err
	}
	return string(o.GetUID()), nil
}

const (
	template = `{"restartPolicy":"Never","containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"%s"}}}]}`
	reserved = `{"type":"QuotaReserved","status":"True","reason":"QuotaReserved","message":"","lastTransitionTime":"%[1]s"},
		{"type":"Admitted","status":"True","reason":"Admitted","message":"","lastTransitionTime":"%[1]s"}`
)

// job makes a queued Job that runs, with a pod of one CPU on a node.
func (r *rogue) job() (uid string, err error) {
	uid, err = r.send("POST", "/apis/batch/v1/namespaces/a/jobs", jsonType, `{"apiVersion":"batch/v1","kind":"Job",
		"metadata":{"name":"j","labels":{"kueue.x-k8s.io/queue-name":"lq"}},"spec":{"template":{"spec":`+fmt.Sprintf(template, "1")+`}}}`)
	if err != nil {
		return "", err
	}
	_, err = r.send("POST", "/api/v1/namespaces/a/pods", jsonType, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","ownerReferences":[
		{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"`+uid+`","controller":true}]},"spec":`+fmt.Sprintf(template, "1")+`}`)
	if err != nil {
		return "", err
	}
	_, err = r.send("POST", "/api/v1/namespaces/a/pods/p/binding", jsonType, `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"p"},
		"target":{"apiVersion":"v1","kind":"Node","name":"base-0"}}`)
	return uid, err
}

// workload makes a Workload that is admitted with some CPUs.
func (r *rogue) workload(name, owner, cpu string) error {
	return r.workloadSince(name, owner, cpu, time.Now())
}

// workloadSince makes a Workload of which the condition says when it was decided to admit it.
func (r *rogue) workloadSince(name, owner, cpu string, decided time.Time) error {
	if _, err := r.send("POST", "/apis/kueue.x-k8s.io/v1beta2/namespaces/a/workloads", jsonType, `{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload",
		"metadata":{"name":"`+name+`","ownerReferences":[`+owner+`]},"spec":{"queueName":"lq","podSets":[{"name":"main","count":1,"template":{"spec":`+
		fmt.Sprintf(template, cpu)+`}}]}}`); err != nil {
		return err
	}
	_, err := r.send("PATCH", "/apis/kueue.x-k8s.io/v1beta2/namespaces/a/workloads/"+name+"/status", mergeType, `{"status":{"conditions":[`+fmt.Sprintf(reserved, decided.UTC().Format(time.RFC3339))+`],
		"admission":{"clusterQueue":"cq-a","podSetAssignments":[{"name":"main","count":1,"flavors":{"cpu":"default"},"resourceUsage":{"cpu":"`+cpu+`"}}]}}}`)
	return err
}

// giveUp says that the Workload w of the Job j has given up its only place, after so many pods of the Job have
// succeeded.
func (r *rogue) giveUp(succeeded int) error {
	uid, err := r.job()
	if err != nil {
		return err
	}
	if err := r.workload("w", ownerOf("batch/v1", "Job", "j", uid), "1"); err != nil {
		return err
	}
	if _, err := r.send("PATCH", "/apis/batch/v1/namespaces/a/jobs/j/status", mergeType, fmt.Sprintf(`{"status":{"succeeded":%d}}`, succeeded)); err != nil {
		return err
	}
	_, err = r.send("PATCH", "/apis/kueue.x-k8s.io/v1beta2/namespaces/a/workloads/w/status", mergeType, `{"status":{"reclaimablePods":[{"name":"main","count":1}]}}`)
	return err
}

// cutQuotas cuts the quotas to two CPUs together, and reads them before and after that. It returns when it began.
func (r *rogue) cutQuotas() (begin time.Time, err error) {
	begin = time.Now()
	if _, err := r.send("GET", clusterQueues, jsonType, ""); err != nil {
		return begin, err
	}
	time.Sleep(5 * time.Second)
	for _, tenant := range tenants {
		if _, err := r.send("PATCH", clusterQueues+"/cq-"+tenant, mergeType, `{"spec":{"resourceGroups":[{"coveredResources":["cpu"],"flavors":[
			{"name":"default","resources":[{"name":"cpu","nominalQuota":"1"}]}]}]}}`); err != nil {
			return begin, err
		}
	}
	_, err = r.send("GET", clusterQueues, jsonType, "")
	time.Sleep(time.Second) // conditions have whole seconds
	return begin, err
}

// pod makes a pod with a queue and three CPUs, which has a Workload or not, and is bound or not.
func (r *rogue) pod(isAdmitted, isBound bool) error {
	uid, err := r.send("POST", "/api/v1/namespaces/a/pods", jsonType, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"q","labels":{
		"kueue.x-k8s.io/queue-name":"lq"}},"spec":`+fmt.Sprintf(template, "3")+`}`)
	if err == nil && isAdmitted {
		err = r.workload("w", ownerOf("v1", "Pod", "q", uid), "3")
	}
	if err == nil && isBound {
		_, err = r.send("POST", "/api/v1/namespaces/a/pods/q/binding", jsonType, `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"q"},
			"target":{"apiVersion":"v1","kind":"Node","name":"base-0"}}`)
	}
	return err
}

// touchLate changes a pod, and again once no more may run under quota than there is: that is counted only
// when a pod has changed.
func (r *rogue) touchLate() error {
	for _, at := range []string{"now", "late"} {
		if _, err := r.send("PATCH", "/api/v1/namespaces/a/pods/q", mergeType, `{"metadata":{"annotations":{"touched":"`+at+`"}}}`); err != nil {
			return err
		}
		if at == "now" {
			time.Sleep(overQuotaFor + time.Minute)
		}
	}
	return nil
}

// claim makes a claim that has a device.
func (r *rogue) claim(name string) error {
	if _, err := r.send("POST", "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims", jsonType, `{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",
		"metadata":{"name":"`+name+`"},"spec":{"devices":{"requests":[{"name":"device","exactly":{"deviceClassName":"simulated"}}]}}}`); err != nil {
		return err
	}
	_, err := r.send("PATCH", "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/"+name+"/status", mergeType, `{"status":{"allocation":{"devices":{"results":[
		{"request":"device","driver":"simulation.hekla.sh","pool":"base-0","device":"device-0"}]}}}}`)
	return err
}

func ownerOf(apiVersion, kind, name, uid string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"controller":true}`, apiVersion, kind, name, uid)
}

func TestTheRulesSeeWhatRunsAndHoldsQuotaWithoutRight(t *testing.T) {
	const anyUID = "00000000-0000-0000-0000-000000000001"
	for _, c := range []struct {
		what string
		does func(*rogue) error
		want string
	}{
		{"a Job runs without a Workload", func(r *rogue) error {
			_, err := r.job()
			return err
		}, "pods of Job a/j run, and its Workload is not admitted"},
		{"a Job runs with less than its pods request", func(r *rogue) error {
			uid, err := r.job()
			if err != nil {
				return err
			}
			return r.workload("w", ownerOf("batch/v1", "Job", "j", uid), "500m")
		}, "pods of Job a/j request more than its Workload holds"},
		{"a Job runs as it is admitted", func(r *rogue) error {
			uid, err := r.job()
			if err != nil {
				return err
			}
			return r.workload("w", ownerOf("batch/v1", "Job", "j", uid), "1")
		}, ""},
		{"Workloads are admitted beyond the quotas", func(r *rogue) error {
			if err := r.workload("v", "", "1"); err != nil {
				return err
			}
			return r.workload("w", "", "100")
		}, "hold 101000m CPUs"},
		{"a Workload is admitted beside pods of a Job without one", func(r *rogue) error {
			uid, err := r.job()
			if err != nil {
				return err
			}
			if err := r.workload("w", ownerOf("batch/v1", "Job", "j", uid), "1"); err != nil {
				return err
			}
			if _, err := r.send("DELETE", "/apis/kueue.x-k8s.io/v1beta2/namespaces/a/workloads/w", jsonType, ""); err != nil {
				return err
			}
			return r.workload("v", "", "100")
		}, "pods of other queued Jobs run with 1000m (a/p)"},
		{"a Workload gives up a place that its Job needs", func(r *rogue) error { return r.giveUp(0) }, "keeps 0 places, and Job j needs 1"},
		{"a Workload gives up a place that its Job needs no more", func(r *rogue) error { return r.giveUp(1) }, "request more than its Workload holds"},
		{"a Workload is admitted on a place whose pod runs", func(r *rogue) error {
			if err := r.giveUp(1); err != nil {
				return err
			}
			if _, err := r.cutQuotas(); err != nil {
				return err
			}
			return r.workload("v", "", "2")
		}, "hold 3000m CPUs"},
		{"a Workload is admitted by one who was told that the quotas are cut", func(r *rogue) error {
			if _, err := r.cutQuotas(); err != nil {
				return err
			}
			return r.workload("w", "", "3")
		}, "hold 3000m CPUs"},
		{"a Workload is admitted that was decided before the quotas were cut", func(r *rogue) error {
			begin, err := r.cutQuotas()
			if err != nil {
				return err
			}
			return r.workloadSince("w", "", "3", begin)
		}, ""},
		{"a pod runs beyond the quotas", func(r *rogue) error {
			if _, err := r.cutQuotas(); err != nil {
				return err
			}
			if err := r.pod(false, true); err != nil {
				return err
			}
			return r.touchLate()
		}, "pods that request 3 CPUs run"},
		{"a pod waits that has no place in the quotas", func(r *rogue) error {
			if _, err := r.cutQuotas(); err != nil {
				return err
			}
			if err := r.pod(false, false); err != nil {
				return err
			}
			return r.touchLate()
		}, ""},
		{"a pod runs on that was admitted before the quotas were cut", func(r *rogue) error {
			if err := r.pod(true, true); err != nil {
				return err
			}
			if _, err := r.cutQuotas(); err != nil {
				return err
			}
			return r.touchLate()
		}, ""},
		{"a device is given out twice", func(r *rogue) error {
			if err := r.claim("c"); err != nil {
				return err
			}
			return r.claim("d")
		}, "device base-0/device-0 is of"},
		{"a Workload of a kind that no program starts is admitted", func(r *rogue) error {
			return r.workload("w", ownerOf("example.com/v1", "Flow", "w", anyUID), "1")
		}, "no program starts its job"},
		{"the Job of an operator is queued by itself", func(r *rogue) error {
			uid, err := r.send("POST", "/apis/batch/v1/namespaces/a/jobs", jsonType, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j",
				"ownerReferences":[`+ownerOf("jobset.x-k8s.io/v1alpha2", "JobSet", "s", anyUID)+`]},"spec":{"template":{"spec":`+fmt.Sprintf(template, "1")+`}}}`)
			if err != nil {
				return err
			}
			return r.workload("w", ownerOf("batch/v1", "Job", "j", uid), "1")
		}, "which an operator makes and starts"},
	} {
		t.Run(c.what, func(t *testing.T) {
			var problem error
			programs := []Program{{Name: "rogue", Start: func(ctx context.Context, connection *rest.Config, _ logr.Logger) error {
				problem = c.does(&rogue{ctx, connection})
				<-ctx.Done()
				return ctx.Err()
			}}}
			result := Run(t, &Plan{Seed: 3, Steps: 60, Copies: 1, isCut: true}, programs)
			if problem != nil && len(result.Violations) == 0 { // one ends the run
				t.Fatal(problem)
			}
			if got := strings.Join(result.Violations, "\n"); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("the violations are %q, want %q", got, c.want)
			}
		})
	}
}

// TestPlacesThatAreGivenUpAreOfAllThatAreQueued has a Workload of three pods of which two had ended when it was
// admitted again: it holds what the third one needs.
func TestPlacesThatAreGivenUpAreOfAllThatAreQueued(t *testing.T) {
	w := func(queued, admitted, givenUp int64) *object {
		named := func(count int64) map[string]any { return map[string]any{"name": "main", "count": count} }
		assigned := named(admitted)
		assigned["resourceUsage"] = map[string]any{"cpu": fmt.Sprint(admitted)}
		return &object{Unstructured: unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"podSets": []any{named(queued)}},
			"status": map[string]any{"reclaimablePods": []any{named(givenUp)},
				"admission": map[string]any{"podSetAssignments": []any{assigned}}},
		}}}
	}
	for _, c := range []struct{ queued, admitted, givenUp, want int64 }{{3, 3, 0, 3}, {3, 3, 2, 1}, {3, 1, 2, 1}, {3, 2, 2, 1}, {3, 1, 3, 0}} {
		if is := held(w(c.queued, c.admitted, c.givenUp)); is != 1000*c.want {
			t.Errorf("with %d of %d admitted and %d given up it holds %dm, want %d", c.admitted, c.queued, c.givenUp, is, c.want)
		}
	}
}
