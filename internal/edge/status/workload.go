package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/decision"
)

const (
	ofWorkload = "Workload"
	ofPlan     = "WorkloadPlan"
)

// maxConflicts is how often a Workload is read again because another client has written it meanwhile. The controllers
// write one a few times while it starts or stops.
const maxConflicts = 5

// ErrOutdated says that a decision does not hold any more for the object as it is now.
var ErrOutdated = errors.New("the object has changed since it was decided on")

// Workload writes the part of the status of a Workload that is the scheduler's, over the version that was decided on,
// or a newer one that the decision still holds for.
type Workload struct {
	decision.WorkloadStatus
	// Done is told the version of the Workload after the write, or why the decision is not written and will not be. It
	// is not told of attempts that are repeated.
	Done func(version string, err error)
}

func (c Workload) key() key       { return key{ofWorkload, c.WorkloadStatus.Workload} }
func (c Workload) refresh() bool  { return c.IsRefresh }
func (c Workload) uid() types.UID { return c.UID }

// urgent is true of all but why a Workload waits: a job waits for it.
func (c Workload) urgent(last Change) bool { return last.uid() != c.UID || c.awaited() }

// awaited is true if pods can only be made, or be deleted, after it is written.
func (c Workload) awaited() bool {
	return c.Reserve != nil || c.Move != nil || c.Admit || c.Evict != nil
}

func (c Workload) write(ctx context.Context, clients *apiserver.Clients) error {
	version, err := c.send(ctx, clients)
	if err == nil || isOver(err) {
		c.Done(version, err)
	}
	return err
}

// isOver reports whether an error ends the attempts to write a decision about a Workload: the loop decides again.
func isOver(err error) bool {
	return errors.Is(err, ErrOutdated) || errors.Is(err, apiserver.ErrObjectGone) || apiserver.IsFinal(err)
}

func (c Workload) send(ctx context.Context, clients *apiserver.Clients) (version string, err error) {
	workloads := clients.Batch.KueueV1beta2().Workloads(c.key().name.Namespace)
	base := c.Read
	for conflicts := 0; ; conflicts++ {
		written := base.DeepCopy()
		if !c.Apply(written) {
			return "", ErrOutdated
		}
		body, isNew := statusPatch(base, written)
		if !isNew {
			return base.ResourceVersion, nil
		}
		answer, err := workloads.Patch(ctx, base.Name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
		switch {
		case err == nil:
			return answer.ResourceVersion, nil
		case apierrors.IsNotFound(err):
			return "", apiserver.ErrObjectGone
		case !apierrors.IsConflict(err) || conflicts >= maxConflicts:
			return "", fmt.Errorf("the status of Workload %s: %w", c.key().name, err)
		}
		if base, err = workloads.Get(ctx, base.Name, metav1.GetOptions{}); err != nil {
			if apierrors.IsNotFound(err) {
				return "", apiserver.ErrObjectGone
			}
			return "", fmt.Errorf("reading Workload %s: %w", c.key().name, err)
		}
		if base.UID != c.UID {
			return "", apiserver.ErrObjectGone
		}
	}
}

// statusPatch changes what differs of a status, in exactly this version.
func statusPatch(base, written *v1beta2.Workload) (body []byte, isNew bool) {
	was, is := &base.Status, &written.Status
	status := map[string]any{}
	if !apiequality.Semantic.DeepEqual(was.Conditions, is.Conditions) {
		status["conditions"] = is.Conditions
	}
	if !apiequality.Semantic.DeepEqual(was.Admission, is.Admission) {
		status["admission"] = is.Admission
	}
	if !apiequality.Semantic.DeepEqual(was.AdmissionChecks, is.AdmissionChecks) {
		status["admissionChecks"] = is.AdmissionChecks
	}
	if !apiequality.Semantic.DeepEqual(was.SchedulingStats, is.SchedulingStats) {
		status["schedulingStats"] = is.SchedulingStats
	}
	body, _ = json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": base.ResourceVersion}, "status": status})
	return body, len(status) > 0
}

// Plan records a plan on a Workload, or takes the record away.
type Plan struct {
	decision.WorkloadPlan
	// Done is told why the plan is not recorded and will not be.
	Done func(err error)
}

func (c Plan) key() key                { return key{ofPlan, c.WorkloadPlan.Workload} }
func (c Plan) refresh() bool           { return false }
func (c Plan) uid() types.UID          { return c.UID }
func (c Plan) urgent(last Change) bool { return true }

// awaited is true because victims are told to leave only after it is written.
func (c Plan) awaited() bool { return c.Record != "" }

func (c Plan) write(ctx context.Context, clients *apiserver.Clients) error {
	err := c.send(ctx, clients)
	if err != nil && isOver(err) {
		c.Done(err)
	}
	return err
}

func (c Plan) send(ctx context.Context, clients *apiserver.Clients) error {
	workloads := clients.Batch.KueueV1beta2().Workloads(c.Workload.Namespace)
	body, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": c.UID,
		"annotations": map[string]any{v1beta2.PlanAnnotation: apiserver.OrNull(c.Record)}}})
	_, err := workloads.Patch(ctx, c.Workload.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if err == nil {
		return nil
	}
	return apiserver.ExplainRefusal(err, c.UID, func() (metav1.Object, error) { return workloads.Get(ctx, c.Workload.Name, metav1.GetOptions{}) })
}
