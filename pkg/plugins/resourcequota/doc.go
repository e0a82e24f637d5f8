// Package resourcequota is the plugin that refuses admission to jobs whose pods the ResourceQuotas of their namespace
// would refuse. Otherwise a gang could get half of its pods, which would hold resources and never start.
//
// Resources of a quota are matched with a PodGroup as follows. pods and count/pods are matched with minMember, unless
// minResources names them. cpu, memory, ephemeral-storage and huge pages, with or without the prefix "requests.", and
// requests.<device> are matched with minResources by either name. limits.<resource> is matched with minResources by
// exactly that name. What minResources does not name, and what is not of a pod (services, claims, storage), is not
// checked. The API server still enforces all of it.
//
// Invariants:
//
//  1. A job passes only if what it lacks of its minimum fits in every quota that applies, in addition to what is used
//     and what is booked. Booked is what admitted jobs lack, also those of the same session. Existing pods of a job
//     count as used, and only once, also those that the quota does not count yet. A job whose minimum is larger than a
//     whole quota never passes.
//  2. A job that is refused books nothing.
//  3. A quota with scopes counts for a job only if the job is known to match all of them. PriorityClass is matched with
//     the class of the PodGroup. BestEffort and NotBestEffort are matched by whether minResources names CPU or memory.
//     Other scopes, such as a deadline of the pods, are not known before the pods exist, and are not checked.
//  4. The limits of a quota are those of status.hard, as for the API server, or of spec.hard as long as there is no
//     status.
//
// As in Volcano the plugin permits what it does not refuse, so plugins of later tiers are not asked. It belongs in the
// tier of overcommit, proportion or capacity. A job that an earlier tier admits without asking this plugin is booked
// from the next cycle on.
//
// This package must not know queues.
package resourcequota
