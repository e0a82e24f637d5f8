// Command hekla-scheduler places the pods of batch jobs. Flags and configuration are Volcano's wherever they have a
// meaning here. A program with actions or plugins of its own is this file with more arguments to app.NewCommand.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"hekla.sh/hekla/cmd/scheduler/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process where it stands.
	context.AfterFunc(ctx, stop)
	if err := app.NewCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "hekla-scheduler:", err)
		os.Exit(1)
	}
}
