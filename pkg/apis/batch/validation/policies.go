package validation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

// validatePolicies reports policies that answer nothing, or of which more than one would answer the same.
func validatePolicies(policies batch.LifecyclePolicies, path *field.Path) field.ErrorList {
	problems := validateVocabulary(policies, path)
	seen := sets.New[string]()
	once := func(path *field.Path, value, format string) {
		if seen.Has(value) {
			problems = append(problems, duplicate(path, value, format, value))
		}
		seen.Insert(value)
	}
	for i := range policies {
		policy, path := &policies[i], path.Index(i)
		events := eventsNamed(policy)
		switch {
		case policy.ExitCode != nil && len(events) > 0:
			problems = append(problems, field.Invalid(path.Child("exitCode"), *policy.ExitCode, "must not specify event and exitCode simultaneously"))
		case policy.ExitCode == nil && len(events) == 0:
			problems = append(problems, field.Required(path.Child("event"), "either event and exitCode should be specified"))
		case policy.ExitCode != nil && *policy.ExitCode == 0:
			problems = append(problems, field.Invalid(path.Child("exitCode"), 0, "0 is not a valid error code: it is success, and cannot be answered"))
		case policy.ExitCode != nil:
			once(path.Child("exitCode"), fmt.Sprint(*policy.ExitCode), "duplicate exitCode %s")
		}
		for _, event := range events {
			if !slices.Contains(PolicyEvents(), event) {
				continue
			}
			once(path.Child("event"), string(event), "duplicate event %s  across different policy") // with Volcano's two spaces
		}
		if policy.Delay() < 0 {
			problems = append(problems, field.Invalid(path.Child("timeout"), policy.Timeout.Duration.String(), "must not be negative"))
		}
	}
	if seen.Has(string(bus.AnyEvent)) && slices.ContainsFunc(PolicyEvents()[1:], func(event bus.Event) bool { return seen.Has(string(event)) }) {
		problems = append(problems, field.Invalid(path, bus.AnyEvent, "if there's * here, no other policy should be here: it stands for all events"))
	}
	return problems
}

// validateVocabulary reports actions and events of policies that there are not.
func validateVocabulary(policies batch.LifecyclePolicies, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for i := range policies {
		policy, path := &policies[i], path.Index(i)
		if !slices.Contains(JobActions(), policy.Action) {
			problems = append(problems, field.Invalid(path.Child("action"), policy.Action, fmt.Sprintf("invalid policy action: valid actions are %v", JobActions())))
		}
		for _, event := range eventsNamed(policy) {
			if !slices.Contains(PolicyEvents(), event) {
				problems = append(problems, field.Invalid(path.Child("event"), event, fmt.Sprintf("invalid policy event: valid events are %v", PolicyEvents())))
			}
		}
	}
	return problems
}

// eventsNamed are the events that a policy names, in order. One that is named twice is meant once.
func eventsNamed(policy *batch.LifecyclePolicy) []bus.Event {
	return slices.Compact(slices.Sorted(slices.Values(policy.AllEvents())))
}

// PolicyEvents are the events that a policy may name; AnyEvent comes first.
func PolicyEvents() []bus.Event {
	return []bus.Event{bus.AnyEvent, bus.PodFailedEvent, bus.PodEvictedEvent, bus.PodPendingEvent,
		bus.JobUnknownEvent, bus.TaskCompletedEvent, bus.TaskFailedEvent, bus.JobUpdatedEvent}
}

// JobActions are the actions that policies and Commands may ask of a Job, the most final first. When several are asked
// for at the same time, whichever happened first is chance. The Job controller does the most final one, and success
// before failure.
func JobActions() []bus.Action {
	return []bus.Action{
		bus.CompleteJobAction, bus.TerminateJobAction, bus.AbortJobAction, bus.RestartJobAction,
		bus.RestartTaskAction, bus.RestartPartitionAction, bus.RestartPodAction, bus.ResumeJobAction,
	}
}
