package simulator_test

import (
	"slices"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/simulator"
)

const batchJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: index, namespace: work, creationTimestamp: "2026-03-02T07:00:00Z", annotations: {scheduling.volcano.sh/group-min-member: "2"}}
spec:
  parallelism: 3
  completions: 4
  completionMode: Indexed
  template: {spec: {schedulerName: volcano, restartPolicy: Never, containers: [{name: main, image: i, resources: {requests: {cpu: '1'}}}]}}
status: {succeeded: 2}
---
`

func TestJobsOfKubernetesGetTheirPods(t *testing.T) {
	for name, test := range map[string]struct {
		replace, by string
		want        string // pods that are bound
	}{
		"as many as are still to complete":           {"", "", "work/index-0 work/index-1"},
		"as many as run at a time":                   {"completions: 4", "completions: 9", "work/index-0 work/index-1 work/index-2"},
		"one, if nothing is said":                    {"  parallelism: 3\n  completions: 4\n", "", "work/index-0"},
		"none while it is suspended":                 {"parallelism: 3", "suspend: true", ""},
		"none when it is over":                       {"status: {succeeded: 2}", "status: {conditions: [{type: Complete, status: 'True'}]}", ""},
		"none of another controller":                 {"parallelism: 3", "managedBy: example.com/other", ""},
		"none of ours if another scheduler is named": {"schedulerName: volcano, ", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(batchJob, test.replace, test.by, 1)
			if strings.HasPrefix(name, "one") {
				text = strings.NewReplacer(`group-min-member: "2"`, `group-min-member: "1"`, "  completionMode: Indexed\n", "", "status: {succeeded: 2}\n", "").Replace(text)
			}
			report, err := simulate(t, twoNodes+text, simulator.Options{UntilStable: true, MaxCycles: 20})
			if err != nil {
				t.Fatal(err)
			}
			var bound []string
			for _, b := range report.Binds {
				bound = append(bound, b.Pod)
			}
			slices.Sort(bound)
			if got := strings.Join(bound, " "); got != test.want {
				t.Errorf("bound are %q, want %q", got, test.want)
			}
		})
	}
	t.Run("they are a gang of the minimum that the Job says", func(t *testing.T) {
		report, err := simulate(t, strings.Replace(twoNodes, "cpu: '2'", "cpu: '0'", 1)+batchJob, simulator.Options{UntilStable: true, MaxCycles: 20})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Binds) != 0 || len(report.Jobs) != 1 || report.Jobs[0].Job != "work/index" || report.Jobs[0].MinAvailable != 2 {
			t.Errorf("bound are %v, the jobs are %+v", report.Binds, report.Jobs)
		}
	})
	t.Run("a Job of Volcano may have the same name", func(t *testing.T) {
		report, err := simulate(t, twoNodes+batchJob+strings.Replace(trainingJob, "name: train", "name: index", 1), simulator.Options{UntilStable: true, MaxCycles: 20})
		if err != nil || len(report.Jobs) != 2 {
			t.Errorf("the jobs are %+v: %v", report.Jobs, err)
		}
	})
}
