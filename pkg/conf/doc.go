// Package conf reads the scheduler's configuration: Volcano's file format, strictly.
//
// Main types: [Configuration] is what is in force; [Catalogue] says which actions, plugins and arguments exist, and is
// given by the program that has them; [Arguments] are the arguments of one action or plugin, checked and complete; [Switches]
// say which parts of a plugin have a say; [Problems] is everything that is wrong with a file, each with its line;
// [Notice] is something that is accepted although it changes nothing.
//
// Invariants:
//
//  1. A file is accepted whole or not at all. What is wrong with it is reported together, not one thing at a time.
//  2. What is not understood is wrong: a key, a switch, a name, an argument or a type that has no meaning here is a
//     problem, never ignored. What has a meaning but no effect leaves a notice.
//  3. A Configuration is complete: every switch and every argument that has a default has a value. Reading one cannot
//     fail, and asking for an argument that the catalogue does not declare is a bug of the caller, answered by a panic.
//  4. Parsing what [Configuration.YAML] prints gives an equal Configuration, and no notices but of plugins
//     that lack the metrics block.
//  5. The same bytes and the same catalogue give the same configuration, the same problems and the same text.
//
// It must not know what actions and plugins do, nor where the file comes from or what happens when it changes. The one
// exception is [DefaultYAML], which names those that Volcano installs.
package conf
