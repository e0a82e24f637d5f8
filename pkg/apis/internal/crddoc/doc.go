// Command crddoc rewrites CustomResourceDefinition files, as controller-gen writes them, so that they keep the
// documentation of Hekla's own fields and lose that of the Kubernetes types embedded in them (pod templates, volume
// claims).
//
// With every description the Job definition exceeds the 256 KiB that `kubectl apply` can remember in an annotation; with
// none `kubectl explain` is mute. The embedded types are documented by Kubernetes itself.
//
// It also takes the rules about change (those that name oldSelf) out of kinds that are forms: a JobTemplate has the spec of a
// Job, but nothing runs from it, so it may change as its author likes. KIND.PROPERTY names a form that is a part of a kind: the
// jobTemplate of a CronJob.
//
// And it bounds the text of quantities: the pattern that controller-gen writes admits any exponent, and to parse 1e-2000000000
// takes hours.
//
//	crddoc [--forms=KIND[.PROPERTY],…] DIRECTORY [PROPERTY…]
//
// Invariants:
//
//  1. Only descriptions below the named properties go; a named property keeps its own.
//  2. Of a form, rules that compare with what was there before go. One that only makes an exception of it
//     ("oldSelf.hasValue() || …") loses the exception and stays.
//  3. The text of every quantity has the pattern and the length of pkg/apis/bounds. What is not a quantity keeps its own.
//  4. The output depends on the input only, so generated files can be compared. Rewriting twice changes nothing.
//
// It must not know what the definitions are for.
package main
