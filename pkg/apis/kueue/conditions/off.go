package conditions

// WorkloadsOff is the reason of jobs and Workloads that wait while the scheduler's configuration has none admitted, and
// WorkloadsOffMessage says so. It is said in answers and in an Event of the job: the conditions stay as they were.
const (
	WorkloadsOff        = "WorkloadsOff"
	WorkloadsOffMessage = "no Workload is admitted: the scheduler's configuration lacks the action admit or the plugin cohorts"
)
