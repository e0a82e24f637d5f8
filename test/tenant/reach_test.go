package tenant

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// What belongs to the cluster or to the programs is not the tenant's to write, and what is in another namespace not even to read.
func TestTheRolesGiveATenantNothingOutsideOfTheNamespace(t *testing.T) {
	tenant := tenantOf(t, "team-reach")
	tenantOf(t, "team-beside")
	group := create(t, tenant, "team-reach", everyWayToAQueue("default")["a PodGroup"])
	status := client.RawPatch(types.MergePatchType, []byte(`{"status": {"phase": "Inqueue"}}`))
	beside := func(text string) error {
		return tenant.Create(apitest.Context(t), apitest.Object(t, "team-beside", text), client.DryRunAll)
	}
	ways := everyWayToAQueue("default")
	for what, err := range map[string]error{
		"a Queue":                         tenant.Create(apitest.Context(t), apitest.Object(t, "", queue("mine", "", "{}")), client.DryRunAll),
		"the state of a Queue":            tenant.Status().Patch(apitest.Context(t), apitest.Object(t, "", queue("default", "", "{}")), client.RawPatch(types.MergePatchType, []byte(`{"status": {"state": "Closed"}}`)), &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}}),
		"a HyperNode":                     tenant.Create(apitest.Context(t), apitest.Object(t, "", "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {name: h}\nspec: {tier: 1, members: [{type: Node, selector: {exactMatch: {name: n}}}]}"), client.DryRunAll),
		"the phase of one's own PodGroup": tenant.Status().Patch(apitest.Context(t), group, status),
		"a Job beside":                    beside(ways["a Job"]),
		"a CronJob beside":                beside(ways["a CronJob"]),
		"a JobFlow beside":                beside(ways["a JobFlow"]),
		"a PodGroup beside":               beside(ways["a PodGroup"]),
		"the Jobs beside":                 tenant.List(apitest.Context(t), &batch.JobList{}, client.InNamespace("team-beside")),
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

// The controllers write Secrets, ConfigMaps and Services with their own rights. A Job whose plugins' objects are called as something that is
// there already does not change that.
func TestAJobChangesNoSecretThatIsNotItsOwn(t *testing.T) {
	tenant := tenantOf(t, "team-secrets")
	foreign := create(t, admin, "team-secrets", "apiVersion: v1\nkind: Secret\nmetadata: {name: thief-ssh}\nstringData: {password: kept}")
	job := create(t, tenant, "team-secrets", gang("thief", "plugins: {ssh: []}"))
	group := &scheduling.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team-secrets", Name: "thief-" + string(job.GetUID())}}
	apitest.Eventually(t, func(ctx context.Context) error { // as the scheduler admits it
		return admin.Status().Patch(ctx, group, client.RawPatch(types.MergePatchType, []byte(`{"status": {"phase": "Inqueue"}}`)))
	})
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
