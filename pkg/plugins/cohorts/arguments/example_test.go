package arguments_test

import (
	"fmt"

	"hekla.sh/hekla/pkg/plugins/cohorts/arguments"
)

// What a file leaves out has Kueue's default, and an external kind is named as Kueue names it.
func ExampleDecode() {
	a, err := arguments.Decode([]byte(`{"fairSharing": true, "waitForPodsReady": {"enable": true, "timeout": "5m"},
		"integrations": {"externalFrameworks": ["RayJob.v1.ray.io"]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	external, err := a.External()
	fmt.Println("fair sharing", a.FairSharing, "external", external, err)
	fmt.Println("pods have", a.WaitForPodsReady.Timeout.Duration, "and recover within", a.WaitForPodsReady.RecoveryTimeout.Duration)
	_, err = arguments.Decode([]byte(`{"waitForPodsReady": {"timeout": "soon"}}`))
	fmt.Println("a timeout that is none is refused", err != nil)
	// Output:
	// fair sharing true external [ray.io/v1, Kind=RayJob] <nil>
	// pods have 5m0s and recover within 5m0s
	// a timeout that is none is refused true
}
