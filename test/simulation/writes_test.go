package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

func TestTheRulesSeeWritesThatMustNotBe(t *testing.T) {
	const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	lease := func(holder string) string {
		return `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"hekla-scheduler"},"spec":{"holderIdentity":"` + holder + `"}}`
	}
	const body = `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"},"deleteOptions":{"preconditions":{"uid":"%s"}}}`
	evict := func(r *rogue, uid string) error {
		_, err := r.send("POST", "/api/v1/namespaces/a/pods/p/eviction", jsonType, fmt.Sprintf(body, uid))
		return err
	}
	victim := func(r *rogue, plan string) (uid string, err error) {
		if _, err := r.job(); err != nil {
			return "", err
		}
		return r.send("PATCH", "/api/v1/namespaces/a/pods/p", mergeType, `{"metadata":{"annotations":{"scheduling.hekla.sh/eviction":"{\"plan\":\"`+plan+`\"}"}}}`)
	}
	for _, c := range []struct {
		what string
		does func(r *rogue, copy int) error
		want string
	}{
		{"a pod is deleted by its name", func(r *rogue, copy int) error {
			if copy > 1 {
				return nil
			}
			if _, err := r.job(); err != nil {
				return err
			}
			_, err := r.send("DELETE", "/api/v1/namespaces/a/pods/p", jsonType, "")
			return err
		}, "by its name and not by its UID"},
		{"a pod is evicted for a plan that is not recorded", func(r *rogue, copy int) error {
			if copy > 1 {
				return nil
			}
			uid, err := victim(r, "x")
			if err != nil {
				return err
			}
			return evict(r, uid)
		}, "for plan x, which is recorded on no pod"},
		{"a pod is evicted for a plan that is recorded", func(r *rogue, copy int) error {
			if copy > 1 {
				return nil
			}
			uid, err := victim(r, "x")
			if err != nil {
				return err
			}
			if _, err := r.send("POST", "/api/v1/namespaces/a/pods", jsonType, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"q","annotations":{
				"scheduling.hekla.sh/promise":"{\"plan\":\"x\"}"}},"spec":`+fmt.Sprintf(template, "1")+`}`); err != nil {
				return err
			}
			return evict(r, uid)
		}, ""},
		{"a scheduler lists what may be old", func(r *rogue, _ int) error {
			_, err := r.send("GET", "/api/v1/pods?resourceVersion=0", jsonType, "")
			return err
		}, "must not begin with an old state"},
		{"a scheduler lists what is there now", func(r *rogue, _ int) error {
			_, err := r.send("GET", "/api/v1/pods", jsonType, "")
			return err
		}, ""},
		{"a scheduler writes while another one leads", func(r *rogue, copy int) error {
			if copy > 1 {
				time.Sleep(time.Second)
				_, err := r.send("PATCH", leases+"/hekla-scheduler", mergeType, lease("second"))
				return err
			}
			if _, err := r.send("POST", leases, jsonType, lease("first")); err != nil {
				return err
			}
			time.Sleep(2 * time.Second)
			_, err := r.send("POST", "/api/v1/namespaces/a/configmaps", jsonType, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`)
			return err
		}, "leads since"},
	} {
		t.Run(c.what, func(t *testing.T) {
			var problems []error
			started := 0
			var mutex sync.Mutex
			programs := []Program{{Name: schedulerName, HasCopies: true, Start: func(ctx context.Context, connection *rest.Config, _ logr.Logger) error {
				mutex.Lock()
				started++
				number := started
				mutex.Unlock()
				err := c.does(&rogue{ctx, connection}, number)
				mutex.Lock()
				problems = append(problems, err)
				mutex.Unlock()
				<-ctx.Done()
				return ctx.Err()
			}}}
			result := Run(t, &Plan{Seed: 3, Steps: 60, Copies: 2, isCut: true}, programs)
			if err := errors.Join(problems...); err != nil && len(result.Violations) == 0 { // one ends the run
				t.Fatal(err)
			}
			if got := strings.Join(result.Violations, "\n"); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("the violations are %q, want %q", got, c.want)
			}
		})
	}
}
