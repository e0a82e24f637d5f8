package settings

import (
	"strings"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Others is how a ClusterQueue finds what it refers to. Each function reports false for what does not exist.
type Others struct {
	Flavor func(name string) (Flavor, bool)
	Check  func(name string) (AdmissionCheck, bool)
	Cohort func(name string) (Cohort, bool)
}

// Cause is why a queue is not in use: a reason of the condition Active, and a part of its message.
type Cause struct{ Reason, Text string }

// Causes says why a ClusterQueue cannot admit Workloads, in the order of the message. It is empty if it can.
func (q *ClusterQueue) Causes(isTerminating bool, others Others) []Cause {
	var found []Cause
	if isTerminating {
		found = append(found, Cause{v1beta2.ReasonTerminating, "is terminating"})
	}
	if q.Stop != v1beta2.StopNone {
		found = append(found, Cause{v1beta2.ReasonStopped, "is stopped"})
	}
	missing, notServed := q.missingFlavors(others)
	if len(missing) > 0 {
		found = append(found, Cause{v1beta2.ReasonFlavorNotFound, "references missing ResourceFlavor(s): " + strings.Join(missing, ",")})
	}
	var absent, inactive []string
	for _, rule := range q.Checks {
		switch check, exists := others.Check(rule.Name); {
		case !exists:
			absent = append(absent, rule.Name)
		case check.NotServed != "":
			notServed = append(notServed, "AdmissionCheck "+rule.Name+": "+check.NotServed)
		case !check.IsActive:
			inactive = append(inactive, rule.Name)
		}
	}
	if len(absent) > 0 {
		found = append(found, Cause{v1beta2.ReasonAdmissionCheckNotFound, "references missing AdmissionCheck(s): " + strings.Join(absent, ",")})
	}
	if len(inactive) > 0 {
		found = append(found, Cause{v1beta2.ReasonAdmissionCheckInactive, "references inactive AdmissionCheck(s): " + strings.Join(inactive, ",")})
	}
	for _, text := range append(notServed, q.Problem, circle(q.Cohort, others)) {
		if text != "" {
			found = append(found, Cause{v1beta2.ReasonNotSupported, text})
		}
	}
	return found
}

// missingFlavors says which flavors of a queue do not exist, and why others cannot be used.
func (q *ClusterQueue) missingFlavors(others Others) (missing, notServed []string) {
	for _, group := range q.Groups {
		for _, f := range group.Flavors {
			switch flavor, exists := others.Flavor(f.Name); {
			case !exists:
				missing = append(missing, f.Name)
			case flavor.Problem != "":
				notServed = append(notServed, "ResourceFlavor "+f.Name+": "+flavor.Problem)
			}
		}
	}
	return missing, notServed
}

// circle says that the cohorts above a queue lead back to one of them, or that one of them cannot be used.
func circle(cohort string, others Others) string {
	seen := map[string]bool{}
	for name := cohort; name != ""; {
		if seen[name] {
			return "cohort " + name + " is below itself"
		}
		seen[name] = true
		read, exists := others.Cohort(name)
		if !exists {
			return "" // it exists by being named
		}
		if read.Problem != "" {
			return "Cohort " + name + ": " + read.Problem
		}
		name = read.Parent
	}
	return ""
}
