package forecast

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// ETA is when a job will start.
type ETA struct {
	// Earliest and Latest are the ends of the range, absent if it is not known.
	Earliest *time.Time `json:"earliest,omitempty"`
	Latest   *time.Time `json:"latest,omitempty"`
	// Basis is the weakest of the grounds: the kind by which to judge the range.
	Basis Kind `json:"basis,omitempty"`
	// Grounds are what the range follows from, the strongest first.
	Grounds []Ground `json:"grounds,omitempty"`
	// Assumes says what must hold for the range.
	Assumes string `json:"assumes,omitempty"`
	// UnknownBecause says why there is no range.
	UnknownBecause string `json:"unknownBecause,omitempty"`
	// Never says that the job cannot start as things are.
	Never bool `json:"never,omitempty"`
	// Message is all that as a sentence.
	Message string `json:"message"`
}

// Kind is a kind of ground.
type Kind string

// The kinds of grounds, from the strongest to the weakest.
const (
	// Room: there is room now, or will be once pods have left that are leaving.
	Room Kind = "Room"
	// Declared: jobs say how long they run, or by when they are ended.
	Declared Kind = "Declared"
	// Measured: jobs of the same name ran before.
	Measured Kind = "Measured"
	// SameQueue: other jobs of the same queue ran before.
	SameQueue Kind = "SameQueue"
	// Pace: so many jobs of the queue have started lately.
	Pace Kind = "Pace"
)

// Kinds are all of them, the strongest first.
var Kinds = []Kind{Room, Declared, Measured, SameQueue, Pace}

// Ground is one thing that a range follows from.
type Ground struct {
	Kind Kind `json:"kind"`
	// Jobs is the number of jobs that must end first and whose ends are foreseen by it; for Pace, of those that have
	// started.
	Jobs int `json:"jobs,omitempty"`
	// Message says it in words.
	Message string `json:"message"`
}

// assumed is what every range assumes.
const assumed = "no later job is served before it, nothing is evicted, and the nodes stay as they are"

// Unknown is the answer for a reason.
func Unknown(because string) *ETA {
	return &ETA{UnknownBecause: because, Message: "unknown, because " + because}
}

// Impossible is the answer about a job that cannot start as things are.
func Impossible(why string) *ETA {
	return &ETA{Never: true, Message: "never, as things are: " + why}
}

// between is the answer with a range.
func between(now, earliest, latest time.Time, grounds []Ground) *ETA {
	e := &ETA{Earliest: &earliest, Latest: &latest, Grounds: grounds, Assumes: assumed, Basis: Room}
	var why []string
	for _, g := range grounds {
		e.Basis = g.Kind
		why = append(why, g.Message)
	}
	from, to := "now", duration.HumanDuration(latest.Sub(now))
	if d := earliest.Sub(now); d >= time.Second {
		from = duration.HumanDuration(d)
	}
	e.Message = fmt.Sprintf("in %s to %s, if %s: %s", from, to, assumed, strings.Join(why, "; "))
	if from == "now" {
		e.Message = fmt.Sprintf("within %s, if %s: %s", to, assumed, strings.Join(why, "; "))
	}
	return e
}

// sentence says of a kind what its jobs have in common.
func sentence(k Kind, jobs int) string {
	which := map[Kind]string{
		Declared:  "declares how long it runs|declare how long they run",
		Measured:  "ran before under the same name|ran before under the same names",
		SameQueue: "is like others of its queue that ran before|are like others of their queues that ran before",
	}[k]
	one, many, _ := strings.Cut(which, "|")
	if jobs == 1 {
		return "1 job that ends before it " + one
	}
	return fmt.Sprintf("%d jobs that end before it %s", jobs, many)
}

// awaited says what jobs with some causes wait for that no replay brings. The codes are those of packages verdict and
// explain.
var awaited = map[string]string{
	"QueueClosed":                "its queue is closed",
	"NotEnoughTasks":             "pods of it are missing",
	"NotEnoughPodsOfTask":        "pods of it are missing",
	"FailedCreate":               "the API server refuses its pods",
	"InvalidSpec":                "its PodGroup is invalid",
	"SchedulingGated":            "scheduling gates hold its pods",
	"ResourceReservationTimeout": "it has waited too long for its gang",
	"PodsMissing":                "it was admitted and its pods did not come",
	"NamespaceBackingOff":        "other jobs of its namespace were admitted and brought no pods",
	"Refused":                    "a plugin refuses it",
	"ForeignScheduler":           "its PodGroup belongs to another scheduler",
	"VolumeUnavailable":          "it waits for a volume",
	"DeviceUnavailable":          "it waits for a device",
}

// Awaits returns what a job with a cause waits for that no job gives up when it ends, "" if there is nothing of the
// kind.
func Awaits(code string) string { return awaited[code] }
