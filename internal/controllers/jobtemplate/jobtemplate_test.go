package jobtemplate

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

// from is a Job in the namespace work that says where it comes from.
func from(origin string) *batch.Job {
	job := &batch.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "sim"}}
	if origin != "" {
		job.Annotations = map[string]string{flowapi.CreatedByJobTemplateKey: origin}
	}
	return job
}

// woken are the templates that events wake, once what happens has settled.
func woken(t *testing.T, happens func(queue)) string {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	happens(q)
	if q.Len() > 0 {
		t.Errorf("%d templates are woken at once", q.Len())
	}
	time.Sleep(2 * jobEventsSettle)
	var names []string
	for q.Len() > 0 {
		request, _ := q.Get()
		names = append(names, request.String())
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestAJobWakesTheTemplateThatItWasMadeFrom(t *testing.T) {
	handler := jobEvents()
	for name, test := range map[string]struct {
		happens func(queue)
		want    string
	}{
		"that comes": {func(q queue) { handler.Create(t.Context(), event.CreateEvent{Object: from("work.train")}, q) }, "work/train"},
		"that goes":  {func(q queue) { handler.Delete(t.Context(), event.DeleteEvent{Object: from("work.train")}, q) }, "work/train"},
		"whose template has dots in its name": {func(q queue) {
			handler.Create(t.Context(), event.CreateEvent{Object: from("work.train.v1")}, q)
		}, "work/train.v1"},
		"that comes from nowhere": {func(q queue) { handler.Create(t.Context(), event.CreateEvent{Object: from("")}, q) }, ""},
		"that says it is from another namespace": {func(q queue) {
			handler.Create(t.Context(), event.CreateEvent{Object: from("play.train")}, q)
		}, ""},
		"that only changes": {func(q queue) {
			after := from("work.train")
			after.Status.Running = 1
			handler.Update(t.Context(), event.UpdateEvent{ObjectOld: from("work.train"), ObjectNew: after}, q)
		}, ""},
		"that says something else now": {func(q queue) {
			handler.Update(t.Context(), event.UpdateEvent{ObjectOld: from("work.train"), ObjectNew: from("work.test")}, q)
		}, "work/test work/train"},
		"with hundreds like it": {func(q queue) {
			for range 300 {
				handler.Create(t.Context(), event.CreateEvent{Object: from("work.train")}, q)
			}
		}, "work/train"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := woken(t, test.happens); got != test.want {
				t.Errorf("woken are %q, want %q", got, test.want)
			}
		})
	}
}
