// Command crddoc rewrites CustomResourceDefinition files, as controller-gen writes them, so that they keep the
// documentation of Hekla's own fields and lose that of the Kubernetes types embedded in them (pod templates, volume
// claims).
//
// With every description the Job definition exceeds the 256 KiB that `kubectl apply` can remember in an annotation; with
// none `kubectl explain` is mute. The embedded types are documented by Kubernetes itself.
//
//	crddoc DIRECTORY [PROPERTY…]
//
// Invariants:
//
//  1. Only descriptions below the named properties go; a named property keeps its own.
//  2. The output depends on the input only, so generated files can be compared. Rewriting twice changes nothing.
//
// It must not know what the definitions are for.
package main
