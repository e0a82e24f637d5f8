package queueing

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

func TestWhatAJobDemands(t *testing.T) {
	for name, tt := range map[string]struct {
		job         string
		places, has int32 // how many places it needs, and how many pods have not ended
	}{
		"nothing is said":                       {`{spec: {}}`, 1, 0},
		"all pods at once":                      {`{spec: {parallelism: 3, completions: 3}, status: {active: 3}}`, 3, 3},
		"more pods at once than are needed":     {`{spec: {parallelism: 5, completions: 3}}`, 3, 0},
		"one of three has ended":                {`{spec: {parallelism: 3, completions: 3}, status: {active: 2, succeeded: 1}}`, 2, 2},
		"one has ended, which is not counted":   {`{spec: {parallelism: 3, completions: 3}, status: {active: 2, uncountedTerminatedPods: {succeeded: [a]}}}`, 2, 2},
		"a failed one is made again":            {`{spec: {parallelism: 3, completions: 3}, status: {active: 2, failed: 1}}`, 3, 2},
		"more are to come":                      {`{spec: {parallelism: 2, completions: 5}, status: {active: 2, succeeded: 3}}`, 2, 2},
		"the last one":                          {`{spec: {parallelism: 2, completions: 5}, status: {active: 1, succeeded: 4}}`, 1, 1},
		"a pod is leaving":                      {`{spec: {parallelism: 2, completions: 2}, status: {active: 1, terminating: 1, succeeded: 1}}`, 1, 2},
		"no pods are wanted at present":         {`{spec: {parallelism: 0, completions: 5}, status: {}}`, 0, 0},
		"a work queue":                          {`{spec: {parallelism: 3}, status: {active: 3}}`, 3, 3},
		"a work queue that has failed once":     {`{spec: {parallelism: 3}, status: {active: 2, failed: 1}}`, 3, 2},
		"a work queue that has succeeded":       {`{spec: {parallelism: 3}, status: {active: 2, succeeded: 1}}`, 2, 2},
		"a work queue has failed then":          {`{spec: {parallelism: 3}, status: {active: 1, succeeded: 1, failed: 1}}`, 1, 1},
		"a work queue not all of which shows":   {`{spec: {parallelism: 4}, status: {active: 1, succeeded: 1}}`, 3, 1},
		"indexes":                               {`{spec: {parallelism: 2, completions: 5, completionMode: Indexed}, status: {active: 1, succeeded: 4, completedIndexes: "0,2-4"}}`, 1, 1},
		"failed indexes are not tried again":    {`{spec: {parallelism: 3, completions: 5, completionMode: Indexed, backoffLimitPerIndex: 0}, status: {active: 1, succeeded: 2, failed: 2, completedIndexes: "0-1", failedIndexes: "2,4"}}`, 1, 1},
		"indexes beyond the end of an elastic":  {`{spec: {parallelism: 2, completions: 2, completionMode: Indexed}, status: {active: 2, succeeded: 2, completedIndexes: "2-3"}}`, 2, 2},
		"an index across that end":              {`{spec: {parallelism: 3, completions: 3, completionMode: Indexed}, status: {active: 1, succeeded: 3, completedIndexes: "1-3"}}`, 1, 1},
		"what cannot be read counts none":       {`{spec: {parallelism: 3, completions: 3, completionMode: Indexed}, status: {completedIndexes: "x,-1,1-"}}`, 3, 0},
		"a success policy is met":               {`{spec: {parallelism: 3, completions: 3, completionMode: Indexed}, status: {terminating: 2, succeeded: 1, conditions: [{type: SuccessCriteriaMet, status: "True"}]}}`, 0, 2},
		"it is going to fail":                   {`{spec: {parallelism: 3, completions: 9}, status: {terminating: 1, conditions: [{type: FailureTarget, status: "True"}]}}`, 0, 1},
		"it was suspended after one has ended":  {`{spec: {suspend: true, parallelism: 3, completions: 3}, status: {succeeded: 1}}`, 2, 0},
		"a condition that is not true":          {`{spec: {parallelism: 3, completions: 3}, status: {conditions: [{type: Suspended, status: "True"}, {type: Failed, status: "False"}]}}`, 3, 0},
		"more have succeeded than were to be":   {`{spec: {parallelism: 2, completions: 2}, status: {succeeded: 3}}`, 0, 0},
		"the parallelism was reduced":           {`{spec: {parallelism: 1, completions: 9}, status: {active: 1, terminating: 2, succeeded: 2}}`, 1, 3},
		"more indexes than 32 bits are not one": {`{spec: {parallelism: 1, completions: 2, completionMode: Indexed}, status: {completedIndexes: "0-99999999999"}}`, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			job := &batchv1.Job{}
			if err := yaml.UnmarshalStrict([]byte(tt.job), job); err != nil {
				t.Fatal(err)
			}
			all := BatchJob{Job: job}.Demand()
			if len(all) != 1 || all[0].Name != "main" {
				t.Fatalf("it demands %+v", all)
			}
			if d := all[0]; d.Count-d.Ended != tt.places || d.Has != tt.has {
				t.Errorf("it needs %d of %d places and has %d pods, want %d and %d", d.Count-d.Ended, d.Count, d.Has, tt.places, tt.has)
			}
		})
	}
}

func TestAJobSaysWhetherItKeepsItsCounts(t *testing.T) {
	job := BatchJob{Job: &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: ptr.To(int32(4))}}}
	job.Annotations = map[string]string{"kueue.x-k8s.io/job-min-parallelism": "2"}
	if job.KeepsCounts() {
		t.Error("the parallelism of a Job is what was admitted")
	}
	if err := job.Run([]PodSetInfo{{Name: "main", Count: 2, NodeSelector: map[string]string{corev1.LabelArchStable: "arm64"}}}); err != nil {
		t.Fatal(err)
	}
	if d := job.Demand()[0]; d.Count != 2 {
		t.Errorf("of a Job that was admitted with 2 of 4 pods is demanded %+v", d)
	}
}
