// Package operators runs the jobs of other systems' operators together with Hekla: JobSet, MPI operator,
// training-operator, KubeRay, Trainer and LeaderWorkerSet, built from their modules, and a Spark operator that a test
// controller plays.
//
// Where an operator makes PodGroups of Volcano it makes those of its jobs; JobSet makes none, and its user does, or
// annotates the JobSet. Each of their jobs lives one whole life in a queue: it waits whole, starts whole, is preempted,
// comes back, and is deleted, and its operator is restarted on the way. After each step the queue holds exactly what
// its bound pods request.
//
// The folder programs is a module of its own, which requires the operators as tools, so that their requirements are not
// Hekla's. The definitions of their kinds, and their webhooks, are read from the modules when the tests run. Two
// operators serve something on all interfaces. Of these the module has programs of its own, which run their controllers
// alone.
//
// It must not know how Hekla serves a kind: what is looked at are the operators' own objects, pods, PodGroups and
// queues.
package operators
