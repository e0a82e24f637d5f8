// Package conf reads the scheduler's configuration: Volcano's file format, strictly.
//
// Main types: [Configuration] is a configuration in force. [Catalogue] lists which actions, plugins and arguments
// exist. The program that has them provides it. [Arguments] are the arguments of one action or plugin, checked and
// complete. [Switches] turn answers of a plugin off. [Problems] is everything that is wrong with a file, with lines.
// [Notice] is something that is accepted although it changes nothing.
//
// Invariants:
//
//  1. A file is accepted as a whole or not at all. All problems are reported together.
//  2. A key, a switch, a name, an argument or a type that has no meaning is a problem, and is never ignored. What has a
//     meaning but no effect leads to a notice.
//  3. A Configuration is complete: every switch and every argument with a default has a value. Reading one cannot fail.
//     Asking for an argument that the catalogue does not declare is a bug of the caller, and panics.
//  4. Parsing what [Configuration.YAML] prints gives an equal Configuration, and no notices except of plugins that lack
//     the metrics block or are not asked.
//  5. The same bytes and the same catalogue give the same configuration, the same problems and the same text.
//
// This package must not know what actions and plugins do, nor where the file comes from or what happens when it
// changes. The one exception is [DefaultYAML], which names those that Volcano installs, resourcequota, and
// those that admit Workloads.
package conf
