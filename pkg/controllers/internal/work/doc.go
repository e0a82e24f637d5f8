// Package work says how every controller works through its queue: how many objects at a time, and how soon one that failed is
// tried again.
//
// It must not know any controller, kind or manager.
package work
