// Command hekla-controllers runs the controllers that turn Jobs into PodGroups and pods, give lone pods a PodGroup, and
// keep Queues in order. Flags are Volcano's wherever they have a meaning here.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
)

func main() {
	if err := newCommand().ExecuteContext(signals.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "hekla-controllers:", err)
		os.Exit(1)
	}
}
