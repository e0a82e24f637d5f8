package process

import (
	"os"
	"runtime"
)

// LeaveCores lets the process compute on half of the cores at once, one at least. Little of a scheduler or of a
// controller can run in parallel: most of it waits for the network. With more cores the runtime of Go spends its time
// on looking for work and on waking threads, on a machine where the API server needs them. It changes nothing, and
// reports false, if the environment variable GOMAXPROCS or a CPU limit of the container says how many cores there are
// for this process.
func LeaveCores() bool {
	all := runtime.NumCPU()
	if os.Getenv("GOMAXPROCS") != "" || runtime.GOMAXPROCS(0) != all {
		return false
	}
	runtime.GOMAXPROCS(max(all/2, 1))
	return true
}
