package diagnosis

import (
	"time"

	"hekla.sh/hekla/internal/edge"
	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/edge/intake"
	"hekla.sh/hekla/internal/explain/holders"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/internal/explain/survey"
	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/internal/localcluster/supervisor"
)

// Diagnosis is how a scheduler is.
type Diagnosis struct {
	Time      time.Time     `json:"time"`
	Scheduler Scheduler     `json:"scheduler"`
	Cycles    Cycles        `json:"cycles"`
	Queues    []survey.Line `json:"queues"`
	// ClusterQueues are those of kueue.x-k8s.io.
	ClusterQueues []queued.ClusterQueue `json:"clusterQueues,omitempty"`

	Room survey.Room `json:"room"`
	// Holders say who holds the resources of which least is free, the scarcest first.
	Holders   []holders.Holders `json:"holders,omitempty"`
	Evictions []journal.Entry   `json:"evictions,omitempty"` // the latest, the oldest first
	Inbox     intake.Stats      `json:"inbox"`
	Outbox    edge.OutboxStats  `json:"outbox"`
	// Requests are those to the API server, by kind.
	Requests      []apiserver.Latency `json:"requests"`
	Configuration Configuration       `json:"configuration"`
	// Charts is why the charts of the web page are not handed over to the next leader, "" if they are.
	Charts string `json:"charts,omitempty"`
	Health Health `json:"health"`
	// Supervised are the programs of a local cluster that are started again when they end, the scheduler among them;
	// none elsewhere.
	Supervised []supervisor.Status `json:"supervised,omitempty"`
}

// Scheduler is the process that answers.
type Scheduler struct {
	Version string    `json:"version"`
	Names   []string  `json:"names"` // the schedulerNames whose pods it places
	Host    string    `json:"host,omitempty"`
	Leads   time.Time `json:"leadsSince"`
}

// Configuration is what is in force.
type Configuration struct {
	// Place is where it comes from: a ConfigMap, a file, or the default.
	Place string `json:"place"`
	// Text is all of it as YAML, with the default of every argument. Switches that have their defaults and passwords
	// are left out.
	Text string `json:"text"`
	// Ineffective are the settings, and flags of the command line, that change nothing, one sentence each.
	Ineffective []string `json:"ineffective,omitempty"`
	// AdmitsNoWorkloads says that it has no Workload admitted: it lacks the action admit or the plugin cohorts.
	AdmitsNoWorkloads bool `json:"admitsNoWorkloads,omitempty"`
	// Problem is why the newest configuration is not in force, "" if it is.
	Problem string `json:"problem,omitempty"`
}

// Health is what is wrong around the scheduler.
type Health struct {
	// ClockAheadSeconds is by how much the clock of the API server is ahead of that of the scheduler, negative if it is
	// behind.
	ClockAheadSeconds float64      `json:"clockAheadSeconds"`
	Nodes             survey.Nodes `json:"nodes"`
	// MissingRights are those that the scheduler needs and lacks. RightsUnknown is why they could not be found out, ""
	// if they could.
	MissingRights []string `json:"missingRights,omitempty"`
	RightsUnknown string   `json:"rightsUnknown,omitempty"`
	// Complaints are the same and further faults, one sentence each with the command that shows more. It is empty if
	// all is well.
	Complaints []Complaint `json:"complaints,omitempty"`
}

// Complaint is a fault, and the command that shows more or mends it.
type Complaint struct {
	Fault string `json:"fault"`
	Next  string `json:"next"`
}
