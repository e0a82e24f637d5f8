package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"hekla.sh/hekla/internal/version"
)

// manName is the command by which a release writes its man pages.
const manName = "man"

// newManCommand returns the command that writes a man page of each command into a folder that exists. Their date is
// that of SOURCE_DATE_EPOCH if the variable is set. The pages are of hekla, whatever it was called when it wrote them.
// It is for packages, and in no help.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use: manName + " FOLDER", Hidden: true, Short: "Write the man pages into a folder", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, arguments []string) error {
			root, _ := newProgram([]string{"hekla"}, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
			root.DisableAutoGenTag = true // which would name the day of the build
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "Hekla " + version.Version, Manual: "Hekla"}, arguments[0])
		},
	}
}
