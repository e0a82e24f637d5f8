// Package pages follows what stands on a page of the documentation, as its reader would. Its tests are the
// walk-throughs that bring up a cluster of their own, the demo, and the blocks of commands whose output no page quotes;
// walk-throughs that use a cluster that is there are in test/e2e.
//
// Main types: a [Step] is a block of commands with what the page says they print; a [Reader] runs them.
//
// It must not know what the pages are about.
package pages
