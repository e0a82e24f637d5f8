package simulator_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsLeftOutIsNamed(t *testing.T) {
	const pod = `
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: work, creationTimestamp: "2026-03-02T07:00:00Z"ANNOTATIONS}
spec: {containers: [{name: main, image: main}], SPEC}
---
`
	podOf := func(name, annotations, spec string) string {
		return strings.NewReplacer("NAME", name, "ANNOTATIONS", annotations, "SPEC", spec).Replace(pod)
	}
	const group = `, annotations: {scheduling.k8s.io/group-name: absent}`
	for name, test := range map[string]struct {
		text string
		want []string // as it is printed
	}{
		"nothing":                  {trainingJob + batchJob + podOf("a", "", "schedulerName: volcano"), nil},
		"a pod of another":         {podOf("a", "", "nodeSelector: {}"), []string{"Pod work/a: its schedulerName is default-scheduler, so another scheduler places its pods"}},
		"one of another that runs": {podOf("a", "", "nodeName: n1"), nil},
		"a pod of a group that is not there": {podOf("a", group, "schedulerName: volcano"),
			[]string{"Pod work/a: its PodGroup work/absent is not in the input, so it has no place"}},
		"what a pod refers to": {podOf("a", "", "schedulerName: volcano, priorityClassName: urgent, runtimeClassName: sandboxed"), []string{
			"Pod work/a: its PriorityClass urgent is not in the input", "Pod work/a: its RuntimeClass sandboxed is not in the input, so it has no overhead"}},
		"a Job of Kubernetes of another": {strings.Replace(batchJob, "schedulerName: volcano, ", "", 1),
			[]string{"Job work/index: its schedulerName is default-scheduler, so another scheduler places its pods"}},
		"a Job of Volcano of another": {strings.Replace(trainingJob, "schedulerName: volcano", "schedulerName: other", 1),
			[]string{"Job work/train: its schedulerName is other, so another scheduler places its pods"}},
		"a Job that waits for nobody": {strings.Replace(batchJob, "parallelism: 3", "suspend: true", 1),
			[]string{"Job work/index: it is suspended, and has no label kueue.x-k8s.io/queue-name by which it would be started"}},
		"a Job of another controller": {strings.Replace(batchJob, "parallelism: 3", "managedBy: example.com/other", 1),
			[]string{"Job work/index: its spec.managedBy is example.com/other, so another controller makes its pods"}},
		"a Job that is over": {strings.Replace(batchJob, "status: {succeeded: 2}", "status: {conditions: [{type: Complete, status: 'True'}]}", 1), nil},
		"a Job that is aborted": {strings.Replace(trainingJob, "spec:", "status: {state: {phase: Aborted}}\nspec:", 1),
			[]string{"Job work/train: its phase is Aborted, in which its pods are not made"}},
		"the class of a Job": {strings.Replace(trainingJob, "minAvailable: 2", "minAvailable: 2\n  priorityClassName: urgent", 1),
			[]string{"Job work/train: its PriorityClass urgent is not in the input"}},
	} {
		t.Run(name, func(t *testing.T) {
			report := mustSimulate(t, twoNodes+test.text, untilStable)
			var said []string
			for _, left := range report.LeftOut {
				said = append(said, left.Object+": "+left.Reason)
			}
			if diff := cmp.Diff(test.want, said); diff != "" {
				t.Errorf("what is left out differs (-want +got):\n%s", diff)
			}
			var text strings.Builder
			if err := report.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			for _, line := range said {
				if !strings.Contains(text.String(), line) {
					t.Errorf("the text does not say %q", line)
				}
			}
		})
	}
}
