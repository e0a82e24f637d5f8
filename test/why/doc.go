// Package why checks that the scheduler says why jobs wait: each of the jobs of example/why is stuck for another
// reason, and one command finds it. Scheduler and controllers run in the process of the test, with a real API server.
package why
