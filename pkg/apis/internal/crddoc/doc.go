// Command crddoc rewrites the CustomResourceDefinition files of controller-gen. It keeps the documentation of Hekla's
// own fields, and removes that of the Kubernetes types embedded in them (pod templates, volume claims).
//
// With every description the Job definition exceeds the 256 KiB that `kubectl apply` can remember in an annotation;
// with none `kubectl explain` is mute. The embedded types are documented by Kubernetes itself.
//
// It also removes the rules about changes (those that name oldSelf) from kinds that are templates. A JobTemplate has
// the spec of a Job, but nothing runs from it, so its author may change it. KIND.PROPERTY names a template that is a
// part of a kind: the jobTemplate of a CronJob.
//
// And it bounds the text of quantities: the pattern that controller-gen writes admits any exponent, and to parse
// 1e-2000000000 takes hours.
//
// Kinds of a group that has an older version get that as well, with the same schema.
//
//	crddoc [--forms=KIND[.PROPERTY],…] [--older=GROUP/VERSION,…] DIRECTORY [PROPERTY…]
//
// Invariants:
//
//  1. Only descriptions below the named properties go; a named property keeps its own.
//  2. From a template, rules that compare with what was there before go. One that only makes an exception of it
//     ("oldSelf.hasValue() || …") loses the exception and stays.
//  3. The text of every quantity has the pattern and the length of pkg/apis/bounds. What is not a quantity keeps its
//     own.
//  4. The output depends on the input only, so generated files can be compared. Rewriting twice changes nothing.
//
// It must not know what the definitions are for.
package main
