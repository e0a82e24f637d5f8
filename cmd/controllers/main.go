// Command hekla-controllers runs the controllers that turn Jobs into PodGroups and pods, give lone pods a PodGroup, and
// keep Queues in order. Flags are Volcano's wherever they have a meaning here. A program with controllers of its own is
// this file with more arguments to app.NewCommand.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"hekla.sh/hekla/cmd/controllers/app"
)

func main() {
	if err := app.NewCommand().ExecuteContext(signals.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "hekla-controllers:", err)
		os.Exit(1)
	}
}
