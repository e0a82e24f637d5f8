package workloads

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/benchmark/testbed"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// trialRequests are the numbers of requests at once that are tried, each for trialWorkloads at most.
var trialRequests = [...]int{4, 8, 16, 32, 64}

const trialWorkloads = 150

// calibrate finds how many requests at once make the loop fastest.
func (b *bench) calibrate(ctx context.Context) error {
	b.Say("Trying with how many requests at once the loop is fastest …")
	if err := b.prepareLoop(ctx, "trial"); err != nil {
		return err
	}
	count := min(trialWorkloads, b.options.Workloads)
	rates, err := testbed.Fastest(len(trialRequests), 2, count, func(way, number int) error { return b.write(ctx, "trial", count, trialRequests[way], number) })
	if err != nil {
		return err
	}
	b.report.RequestsAtOnce = trialRequests[testbed.Best(rates)]
	if err := b.remove(ctx, "trial"); err != nil {
		return err
	}
	return b.Rest(ctx)
}

// prepareLoop makes the Jobs and Workloads that the loop writes to. Hekla leaves them alone: the Jobs name no
// LocalQueue.
func (b *bench) prepareLoop(ctx context.Context, namespace string) error {
	if err := b.createJobs(ctx, namespace, ""); err != nil {
		return err
	}
	err := testbed.InParallel(ctx, testbed.Creators, b.options.Workloads, func(i int) error {
		_, err := b.Clients.Batch.KueueV1beta2().Workloads(namespace).Create(ctx, workload(i), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("create the Workloads: %w", err)
	}
	return b.Rest(ctx)
}

// runLoop sends the requests of all admissions.
func (b *bench) runLoop(ctx context.Context, namespace string) (m Measurement, err error) {
	fail := func(err error) (Measurement, error) { return Measurement{}, fmt.Errorf("%s: %w", namespace, err) }
	b.Say("%s: creating %d Jobs …", namespace, b.options.Workloads)
	if err := b.prepareLoop(ctx, namespace); err != nil {
		return fail(err)
	}
	before, err := b.Begin(ctx, nil)
	if err != nil {
		return fail(err)
	}
	if err := b.write(ctx, namespace, b.options.Workloads, b.report.RequestsAtOnce, 0); err != nil {
		return fail(err)
	}
	seconds := time.Since(before.At).Seconds()
	_, cost, err := b.End(ctx, before, nil, 0)
	if err != nil {
		return fail(err)
	}
	m = Measurement{Admissions: b.options.Workloads, AdmissionsPerSecond: float64(b.options.Workloads) / seconds, StartToLastSeconds: seconds, Cost: cost}
	b.judge(namespace, &m)
	b.Say("%s: %.0f admissions/s.", namespace, m.AdmissionsPerSecond)
	if err := b.remove(ctx, namespace); err != nil {
		return fail(err)
	}
	return m, b.Rest(ctx)
}

// write sends the requests of so many admissions, so many at once: two to the status of the Workload, and one to its
// Job, each after the one before. What is written differs from turn to turn.
func (b *bench) write(ctx context.Context, namespace string, count, atOnce, turn int) error {
	workloads, jobs := b.Clients.Batch.KueueV1beta2().Workloads(namespace), b.Clients.Core.BatchV1().Jobs(namespace)
	reserved, err := json.Marshal(map[string]any{"status": map[string]any{
		"admission": map[string]any{"clusterQueue": queueName, "podSetAssignments": []any{map[string]any{"name": v1beta2.DefaultPodSetName, "count": 1,
			"flavors": map[string]any{"cpu": flavorName, "memory": flavorName}, "resourceUsage": used()}}},
		"conditions": []any{condition(v1beta2.QuotaReserved, turn)}}})
	if err != nil {
		return err
	}
	admitted, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{condition(v1beta2.QuotaReserved, turn), condition(v1beta2.Admitted, turn)}}})
	if err != nil {
		return err
	}
	started := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/turn":"%d"}},"spec":{"template":{"metadata":{"labels":{"turn":"%d"}}}}}`, turn, turn)
	return testbed.InParallel(ctx, atOnce, count, func(i int) error {
		for _, patch := range [][]byte{reserved, admitted} {
			if _, err := workloads.Patch(ctx, jobName(i), types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
				return fmt.Errorf("write the status of a Workload: %w", err)
			}
		}
		if _, err := jobs.Patch(ctx, jobName(i), types.MergePatchType, started, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("write a Job: %w", err)
		}
		return nil
	})
}

func condition(kind string, turn int) map[string]any {
	return map[string]any{"type": kind, "status": "True", "reason": kind, "message": fmt.Sprintf("in turn %d", turn),
		"lastTransitionTime": metav1.Now(), "observedGeneration": 1}
}
