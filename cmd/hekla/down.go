package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"hekla.sh/hekla/internal/localcluster"
)

// newDownCommand returns `hekla down`.
func newDownCommand() *cobra.Command {
	var where place
	command := &cobra.Command{
		Use:   "down",
		Short: "Stop the local cluster and remove its data",
		Long: `Stops every process that hekla up has started and removes the cluster's folder. The built Kubernetes programs
stay in the cache. From a cluster that was attached, the nodes that were added are removed; Hekla's objects and
the jobs in it stay.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, output := command.Context(), command.OutOrStdout()
			dir, unlock, err := where.lock(ctx, command.ErrOrStderr())
			if err != nil {
				return err
			}
			defer unlock()
			cluster, err := localcluster.Open(dir)
			if errors.Is(err, fs.ErrNotExist) {
				_, err = fmt.Fprintf(output, "There is no cluster in %s.\n", dir)
				return err
			}
			if err != nil {
				// What cannot be read can still be removed, with the processes that say that they are of it.
				if removal := localcluster.Discard(dir); removal != nil {
					return errors.Join(err, removal)
				}
				_, err = fmt.Fprintf(output, "%v.\nRemoved %s, with the processes that were found.\n", err, dir)
				return err
			}
			if err := cluster.Delete(ctx); err != nil {
				return err
			}
			_, err = fmt.Fprintf(output, "Stopped the cluster %s and removed %s.\n", where.name, dir)
			return err
		},
	}
	where.addFlags(command)
	return command
}
