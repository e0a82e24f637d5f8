package queueing

import (
	"testing"

	"sigs.k8s.io/yaml"
)

func TestTheStatusOfAnOwnerSaysThatItHasEnded(t *testing.T) {
	for name, c := range map[string]struct {
		status   string
		want     OwnerEnd
		hasEnded bool
	}{
		"a JobSet that runs":      {`{conditions: [{type: Suspended, status: "False"}, {type: StartupPolicyInProgress, status: "True"}]}`, OwnerEnd{}, false},
		"a JobSet that is done":   {`{terminalState: Completed, conditions: [{type: Completed, status: "True", message: all jobs are done}]}`, OwnerEnd{Succeeded: true, Message: "all jobs are done"}, true},
		"a JobSet of old":         {`{terminalState: Failed}`, OwnerEnd{Message: "Failed"}, true},
		"an MPIJob that restarts": {`{conditions: [{type: Failed, status: "False"}, {type: Running, status: "True"}]}`, OwnerEnd{}, false},
		"an MPIJob that is done":  {`{conditions: [{type: Running, status: "False"}, {type: Succeeded, status: "True", message: done}]}`, OwnerEnd{Succeeded: true, Message: "done"}, true},
		"a TrainJob that failed":  {`{conditions: [{type: Failed, status: "True", message: too often}]}`, OwnerEnd{Message: "too often"}, true},
		"a RayJob that runs":      {`{jobStatus: RUNNING, jobDeploymentStatus: Running}`, OwnerEnd{}, false},
		"a RayJob that is done":   {`{jobStatus: SUCCEEDED, jobDeploymentStatus: Complete}`, OwnerEnd{Succeeded: true, Message: "SUCCEEDED"}, true},
		"a Spark application":     {`{applicationState: {state: COMPLETED}}`, OwnerEnd{Succeeded: true, Message: "COMPLETED"}, true},
		"an AppWrapper":           {`{phase: Failed}`, OwnerEnd{Message: "Failed"}, true},
		"nothing":                 {`{}`, OwnerEnd{}, false},
		"what cannot be read":     {`{conditions: [none], phase: 1}`, OwnerEnd{}, false},
	} {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte("status: "+c.status), &object); err != nil {
			t.Fatal(err)
		}
		if got, is := endOf(object); got != c.want || is != c.hasEnded {
			t.Errorf("%s: ended %v with %+v; want %v, %+v", name, is, got, c.hasEnded, c.want)
		}
	}
}
