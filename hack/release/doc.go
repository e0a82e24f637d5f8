// Command release makes what a release of Hekla consists of, without a container engine: an image for several
// platforms, programs to download, the chart, a bill of materials, the provenance and checksums. The Makefile calls it:
// make image, make push, make release.
//
// Main types: [source] is the module and version that is built, [program] one executable of it, [imageFiles] what an
// image holds.
//
// Invariants:
//
//  1. The same source, version and toolchain give the same bytes: times are those of the commit, names are in order,
//     and paths of the machine are trimmed.
//  2. Programs are static and are built for each platform on this machine. The image holds them, roots of trust for
//     HTTPS, and nothing else; it runs as a user without rights.
//  3. Nothing leaves this machine but by the command push, and no credentials are read but by it: those of docker's
//     configuration. A private key is read by the command sign only, and signs the same with the same bytes.
//
// It must not know how the manifests use the image; a test compares the two.
package main
