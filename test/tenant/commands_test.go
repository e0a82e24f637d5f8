package tenant

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	queuecontroller "hekla.sh/hekla/internal/controllers/queue"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// openQueue makes a queue and waits until it is open.
func openQueue(t *testing.T, name, metadata string) *scheduling.Queue {
	t.Helper()
	create(t, admin, "", queue(name, metadata, "{}"))
	return awaitState(t, name, scheduling.QueueStateOpen)
}

func awaitState(t *testing.T, name string, state scheduling.QueueState) *scheduling.Queue {
	t.Helper()
	stored := &scheduling.Queue{}
	apitest.Eventually(t, func(ctx context.Context) error {
		err := admin.Get(ctx, client.ObjectKey{Name: name}, stored)
		if err == nil && stored.Status.State != state {
			err = fmt.Errorf("queue %s is %q", name, stored.Status.State)
		}
		return err
	})
	return stored
}

// commandFor asks for a queue to be closed.
func commandFor(queue *scheduling.Queue, namespace string, uid types.UID) *bus.Command {
	command := &bus.Command{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "close-"}, Action: string(bus.CloseQueueAction),
		TargetObject: metav1.NewControllerRef(queue, scheduling.GroupVersion.WithKind("Queue")),
	}
	command.TargetObject.UID = uid
	return command
}

// thePolicyCounts waits until the controller trusts the policy about Commands, which is new.
func thePolicyCounts(t *testing.T) {
	t.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	name := client.ObjectKey{Name: queuecontroller.CommandPolicy}
	if err := errors.Join(admin.Get(apitest.Context(t), name, policy), admin.Get(apitest.Context(t), name, binding)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(policy.CreationTimestamp.Add(11 * time.Second)))
	time.Sleep(time.Until(binding.CreationTimestamp.Add(11 * time.Second)))
}

func TestATenantOpensAndClosesNoQueue(t *testing.T) {
	thePolicyCounts(t)
	target := openQueue(t, "commanded", "")
	for _, namespace := range []string{"default", "team-commands"} {
		tenant := tenantOf(t, namespace)
		for _, uid := range []types.UID{target.UID, ""} {
			err := tenant.Create(apitest.Context(t), commandFor(target, namespace, uid))
			expect(t, fmt.Sprintf("a Command in %s with the UID %q", namespace, uid), err, "ValidatingAdmissionPolicy 'volcano-")
		}
		err := tenant.Create(apitest.Context(t), commandFor(target, namespace, target.UID))
		if !apierrors.IsForbidden(err) && namespace == "default" {
			t.Errorf("a Command of somebody who may not update the queue: %v", err)
		}
	}
}

func TestWhoMayUpdateAQueueClosesItByACommand(t *testing.T) {
	thePolicyCounts(t)
	target, other := openQueue(t, "entitled", ""), openQueue(t, "not-entitled", "")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "updates-a-queue"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{scheduling.GroupName}, Resources: []string{"queues"}, ResourceNames: []string{target.Name}, Verbs: []string{"get", "update"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "tenant-of-default"}}}
	if err := errors.Join(admin.Create(apitest.Context(t), role), admin.Create(apitest.Context(t), binding)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = errors.Join(admin.Delete(context.Background(), role), admin.Delete(context.Background(), binding))
	})
	tenant := tenantOf(t, "default")
	apitest.Eventually(t, func(ctx context.Context) error {
		return tenant.Create(ctx, commandFor(target, "default", target.UID))
	})
	awaitState(t, target.Name, scheduling.QueueStateClosed)
	expect(t, "a queue that is another's", tenant.Create(apitest.Context(t), commandFor(other, "default", other.UID)),
		"user tenant-of-default may not update queue not-entitled, and so may not ask that it be opened or closed")
	expect(t, "a target without a UID", tenant.Create(apitest.Context(t), commandFor(target, "default", "")), "target.uid: must be that of the queue")
	awaitState(t, other.Name, scheduling.QueueStateOpen)
}

// Where nothing checks who the author of a Command is, none is followed.
func TestWithoutThePolicyNoCommandForAQueueIsFollowed(t *testing.T) {
	thePolicyCounts(t)
	target := openQueue(t, "unguarded", "")
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	if err := admin.Get(apitest.Context(t), client.ObjectKey{Name: queuecontroller.CommandPolicy}, binding); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(apitest.Context(t), binding); err != nil {
		t.Fatal(err)
	}
	again := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: binding.Name, Labels: binding.Labels}, Spec: binding.Spec}
	isBack := false
	bringBack := func(ctx context.Context) {
		if !isBack {
			isBack = true
			if err := admin.Create(ctx, again); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(func() { bringBack(context.Background()) })
	tenant := tenantOf(t, "default")
	var command *bus.Command
	apitest.Eventually(t, func(ctx context.Context) error { // API servers forget the policy a moment later
		command = commandFor(target, "default", target.UID)
		return tenant.Create(ctx, command)
	})
	awaitEvent(t, target, "it was not checked that its author may update the queue: ValidatingAdmissionPolicy volcano-queue-commands, or its binding, is not there")

	// One that was made before the policy came back is not followed either.
	bringBack(apitest.Context(t))
	late := commandFor(target, "default", target.UID)
	if err := admin.Create(apitest.Context(t), late); err != nil {
		t.Fatal(err)
	}
	awaitEvent(t, target, "is in force since")
	awaitState(t, target.Name, scheduling.QueueStateOpen)
}
