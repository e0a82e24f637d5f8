package app_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"hekla.sh/hekla/cmd/scheduler/app"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
)

// newest is a plugin that has the newest job of a queue served first.
type newest struct{}

func (newest) Name() string { return "newest" }

func (newest) CompareJobs(a, b *cluster.Job) int { return b.Created().Compare(a.Created()) }

// A scheduler with a plugin of its own. It takes the flags and configurations of hekla-scheduler. Here it is asked for
// the configuration that would be in force, and the plugins of that are printed.
func ExampleNewCommand() {
	plugin := framework.PluginFactory{Name: "newest",
		New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) { return newest{}, nil }}
	command := app.NewCommand(scheduler.WithPlugin(plugin))
	printed := &strings.Builder{}
	command.SetOut(printed)
	command.SetArgs([]string{"--scheduler-conf=testdata/newest.conf", "--print-config"}) // a program leaves the three lines out
	if err := command.ExecuteContext(context.Background()); err != nil {
		os.Exit(1)
	}
	for line := range strings.Lines(printed.String()) {
		if strings.Contains(line, "- name:") {
			fmt.Print(strings.TrimLeft(line, " -"))
		}
	}
	// Output:
	// name: newest
	// name: gang
}
