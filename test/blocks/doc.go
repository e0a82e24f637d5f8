// Package blocks reads the blocks of commands on the pages of the documentation, with what each page says about how
// they are tested. Its test fails for a block that no test runs and whose page does not say why.
//
// Main types: a [Block], with its [Mark].
//
// It must not know what the commands do, nor run them.
package blocks
