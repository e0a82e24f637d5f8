// Package vacancies counts for how many pods nodes have room, so that a gang which waits for room for ten pods is left
// alone until there is room for ten.
//
// Main types: a [Count] is exact for one request. A [Bound] counts at least as many. It is shared by all requests that
// are alike when they are rounded down, and that suit the same nodes. A backlog of thousands of requests waits for few
// bounds.
//
// Pods that attract or repel each other, volumes, devices and vetoes are not considered. Each node is counted by
// itself.
//
// This package must not know jobs, nor when they are looked at.
package vacancies
