// Package wake says when a waiting job is tried again. A waiting job costs nothing until something happens that could
// help it. Its verdict says which kinds of change could ([verdict.Help]), and each event and decision has a [Cause].
// The table [Helps] connects the two.
//
// A new kind of event needs a cause and a row in that table.
package wake
