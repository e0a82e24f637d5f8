// Package script reads clusters, and what happens to them, as a few lines of text. A script is what a person writes to
// say "on these nodes, with these queues and gangs, this is decided": the objects, then the cycles of the scheduler,
// and under each what it decided.
//
//	# A higher job takes the node of a lower one.
//	source: own
//	rules: J1
//
//	actions: enqueue, allocate, preempt
//	plugins: priority, gang, conformance | predicates, nodeorder
//
//	class high 100
//	node n1 cpu=1
//	gang low preemptable
//	  pod cpu=1 on=n1
//
//	cycle
//	gang urgent class=high
//	  pod cpu=1
//	rest
//	> 2 evict work/low-0 from n1 for work/urgent by preempt (J1)
//
// A line is one of these; what is in brackets may be left out, and words stand in any order after the name:
//
//	# TEXT                   at the top: what the script shows; elsewhere a comment
//	source: TEXT             where the case comes from
//	rules: TEXT              the numbers of the rules that it turns on
//	args: FLAGS              further flags of hekla simulate
//	actions: NAMES           of the configuration, with commas
//	plugins: NAMES           with commas, and | between two tiers; a name may be {name: NAME, …}
//	configuration: YAML      further keys of the configuration, one line of YAML each
//	class NAME VALUE [never]
//	node NAMES AMOUNTS [label:K=V] [taint:K=V:EFFECT] [cordoned]
//	hypernode NAME tier=N nodes=NODE[,NODE…] or hypernodes=NAME[,NAME…]
//	queue NAME [parent=Q] [weight=N] [priority=N] [deserved:AMOUNT] [capability:AMOUNT] [guarantee:AMOUNT] [reclaimable=B] [closed]
//	                         [annotation:K=V]
//	gang NAME [queue=Q] [min=N] [class=C] [wants:AMOUNT] [preemptable[=B]] [pending|running] [tier=N]
//	                         [soft] [min:TASK=N] [annotation:K=V]
//	pod NAME [AMOUNTS] [queue=Q] [on=NODE] [class=C] [scheduler=S] …, a lone pod
//	budget NAME [min=N] [max=N] label:K=V
//	quota NAME AMOUNTS
//	fate POD [late] [overdue=5s|never] [refused=REASON], what becomes of its evictions; the reason ends the line
//	delete KIND NAMESPACE/NAME
//	yaml                     and under it, indented: any manifest
//	cycle [N], rest          run cycles; rest until two in a row decide nothing, and stands last
//
// Under a gang stand its pods, indented, as "pod" or "N pods", with AMOUNTS such as cpu=1, and any of: on=NODE[,NODE…],
// task=NAME, name=NAME, task-priority=N, preemptable[=B], label:K=V, annotation:K=V, select:K=V, near:K=V, apart:K=V,
// spread:K=V, port=N, gated, leaving=5s, grace=N, age=5m, bare. They are named after the gang, with a number from 0 on.
// A pod without amounts requests nothing. Near, apart and spread are of nodes, or with K=V@LABEL of the values of a
// label of nodes; spread allows a skew of one. A bare pod has no controller, so none replaces it. Objects are the older
// the earlier they stand; age says otherwise of a pod. Those after a cycle come, or change, before the next.
//
// Lines that begin with > are what was decided. They are written by the test with -rewrite, and are to be read then.
//
// Nothing that is not understood is passed over: an error names the line and the word.
package script
