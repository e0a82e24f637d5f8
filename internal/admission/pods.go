package admission

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// changePod sends a pod to the nodes of the first resource group that it belongs to, and makes it wait for its queue if
// it asks for that.
func changePod(_ context.Context, s *server, asked change[*corev1.Pod]) error {
	pod, now := asked.after, s.settings.Load()
	for i := range now.groups {
		if group := &now.groups[i]; group.has(pod) {
			group.place(pod)
			break
		}
	}
	if now.gatesPods && slices.Contains(now.schedulerNames, pod.Spec.SchedulerName) && asksForGate(pod) && pod.Spec.NodeName == "" {
		pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: scheduling.QueueAllocationGateKey})
	}
	return nil
}

// asksForGate reports whether a pod asks for the gate of queue admission and does not have it yet.
func asksForGate(pod *corev1.Pod) bool {
	return pod.Annotations[scheduling.QueueAllocationGateKey] == "true" &&
		!slices.ContainsFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == scheduling.QueueAllocationGateKey })
}

// budget is a number of pods from 1 up, or a percentage from 1% to 99%.
var budget = regexp.MustCompile(`^(0*[1-9][0-9]{0,8}|0*[1-9][0-9]?%)$`)

// judgePod says what is wrong with how many of its job a pod says may be missing.
func judgePod(_ context.Context, s *server, _ client.Reader, asked change[*corev1.Pod]) (ruling, error) {
	pod := asked.after
	if !slices.Contains(s.settings.Load().schedulerNames, pod.Spec.SchedulerName) {
		return ruling{}, nil
	}
	var said ruling
	path, found := field.NewPath("metadata", "annotations"), 0
	for _, key := range []string{scheduling.JDBMinAvailableKey, scheduling.JDBMaxUnavailableKey} {
		value, is := pod.Annotations[key]
		if !is {
			continue
		}
		found++
		if !budget.MatchString(value) {
			said.refuse(field.Invalid(path.Key(key), value, wrongBudget(key, value)))
		}
	}
	if found > 1 {
		said.refuse(field.Forbidden(path, fmt.Sprintf("not allow configure multiple annotations <[%s %s]> at same time: they exclude each other",
			scheduling.JDBMinAvailableKey, scheduling.JDBMaxUnavailableKey)))
	}
	return said, nil
}

// wrongBudget says what a budget would have to be.
func wrongBudget(key, value string) string {
	must := "it must be a positive integer"
	if strings.Contains(value, "%") {
		must = "it must be a valid percentage which between 1% ~ 99%"
	}
	return fmt.Sprintf("invalid value <%q> for %s, %s: a number of pods from 1 up, or a percentage from 1%% to 99%%", value, key, must)
}
