// Package wake says when a job that waits is tried again. A job that waits costs nothing until something happens that could help it: its
// verdict says which kinds of change could ([verdict.Help]), and each event and decision is noted with its [Cause]. [Helps] is the one
// table that connects the two.
//
// A new kind of event needs a cause and a row of that table.
package wake
