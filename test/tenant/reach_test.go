package tenant

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hekla.sh/hekla/test/apitest"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// What belongs to the cluster or to the programs is not the tenant's to write, and what is in another namespace not
// even to read.
func TestTheRolesGiveATenantNothingOutsideOfTheNamespace(t *testing.T) {
	tenant := tenantOf(t, "team-reach")
	tenantOf(t, "team-other")
	group := create(t, tenant, "team-reach", everyWayToAQueue("default")["a PodGroup"])
	status := client.RawPatch(types.MergePatchType, []byte(`{"status": {"phase": "Inqueue"}}`))
	other := func(text string) error {
		return tenant.Create(apitest.Context(t), apitest.Object(t, "team-other", text), client.DryRunAll)
	}
	ways := everyWayToAQueue("default")
	for what, err := range map[string]error{
		"a Queue":                         tenant.Create(apitest.Context(t), apitest.Object(t, "", queue("mine", "", "{}")), client.DryRunAll),
		"the state of a Queue":            tenant.Status().Patch(apitest.Context(t), apitest.Object(t, "", queue("default", "", "{}")), client.RawPatch(types.MergePatchType, []byte(`{"status": {"state": "Closed"}}`)), &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}}),
		"a HyperNode":                     tenant.Create(apitest.Context(t), apitest.Object(t, "", "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {name: h}\nspec: {tier: 1, members: [{type: Node, selector: {exactMatch: {name: n}}}]}"), client.DryRunAll),
		"the phase of one's own PodGroup": tenant.Status().Patch(apitest.Context(t), group, status),
		"a Job of another team":           other(ways["a Job"]),
		"a CronJob of another team":       other(ways["a CronJob"]),
		"a JobFlow of another team":       other(ways["a JobFlow"]),
		"a PodGroup of another team":      other(ways["a PodGroup"]),
		"the Jobs of another team":        tenant.List(apitest.Context(t), &batch.JobList{}, client.InNamespace("team-other")),
		"one's own Commands":              tenant.List(apitest.Context(t), &bus.CommandList{}, client.InNamespace("team-reach")),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A Command acts on what lies in its own namespace, whatever UID it names.
func TestACommandReachesNoJobOfAnotherNamespace(t *testing.T) {
	victim, tenant := tenantOf(t, "team-victim"), tenantOf(t, "team-commander")
	stored := &batch.Job{}
	create(t, victim, "team-victim", gang("train", ""))
	create(t, tenant, "team-commander", gang("train", ""))
	if err := admin.Get(apitest.Context(t), client.ObjectKey{Namespace: "team-victim", Name: "train"}, stored); err != nil {
		t.Fatal(err)
	}
	for _, uid := range []types.UID{stored.UID, ""} {
		command := &bus.Command{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-commander", GenerateName: "abort-"}, Action: string(bus.AbortJobAction),
			TargetObject: metav1.NewControllerRef(stored, batch.GroupVersion.WithKind("Job")),
		}
		command.TargetObject.UID = uid
		if err := tenant.Create(apitest.Context(t), command); err != nil {
			t.Fatal(err)
		}
		apitest.Eventually(t, func(ctx context.Context) error {
			if err := admin.Get(ctx, client.ObjectKeyFromObject(command), &bus.Command{}); !apierrors.IsNotFound(err) {
				return errors.Join(err, fmt.Errorf("Command %s is still there", command.Name))
			}
			return nil
		})
	}
	own := &batch.Job{}
	apitest.Eventually(t, func(ctx context.Context) error { // the one without a UID was for this one
		if err := admin.Get(ctx, client.ObjectKey{Namespace: "team-commander", Name: "train"}, own); err != nil {
			return err
		}
		if phase := own.Status.State.Phase; phase != batch.Aborting && phase != batch.Aborted {
			return fmt.Errorf("the tenant's own Job is %q", phase)
		}
		return nil
	})
	if err := admin.Get(apitest.Context(t), client.ObjectKeyFromObject(stored), stored); err != nil {
		t.Fatal(err)
	}
	if phase := stored.Status.State.Phase; phase == batch.Aborting || phase == batch.Aborted {
		t.Errorf("the Job of another namespace is %q", phase)
	}
}

// The controllers write Secrets, ConfigMaps and Services with their own rights. A Job whose plugins' objects are called
// as something that is there already does not change that.
func TestAJobChangesNoSecretThatIsNotItsOwn(t *testing.T) {
	tenant := tenantOf(t, "team-secrets")
	allowSSH(t, admin, "team-secrets")
	foreign := create(t, admin, "team-secrets", "apiVersion: v1\nkind: Secret\nmetadata: {name: thief-ssh}\nstringData: {password: kept}")
	job := create(t, tenant, "team-secrets", gang("thief", "plugins: {ssh: []}"))
	admit(t, job)
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, events := &corev1.PodList{}, &corev1.EventList{}
		if err := errors.Join(admin.List(ctx, pods, client.InNamespace("team-secrets")), admin.List(ctx, events, client.InNamespace("team-secrets"))); err != nil {
			return err
		}
		for i := range events.Items {
			if strings.Contains(events.Items[i].Message, "thief-ssh") {
				return nil
			}
		}
		if len(pods.Items) == 0 {
			return errors.New("the plugin has not been at work yet")
		}
		return nil
	})
	kept := &corev1.Secret{}
	if err := admin.Get(apitest.Context(t), client.ObjectKeyFromObject(foreign), kept); err != nil {
		t.Fatal(err)
	}
	if string(kept.Data["password"]) != "kept" || len(kept.Data) != 1 {
		t.Errorf("the Secret holds %d entries", len(kept.Data))
	}
}

// The controllers reach Secrets only where an administrator, or who administers the namespace, has allowed it.
func TestTheControllersReachSecretsOnlyWhereTheyMay(t *testing.T) {
	tenant := tenantOf(t, "team-ssh")
	for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
		if mayReachSecrets(t, verb, "team-ssh") {
			t.Errorf("the controllers may %s Secrets", verb)
		}
	}
	first := create(t, tenant, "team-ssh", gang("first", "plugins: {ssh: []}"))
	admit(t, first)
	awaitEvent(t, first, "kubectl apply -f installer/ssh.yaml")
	apitest.Eventually(t, func(ctx context.Context) error {
		job := &batch.Job{}
		err := admin.Get(ctx, client.ObjectKeyFromObject(first), job)
		if err == nil && job.Status.State.Reason != batch.PluginErrorReason {
			err = fmt.Errorf("its reason is %q", job.Status.State.Reason)
		}
		return err
	})
	if pods := podsOf(t, "team-ssh"); len(pods) > 0 {
		t.Errorf("%d pods have no keys", len(pods))
	}
	// Without the right a Job ends as any other.
	if err := admin.Delete(apitest.Context(t), first); err != nil {
		t.Fatal(err)
	}
	aborted := create(t, tenant, "team-ssh", gang("aborted", "plugins: {ssh: []}"))
	admit(t, aborted)
	awaitEvent(t, aborted, "kubectl apply -f installer/ssh.yaml")
	command := &bus.Command{ObjectMeta: metav1.ObjectMeta{Namespace: "team-ssh", Name: "abort"}, Action: string(bus.AbortJobAction),
		TargetObject: &metav1.OwnerReference{APIVersion: batch.GroupVersion.String(), Kind: "Job", Name: "aborted", UID: aborted.GetUID()}}
	if err := tenant.Create(apitest.Context(t), command); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, func(ctx context.Context) error {
		job := &batch.Job{}
		err := admin.Get(ctx, client.ObjectKeyFromObject(aborted), job)
		if err == nil && job.Status.State.Phase != batch.Aborted {
			err = fmt.Errorf("it is %q", job.Status.State.Phase)
		}
		return err
	})

	// A RoleBinding allows it in one namespace, and the Job starts by itself.
	second := create(t, tenant, "team-ssh", gang("second", "plugins: {mpi: [\"--master=default0\", \"--worker=default0\"], ssh: []}"))
	admit(t, second)
	awaitEvent(t, second, "kubectl apply -f installer/ssh.yaml")
	allowSSH(t, userOf(t, "team-ssh", "owner-of-team-ssh", "admin"), "team-ssh")
	apitest.Eventually(t, func(ctx context.Context) error {
		if pods := podsOf(t, "team-ssh"); len(pods) != 2 {
			return fmt.Errorf("%d pods", len(pods))
		}
		return nil
	})
	if mayReachSecrets(t, "get", "team-other") || mayReachSecrets(t, "get", system) {
		t.Error("the right reaches beyond the namespace")
	}
}

// allowSSH gives the controllers the right to the Secrets of a namespace, as this user.
func allowSSH(t *testing.T, as client.Client, namespace string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "volcano-controllers-ssh"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "volcano-controllers-ssh"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: system, Name: "volcano-controllers"}},
	}
	apitest.Eventually(t, func(ctx context.Context) error { // API servers learn of the rights of the user a moment later
		return client.IgnoreAlreadyExists(as.Create(ctx, binding))
	})
	t.Cleanup(func() { _ = admin.Delete(context.Background(), binding) })
}

// mayReachSecrets asks whether the controllers have a right to the Secrets of a namespace.
func mayReachSecrets(t *testing.T, verb, namespace string) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:" + system + ":volcano-controllers",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + system, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Resource: "secrets", Namespace: namespace},
	}}
	if err := admin.Create(apitest.Context(t), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// admit admits a Job as the scheduler would.
func admit(t *testing.T, job client.Object) {
	t.Helper()
	group := &scheduling.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: job.GetNamespace(), Name: job.GetName() + "-" + string(job.GetUID())}}
	apitest.Eventually(t, func(ctx context.Context) error {
		return admin.Status().Patch(ctx, group, client.RawPatch(types.MergePatchType, []byte(`{"status": {"phase": "Inqueue"}}`)))
	})
}

// podsOf returns the pods of a namespace.
func podsOf(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	if err := admin.List(apitest.Context(t), pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}
