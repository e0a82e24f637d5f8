// Package resourcequota is the plugin that refuses admission to jobs whose pods the ResourceQuotas of their namespace would
// refuse: a gang of which half the pods may not be created would hold what the other half got, and never start.
//
// A quota's resources are matched with what a PodGroup says: pods and count/pods with minMember, unless minResources names
// them; cpu, memory, ephemeral-storage and huge pages, with or without the prefix "requests.", and requests.<device>, with
// minResources by either name; limits.<resource> with minResources by that very name. What minResources does not name, and
// what is no part of a pod (services, claims, storage), is not looked at. The API server still enforces all of it.
//
// Invariants:
//
//  1. A job passes only if what it lacks of its minimum fits, in every quota that is about it, beside what the quota shows
//     as used and what is kept for admitted jobs and have not all their pods yet, those of the same session
//     included. Pods that a job has already are used already, and count once. A job whose minimum is larger than a quota as
//     a whole never passes.
//  2. A job that is refused books nothing.
//  3. A quota with scopes counts for a job only if the job is known to lie within all of them: PriorityClass by the class of
//     the PodGroup; BestEffort and NotBestEffort by whether minResources names CPU or memory. Whether pods have a deadline,
//     and what else there may be, is not known before they exist: such a quota keeps no job from admission.
//  4. What a quota allows is status.hard, which is what the API server goes by, or spec.hard as long as there is none.
//
// As in Volcano it permits what it does not refuse, so that plugins of later tiers are not asked: it belongs in the tier of
// overcommit, proportion or capacity. A job that an earlier tier lets in without asking is kept room for from the next cycle
// on.
//
// It must not know queues.
package resourcequota
