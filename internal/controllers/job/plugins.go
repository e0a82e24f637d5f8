package job

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/controllers/job/lifecycle"
	"hekla.sh/hekla/internal/jobplugins"
	"hekla.sh/hekla/pkg/apis/batch/builder"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// pluginKey is the prefix of the keys under which status.controlledResources names the plugins whose objects exist.
const pluginKey = "plugin-"

// pluginsOf returns the plugins of a defaulted and valid Job: Validate has told what is wrong with them.
func pluginsOf(job *batch.Job) jobplugins.Set {
	set, _ := jobplugins.New(job, builder.PodName)
	return set
}

// ensureResources makes the objects that the plugins of a defaulted and valid Job need, or brings them up to date, and
// notes the plugins in the Job's status. They are checked again only when the spec has changed. The controller does not
// watch them, because that needs the right to read every Secret of the cluster.
func (r *Reconciler) ensureResources(ctx context.Context, job *batch.Job) error {
	if len(job.Spec.Plugins) == 0 {
		return nil
	}
	set := pluginsOf(job)
	// Noted first, and each time, because created objects must be deleted later, even if the others cannot be created
	// or the status cannot be written.
	if job.Status.ControlledResources == nil {
		job.Status.ControlledResources = map[string]string{}
	}
	for _, plugin := range set.Names() {
		job.Status.ControlledResources[pluginKey+plugin] = plugin
	}
	name := client.ObjectKeyFromObject(job)
	if r.memory.equipped(name, job.UID) == job.Generation {
		return nil
	}
	for _, resource := range set.Resources() {
		if err := r.ensureResource(ctx, job, resource); err != nil {
			return r.naming(resource, r.withMissingRight(ctx, resource, err))
		}
	}
	r.memory.equip(name, job.UID, job.Generation)
	return nil
}

// ensureResource creates the object, or updates it if it is there and the Job's.
func (r *Reconciler) ensureResource(ctx context.Context, job *batch.Job, resource jobplugins.Resource) error {
	wanted, current := copyOf(resource.Object), copyOf(resource.Object)
	wanted.SetOwnerReferences([]metav1.OwnerReference{*builder.OwnerReference(job)})
	if err := resource.Update(wanted); err != nil {
		return err
	}
	if err := r.client.Create(ctx, wanted); !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(current), current); err != nil {
		return err
	}
	owner := metav1.GetControllerOf(current)
	switch {
	case owner == nil && resource.UsersOwnWillDo:
		return nil
	case owner == nil:
		return errors.New("it exists and has no owner; rename it, or the Job")
	case owner.UID != job.UID:
		return fmt.Errorf("it exists and belongs to %s %s with UID %s", owner.Kind, owner.Name, owner.UID)
	}
	updated := copyOf(current)
	if err := resource.Update(updated); err != nil {
		return err
	}
	if apiequality.Semantic.DeepEqual(current, updated) {
		return nil
	}
	return r.client.Patch(ctx, updated, client.MergeFrom(current))
}

// removeResources deletes what ensureResources made, if the Job is in a phase that has no use for it any more, and
// takes it out of the status. A Job that restarts keeps its objects.
func (r *Reconciler) removeResources(ctx context.Context, job *batch.Job) error {
	if phase := job.Status.State.Phase; phase != batch.Aborted && !lifecycle.IsFinal(phase) {
		return nil
	}
	noted := false
	for key := range job.Status.ControlledResources {
		noted = noted || strings.HasPrefix(key, pluginKey)
	}
	if !noted {
		return nil
	}
	r.memory.equip(client.ObjectKeyFromObject(job), job.UID, neverEquipped)
	for _, resource := range pluginsOf(job).Resources() {
		if err := r.removeResource(ctx, job, copyOf(resource.Object)); err != nil {
			return r.naming(resource, err)
		}
	}
	for key := range job.Status.ControlledResources {
		if strings.HasPrefix(key, pluginKey) {
			delete(job.Status.ControlledResources, key)
		}
	}
	return nil
}

// removeResource deletes the object if it is the Job's. A Secret for which the right is missing stays until the Job is
// deleted.
func (r *Reconciler) removeResource(ctx context.Context, job *batch.Job, object client.Object) error {
	err := r.live.Get(ctx, client.ObjectKeyFromObject(object), object)
	if _, isSecret := object.(*corev1.Secret); isSecret && apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil || !metav1.IsControlledBy(object, job) {
		return client.IgnoreNotFound(err)
	}
	uid := object.GetUID()
	err = r.client.Delete(ctx, object, client.Preconditions{UID: &uid})
	if apierrors.IsConflict(err) {
		return nil // it was replaced in the meantime, by another process
	}
	return client.IgnoreNotFound(err)
}

// secretsRight says what gives the right that the installer does not give by itself.
const secretsRight = "the controllers have no right to Secrets here, which the job plugin ssh needs: kubectl apply -f installer/ssh.yaml, " +
	"or set sshPlugin.namespaces in the values of the chart; a RoleBinding to the ClusterRole volcano-controllers-ssh gives it in one namespace"

// withMissingRight adds [secretsRight] to the refusal of a Secret, if that comes from an authorizer and not from
// admission, such as a ResourceQuota's or that of a namespace that ends. The two have the same type and differ in their
// words, so the API server is asked.
func (r *Reconciler) withMissingRight(ctx context.Context, resource jobplugins.Resource, err error) error {
	_, isSecret := resource.Object.(*corev1.Secret)
	if !isSecret || !apierrors.IsForbidden(err) {
		return err
	}
	for _, verb := range []string{"create", "get", "patch"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: resource.Object.GetNamespace(), Verb: verb, Resource: "secrets"}}}
		if r.client.Create(ctx, review) == nil && !review.Status.Allowed {
			return fmt.Errorf("%s (%w)", secretsRight, err)
		}
	}
	return err
}

// naming adds to an error which object it is about.
func (r *Reconciler) naming(resource jobplugins.Resource, cause error) error {
	kind, err := r.client.GroupVersionKindFor(resource.Object)
	named := client.ObjectKeyFromObject(resource.Object)
	return errors.Join(err, fmt.Errorf("%s %s: %w", kind.Kind, named, cause))
}

func copyOf(object client.Object) client.Object {
	return object.DeepCopyObject().(client.Object)
}

// neverEquipped is the generation of a Job without known objects. Generations begin with 1.
const neverEquipped = 0

// equip remembers for which generation of the Job the objects of its plugins were brought up to date.
func (m *memory) equip(name types.NamespacedName, uid types.UID, generation int64) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.of(name, uid).equippedFor = generation
}

// equipped returns what equip remembered.
func (m *memory) equipped(name types.NamespacedName, uid types.UID) int64 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.of(name, uid).equippedFor
}
