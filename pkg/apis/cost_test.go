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

// TestTheRulesOfAJobGrowWithTheJobAndNotFaster counts what a write of a status costs in the API server's own currency: rules that
// look at each task for each task would cost sixteen times as much for four times the tasks.
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
	for name, cost := range map[string]func(size int) int64{
		"tasks":    func(size int) int64 { return costOf(largeJob(t, size, 2)) },
		"policies": func(size int) int64 { return costOf(largeJob(t, 4, size)) },
	} {
		small, large := cost(16), cost(64)
		t.Logf("%s: %d for 16, %d for 64", name, small, large)
		if small == 0 || large > 5*small {
			t.Errorf("rules cost %d for 64 %s, %d for 16", large, name, small)
		}
	}
	if cost := costOf(largeJob(t, 100, 64)); cost > celconfig.RuntimeCELCostBudget/4 {
		t.Errorf("100 tasks of 64 policies take %d of the %d that an API server gives the rules of an object", cost, celconfig.RuntimeCELCostBudget)
	}
}

// BenchmarkRules shows what the rules of a Job cost beside the check of its schema, which is all that Volcano's definition has.
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
