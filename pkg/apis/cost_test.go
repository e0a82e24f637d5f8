package apis_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// largeJob is a Job of so many tasks, each with so many policies.
func largeJob(t testing.TB, tasksOf, policiesOf int) map[string]any {
	t.Helper()
	var items []string
	for i := range tasksOf {
		var policies []string
		for n := range policiesOf {
			policies = append(policies, fmt.Sprintf("{exitCode: %d, action: RestartTask}", n+1))
		}
		items = append(items, fmt.Sprintf("{name: task-%d, replicas: 1, policies: [%s], template: {spec: {containers: [{name: a, image: b, "+
			"command: [sh, -c, sleep 1], env: [{name: A, value: b}, {name: B, value: c}], resources: {requests: {cpu: 1, memory: 1Gi}, "+
			"limits: {cpu: 1, memory: 1Gi}}, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, emptyDir: {}}]}}}",
			i, strings.Join(policies, ", ")))
	}
	return parse(t, tasks(items...))
}

// TestTheRulesOfAJobGrowWithTheJobAndNotFaster counts what a write of a status costs in the API server's own currency:
// rules that look at each task for each task would cost sixteen times as much for four times the tasks.
func TestTheRulesOfAJobGrowWithTheJobAndNotFaster(t *testing.T) {
	definition := loadDefinitions(t)["Job"]
	costOf := func(job map[string]any) int64 {
		stored, _, errs := definition.create(job)
		if err := errs.ToAggregate(); err != nil {
			t.Fatal(err)
		}
		_, left := definition.rules.Validate(context.Background(), nil, definition.structural, stored, stored, celconfig.RuntimeCELCostBudget)
		return celconfig.RuntimeCELCostBudget - left
	}
	small, large := costOf(largeJob(t, 16, 2)), costOf(largeJob(t, 64, 2))
	if small == 0 || large > 5*small {
		t.Errorf("rules cost %d for 64 tasks, %d for 16", large, small)
	}
	if none, most := costOf(largeJob(t, 100, 0)), costOf(largeJob(t, 100, 64)); none != most {
		t.Errorf("rules cost %d for 100 tasks, and %d when each has 64 policies: policies are for volcano-job-names to look at", none, most)
	}
}

// BenchmarkRules shows what the rules of a Job cost compared with the check of its schema, which is all that Volcano's
// definition has.
func BenchmarkRules(b *testing.B) {
	definition := loadDefinitions(b)["Job"]
	for _, size := range []int{10, 100, 256} {
		stored, _, errs := definition.create(largeJob(b, size, 4))
		if err := errs.ToAggregate(); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("schema/%d", size), func(b *testing.B) {
			for b.Loop() {
				validation.ValidateCustomResource(nil, stored, definition.schema)
			}
		})
		b.Run(fmt.Sprintf("rules/%d", size), func(b *testing.B) {
			for b.Loop() {
				definition.rules.Validate(context.Background(), nil, definition.structural, stored, stored, celconfig.RuntimeCELCostBudget)
			}
		})
	}
}
