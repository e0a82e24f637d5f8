// Package demo shows on a local cluster how gangs wait and start. It submits the files of the folder example one after
// the other, adds a node in the middle, lets one gang evict another, and shows in the terminal what happens.
//
// Main types: [Demo] is one run of the demo. A scene is what is shown at one moment (nodes, jobs, queues). A stage
// shows scenes: a screen draws them again in place, a log prints a line for each change.
//
// Invariants:
//
//  1. Everything shown is read from the API server, as any user could; nothing is known beforehand.
//  2. The objects of a demo before are removed first, and nothing else; what others have in the cluster stays. So does
//     a configuration of the scheduler that is neither the default nor the demo's own.
//  3. Every wait ends when nothing has changed for a minute, and its error says what was waited for and what there was.
//  4. On a terminal nothing is drawn outside of its width, and the cursor is there again at the end, whatever the end
//     is.
//
// It must not know the scheduler, nor how the cluster came up.
package demo
