package properties

import (
	"fmt"
	"strconv"
	"time"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Properties are the settings of one queue in annotations. The zero value is a queue that writes none.
type Properties struct {
	// TakesFence is set by preemption.policy fence, GivesNothing by disabled.
	TakesFence, GivesNothing bool
	// PreemptionDelay is nil if it is not written.
	PreemptionDelay *time.Duration
	// PriorityFence is set by priority.policy fence.
	PriorityFence  bool
	PriorityOffset int32
	// FairOrder is set to true by application.sort.policy fair, and to false by fifo and stateaware.
	FairOrder *bool
	// PriorityOrder is set by application.sort.priority.
	PriorityOrder *bool
	// MaxApplications is 0 if it is not written.
	MaxApplications int
	// QuotaPreemptionDelay is nil if it is not written.
	QuotaPreemptionDelay *time.Duration
}

// Problem is a value that cannot be read.
type Problem struct {
	Key, Value string
	Allowed    string // what may be written, a noun phrase
}

// String says what is wrong, without the queue.
func (p Problem) String() string {
	return fmt.Sprintf("annotation %s is %q, allowed is %s", p.Key, p.Value, p.Allowed)
}

// property is one annotation: set stores its value, and reports whether it can be read.
type property struct {
	key, allowed string
	set          func(p *Properties, value string) bool
}

// all are the properties in the order in which problems are listed.
func all() []property {
	return []property{
		{scheduling.PreemptionPolicyKey, "default, fence or disabled", func(p *Properties, value string) bool {
			p.TakesFence, p.GivesNothing = value == "fence", value == "disabled"
			return value == "default" || p.TakesFence || p.GivesNothing
		}},
		{scheduling.PreemptionDelayKey, "a duration above 0, such as 30s", func(p *Properties, value string) bool {
			return setDuration(&p.PreemptionDelay, value, 1)
		}},
		{scheduling.PriorityPolicyKey, "default or fence", func(p *Properties, value string) bool {
			p.PriorityFence = value == "fence"
			return value == "default" || p.PriorityFence
		}},
		{scheduling.PriorityOffsetKey, "a whole number from -2147483648 to 2147483647", func(p *Properties, value string) bool {
			offset, err := strconv.ParseInt(value, 10, 32)
			if err == nil {
				p.PriorityOffset = int32(offset)
			}
			return err == nil
		}},
		{scheduling.ApplicationSortPolicyKey, "fifo, fair or stateaware, which is fifo", func(p *Properties, value string) bool {
			return setChoice(&p.FairOrder, value, "fair", "fifo", "stateaware")
		}},
		{scheduling.ApplicationSortPriorityKey, "enabled or disabled", func(p *Properties, value string) bool {
			return setChoice(&p.PriorityOrder, value, "enabled", "disabled")
		}},
		{scheduling.MaxApplicationsKey, "a whole number, at least 1", func(p *Properties, value string) bool {
			number, err := strconv.ParseInt(value, 10, 32)
			if err != nil || number < 1 {
				return false
			}
			p.MaxApplications = int(number)
			return true
		}},
		{scheduling.QuotaPreemptionDelayKey, "a duration such as 1h, or 0 for none", func(p *Properties, value string) bool {
			return setDuration(&p.QuotaPreemptionDelay, value, 0)
		}},
	}
}

// setDuration stores a duration that is at least some.
func setDuration(to **time.Duration, value string, least time.Duration) bool {
	d, err := time.ParseDuration(value)
	if err != nil || d < least {
		return false
	}
	*to = &d
	return true
}

// setChoice stores true for one value and false for the others.
func setChoice(to **bool, value, yes string, no ...string) bool {
	for i, choice := range append([]string{yes}, no...) {
		if value == choice {
			isYes := i == 0
			*to = &isYes
			return true
		}
	}
	return false
}

// Written returns the first annotation of a queue that only the plugin guaranteed-shares reads, or the import of
// YuniKorn has written, "" if there is none.
func Written(annotations map[string]string) string {
	for _, property := range all() {
		if _, is := annotations[property.key]; is {
			return property.key
		}
	}
	if _, is := annotations[scheduling.QueuePathKey]; is {
		return scheduling.QueuePathKey
	}
	return ""
}

// Keys are the annotations that are read.
func Keys() []string {
	var keys []string
	for _, property := range all() {
		keys = append(keys, property.key)
	}
	return keys
}

// Read reads the annotations of a queue.
func Read(annotations map[string]string) (p Properties, problems []Problem) {
	if len(annotations) == 0 {
		return p, nil
	}
	for _, property := range all() {
		value, isWritten := annotations[property.key]
		if !isWritten || property.set(&p, value) {
			continue
		}
		problems = append(problems, Problem{Key: property.key, Value: value, Allowed: property.allowed})
	}
	return p, problems
}
