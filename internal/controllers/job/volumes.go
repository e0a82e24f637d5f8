package job

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/batch/builder"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// claimResource is what the names of claims are prefixed with among status.controlledResources.
const claimResource = "volume-pvc-"

// ensureClaims makes the claims that the Job asks for, unless its status says that it has them, notes them there, and
// checks that the others exist.
func (r *Reconciler) ensureClaims(ctx context.Context, job *batch.Job) error {
	for v := range job.Spec.Volumes {
		name := builder.ClaimName(job, v)
		if job.Status.ControlledResources[claimResource+name] != "" {
			continue
		}
		if job.Spec.Volumes[v].VolumeClaim == nil {
			claim := &corev1.PersistentVolumeClaim{}
			if err := r.live.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: name}, claim); err != nil {
				return fmt.Errorf("spec.volumes[%d].volumeClaimName: %w", v, err)
			}
			continue
		}
		if err := r.createClaim(ctx, job, v); err != nil {
			return fmt.Errorf("spec.volumes[%d].volumeClaim: %w", v, err)
		}
		if job.Status.ControlledResources == nil {
			job.Status.ControlledResources = map[string]string{}
		}
		job.Status.ControlledResources[claimResource+name] = name
	}
	return nil
}

func (r *Reconciler) createClaim(ctx context.Context, job *batch.Job, volume int) error {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       job.Namespace,
			Name:            builder.ClaimName(job, volume),
			Labels:          map[string]string{batch.JobNameKey: job.Name},
			OwnerReferences: []metav1.OwnerReference{*builder.OwnerReference(job)},
		},
		Spec: *job.Spec.Volumes[volume].VolumeClaim.DeepCopy(),
	}
	err := r.client.Create(ctx, claim)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
		return err
	}
	if !metav1.IsControlledBy(claim, job) {
		return fmt.Errorf("PersistentVolumeClaim %s/%s exists and does not belong to the Job", claim.Namespace, claim.Name)
	}
	return nil
}
