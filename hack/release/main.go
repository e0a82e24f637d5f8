package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

const usage = `usage: release image|push|all|sign|check [flags]

  image   build the programs and write the image into the directory image and files image*.tar
  push    push the image that was written to the registry that --name says, and its signature if there is one
  all     write all that a release consists of: programs, chart, chart repository, image, bill of materials, checksums
  sign    sign checksums and image of a release that was written, with the private key that --key says
  check   check that a release is whole, and with --key that it is signed by the public key

flags:
`

// options are the values of the flags.
type options struct {
	source source
	out    string
	name   string
	links  string
	chart  string
	helm   string
	url    string
	key    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	o := options{}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.Usage = func() { _, _ = fmt.Fprint(flags.Output(), usage); flags.PrintDefaults() }
	flags.StringVar(&o.source.root, "root", ".", "Root of the module that is built.")
	flags.StringVar(&o.source.version, "version", "", "Version of the build.")
	flags.StringVar(&o.out, "out", "dist", "Directory that is written.")
	flags.StringVar(&o.name, "name", "hekla:latest", "Name of the image, with its tag.")
	flags.StringVar(&o.links, "links", "", "Other names of the program hekla, separated by spaces.")
	flags.StringVar(&o.chart, "chart", "installer/helm/hekla", "Folder of the chart below the root.")
	flags.StringVar(&o.helm, "helm", "go tool -modfile=hack/helm.mod helm", "How helm is called in the root.")
	flags.StringVar(&o.url, "url", "", "Address of the folder where the files will be published; without it there is no manifest for krew.")
	flags.StringVar(&o.key, "key", "", "File of a key in PEM: to sign, an ECDSA private key on P-256 that is not encrypted; to check, the public key.")
	if len(arguments) == 0 {
		flags.Usage()
		return errors.New("which of image, push, all, sign and check?")
	}
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s: there are no arguments but flags", strings.Join(flags.Args(), " "))
	}
	switch arguments[0] {
	case "push":
		return push(ctx, o.out, o.name)
	case "sign":
		return sign(o.out, o.key)
	case "check":
		return checkRelease(o.out, o.key)
	}
	if o.source.version == "" {
		return errors.New("--version: must not be empty")
	}
	if err := o.source.readCommit(ctx); err != nil {
		return err
	}
	switch arguments[0] {
	case "image":
		return o.writeImage(ctx)
	case "all":
		return o.writeAll(ctx)
	default:
		return fmt.Errorf("%s: there are image, push, all, sign and check", arguments[0])
	}
}
