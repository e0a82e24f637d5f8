package v1alpha1

// Labels and annotations that the flow controller sets on the Jobs it makes. Each is set as both. A label must not be
// longer than 63 characters: where the value would be, the label is a shortened one with a hash, and the annotation
// whole.
const (
	// CreatedByJobTemplateKey tells which JobTemplate a Job was made from, as <namespace>.<name>.
	CreatedByJobTemplateKey = "volcano.sh/createdByJobTemplate"

	// CreatedByJobFlowKey tells which JobFlow a Job was made for, as <namespace>.<name>.
	CreatedByJobFlowKey = "volcano.sh/createdByJobFlow"
)
