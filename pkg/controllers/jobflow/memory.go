package jobflow

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

// memory holds the Jobs that were Completed when they went and that no status tells of yet: one whose time to live is 0 goes
// together with the news of its end. It holds them until they are on record or their JobFlow is gone.
type memory struct {
	mutex sync.Mutex
	gone  map[types.UID]map[string]*batch.Job
}

func newMemory() *memory { return &memory{gone: map[types.UID]map[string]*batch.Job{}} }

// left keeps a Job of a JobFlow that is gone, if it was Completed.
func (m *memory) left(jobFlow *flowapi.JobFlow, job *batch.Job) {
	if job.Status.State.Phase != batch.Completed {
		return
	}
	if recorded := recordOf(jobFlow, job.Name); recorded != nil && recorded.State == batch.Completed {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.gone[jobFlow.UID] == nil {
		m.gone[jobFlow.UID] = map[string]*batch.Job{}
	}
	m.gone[jobFlow.UID][job.Name] = job
}

// departed returns what is kept for a JobFlow, and forgets those that its status tells of.
func (m *memory) departed(jobFlow *flowapi.JobFlow) map[string]*batch.Job {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	departed := map[string]*batch.Job{}
	for name, job := range m.gone[jobFlow.UID] {
		if recorded := recordOf(jobFlow, name); recorded != nil && recorded.State == batch.Completed {
			delete(m.gone[jobFlow.UID], name)
			continue
		}
		departed[name] = job
	}
	return departed
}

// forget forgets a JobFlow.
func (m *memory) forget(jobFlow types.UID) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.gone, jobFlow)
}
