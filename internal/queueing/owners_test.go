package queueing

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// known are owners by name, each with its own. What is not among them may not be read.
type known map[string]*metav1.OwnerReference

func (k known) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	above, is := k[key.Name]
	if !is {
		return apierrors.NewForbidden(schema.GroupResource{}, key.Name, nil)
	}
	object.SetUID(types.UID(key.Name))
	if above != nil {
		object.SetOwnerReferences([]metav1.OwnerReference{*above})
	}
	return nil
}

func (k known) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func owner(version, kind, name string) *metav1.OwnerReference {
	isController := true
	return &metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: types.UID(name), Controller: &isController}
}

func TestOwnersAreFollowedToTheTop(t *testing.T) {
	finder := NewOwnerFinder(known{
		"jobset": owner("trainer.kubeflow.org/v1alpha1", "TrainJob", "trainjob"), "trainjob": nil,
		"task": owner("example.org/v1", "Graph", "graph"), "graph": owner("workload.codeflare.dev/v1beta2", "AppWrapper", "wrapper"),
		"mine": nil,
	})
	external := []schema.GroupVersionKind{{Group: "example.org", Version: "v1", Kind: "Mine"}}
	for name, c := range map[string]struct {
		owner *metav1.OwnerReference
		want  string
	}{
		"no owner":               {nil, ""},
		"a CronJob":              {owner("batch/v1", "CronJob", "nightly"), ""},
		"a kind of users":        {owner("example.org/v1", "Other", "other"), ""},
		"a JobSet of a TrainJob": {owner("jobset.x-k8s.io/v1alpha2", "JobSet", "jobset"), "trainjob"},
		"one that is not read":   {owner("ray.io/v1", "RayJob", "ray"), "ray"},
		"a task of a graph":      {owner("example.org/v1", "Task", "task"), "wrapper"},
		"an external kind":       {owner("example.org/v1", "Mine", "mine"), "mine"},
		"the kind's other form":  {owner("example.org/v2", "Mine", "mine"), ""},
	} {
		job := &metav1.ObjectMeta{Namespace: "team", Name: "job"}
		if c.owner != nil {
			job.OwnerReferences = []metav1.OwnerReference{*c.owner}
		}
		for range 2 { // the second time from memory
			top, err := finder.Top(t.Context(), job, external)
			got := ""
			if top != nil {
				got = top.Name
			}
			if err != nil || got != c.want {
				t.Errorf("%s: the top is %q, %v; want %q", name, got, err, c.want)
			}
		}
	}
}

// answering gives one answer to each question.
type answering struct {
	client.Reader
	err error
}

func (a answering) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.SetUID(types.UID(key.Name))
	return a.err
}

func TestAnOwnerIsReadIfItIsStillThatOwner(t *testing.T) {
	resource := schema.GroupResource{Resource: "jobsets"}
	another := owner("jobset.x-k8s.io/v1alpha2", "JobSet", "a")
	another.UID = "earlier"
	for name, test := range map[string]struct {
		owner                     *metav1.OwnerReference
		answer                    error
		isThere, isUnreadable, ok bool
	}{
		"it is there":            {owner("jobset.x-k8s.io/v1alpha2", "JobSet", "a"), nil, true, false, true},
		"it is gone":             {owner("jobset.x-k8s.io/v1alpha2", "JobSet", "a"), apierrors.NewNotFound(resource, "a"), false, false, true},
		"another has its name":   {another, nil, false, false, true},
		"it may not be read":     {owner("jobset.x-k8s.io/v1alpha2", "JobSet", "a"), apierrors.NewForbidden(resource, "a", nil), false, true, false},
		"its kind is not known":  {owner("jobset.x-k8s.io/v1alpha2", "JobSet", "a"), &meta.NoKindMatchError{}, false, true, false},
		"the server is too busy": {owner("jobset.x-k8s.io/v1alpha2", "JobSet", "a"), apierrors.NewTooManyRequests("", 1), false, false, false},
	} {
		object, err := ReadOwner(t.Context(), answering{err: test.answer}, "team", test.owner)
		if (object != nil) != test.isThere || (err == nil) != test.ok || IsUnreadable(err) != test.isUnreadable {
			t.Errorf("%s: it is there: %t, it cannot be read: %t, error %v", name, object != nil, IsUnreadable(err), err)
		}
	}
}
