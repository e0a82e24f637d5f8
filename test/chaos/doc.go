// Package chaos runs `hekla chaos` for two minutes, as a user would, with the programs that are built from this source.
//
// It must not know how faults are made, nor how anything is judged: it reads the report.
package chaos
