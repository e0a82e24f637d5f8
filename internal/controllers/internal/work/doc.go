// Package work says how every controller works through its queue: how many objects at a time, in which order, and how
// soon one that failed is tried again. Namespaces take turns, so that a tenant with much to do does not hold up others.
//
// It must not know any controller, kind or manager.
package work
