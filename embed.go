// Package hekla carries the files of the module root that the executables need wherever they run: the module's own
// requirements, from which the local cluster is built, the installer's manifests, and the examples.
package hekla

import "embed"

// GoMod is this module's go.mod: the versions every part of a local cluster is built from.
//
//go:embed go.mod
var GoMod []byte

// GoSum is the go.sum next to it: what is downloaded is checked against it.
//
//go:embed go.sum
var GoSum []byte

// Installer holds installer/hekla.yaml: what `kubectl apply` puts onto a cluster.
//
//go:embed installer/hekla.yaml
var Installer embed.FS

// Configuration holds installer/configuration.yaml: the default configuration as a ConfigMap, which users may edit and
// the installer does not overwrite.
//
//go:embed installer/configuration.yaml
var Configuration embed.FS

// SSHRights holds installer/ssh.yaml: the right to Secrets that the job plugin ssh needs, which the installer does not
// give.
//
//go:embed installer/ssh.yaml
var SSHRights embed.FS

// Visibility holds installer/visibility.yaml: Kueue's API for the places of Workloads, which the installer does not
// register, since Kueue does where it runs.
//
//go:embed installer/visibility.yaml
var Visibility embed.FS

// Examples holds the folder example: what the demo submits.
//
//go:embed example/*.yaml
var Examples embed.FS

// Demo holds the folder example/demo: what the demo submits of its own, and the configuration under which it evicts.
//
//go:embed example/demo/*.yaml
var Demo embed.FS
