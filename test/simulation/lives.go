package simulation

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lives counts what the controllers of Kubernetes and ours did that no fault or move does by itself, so that a run
// shows that it happened.
type lives struct{ driver *driver }

// What lives counts, in addition to faults and moves.
const (
	namespaceEmptied = "namespace emptied"
	objectCollected  = "object collected"
	jobOfFlow        = "Job of a JobFlow"
	jobOfCronJob     = "Job of a CronJob"
	memberReplaced   = "pod of a group replaced"
)

// seen looks at a change.
func (l lives) seen(before, now *object) {
	switch {
	case now == nil && before.collection == namespaces:
		l.driver.count(namespaceEmptied)
	case now == nil && l.isLeftAlone(before):
		l.driver.count(objectCollected)
	case before == nil && now.collection == volcanoJobs:
		if ref := owner(now); ref != nil && ref.Kind == "JobFlow" {
			l.driver.count(jobOfFlow)
		} else if ref != nil && ref.Kind == "CronJob" {
			l.driver.count(jobOfCronJob)
		}
	}
}

// isLeftAlone reports whether all owners of an object are gone.
func (l lives) isLeftAlone(o *object) bool {
	for _, ref := range o.GetOwnerReferences() {
		if l.driver.observer.find(o.GetNamespace(), ref) != nil {
			return false
		}
	}
	return len(o.GetOwnerReferences()) > 0
}

// find returns the object that a reference of an object in a namespace names, nil if it is not there.
func (o *observer) find(namespace string, ref metav1.OwnerReference) *object {
	for _, collection := range observed {
		if !strings.HasPrefix(collection, "/apis/"+ref.APIVersion+"/") && !strings.HasPrefix(collection, "/api/"+ref.APIVersion+"/") {
			continue
		}
		for _, in := range []string{namespace, ""} {
			if found := o.get(collection, in, ref.Name); found != nil && found.GetUID() == ref.UID {
				return found
			}
		}
	}
	return nil
}
