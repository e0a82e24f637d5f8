// Package guaranteedshares is the plugin guaranteed-shares: queues get what they are guaranteed, as in YuniKorn. It
// says below which queues these rules hold, and keeps the ceilings there.
//
// The rules themselves are in package guarantee: who may evict whom, and down to which amount. The eviction engine asks
// them where the plugin says that they hold ([framework.SubtreeDeclarer]).
//
// Invariants:
//
//  1. Outside its subtrees the plugin abstains.
//  2. Inside, a job is admitted and a task is placed only within the capability of its queue and of all queues above
//     it. What other queues are guaranteed is not kept free: it is lent, and taken back by evictions.
//  3. Opening a session costs no more than looking up the tops of the subtrees.
//
// This package must not know how victims are chosen, nor which action evicts them.
package guaranteedshares
