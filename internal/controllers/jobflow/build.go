package jobflow

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

// buildJob returns the Job of a flow, with its spec.
func buildJob(jobFlow *flowapi.JobFlow, flow string, spec *batch.JobSpec) *batch.Job {
	byTemplate, byFlow := origin(jobFlow.Namespace, flow), origin(jobFlow.Namespace, jobFlow.Name)
	owner := metav1.NewControllerRef(jobFlow, flowapi.GroupVersion.WithKind("JobFlow"))
	return &batch.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: jobFlow.Namespace,
			Name:      jobFlow.JobName(flow),
			Labels: map[string]string{
				flowapi.CreatedByJobTemplateKey: labelValue(byTemplate), flowapi.CreatedByJobFlowKey: labelValue(byFlow),
			},
			Annotations: map[string]string{
				flowapi.CreatedByJobTemplateKey: byTemplate, flowapi.CreatedByJobFlowKey: byFlow,
			},
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Spec: *spec.DeepCopy(), // what is sent is overwritten by the answer
	}
}

// origin is how labels and annotations name the object that a Job comes from.
func origin(namespace, name string) string { return namespace + "." + name }

// labelValue returns the value, or, where it is too long for a label, its beginning with a hash of all of it.
func labelValue(value string) string {
	if len(value) <= validation.LabelValueMaxLength {
		return value
	}
	hash := sha256.Sum256([]byte(value))
	suffix := "-" + hex.EncodeToString(hash[:4])
	return strings.TrimRight(value[:validation.LabelValueMaxLength-len(suffix)], "-.") + suffix
}
