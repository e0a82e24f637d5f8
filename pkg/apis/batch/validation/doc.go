// Package validation says what is wrong with a Job or CronJob of batch.volcano.sh, with field and value, in the words
// of Volcano where scripts know them. The webhooks, the controllers and the simulator ask it, so that all three refuse
// the same.
//
// Main functions: [ValidateJob], [ValidateJobCreate] and [ValidateJobUpdate] for Jobs, [ValidateCronJob] for CronJobs;
// [IgnoredJobFields] for what is accepted without effect; [JobActions] and [PolicyEvents], the vocabulary of policies.
//
// Invariants:
//
//  1. A Job that [JobTooLarge] has nothing against is judged in bounded time, however wrong it is.
//  2. The same object gets the same problems in the same order.
//  3. What one object alone shows is judged here. What takes other objects, such as queues, is the webhooks' to judge.
//
// It must not know a client, nor who asks.
package validation
