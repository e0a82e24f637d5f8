package cronjob

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// MaxNameLength is how long the name of a CronJob may be: those of its Jobs have up to 11 characters more, and 63 are the
// most that a label can tell.
const MaxNameLength = 52

// Validate says what is wrong with a CronJob, its jobTemplate aside: the rules for that are those of a Job.
func Validate(cronJob *batch.CronJob) field.ErrorList {
	_, problems := read(cronJob)
	return problems
}

// read returns the timetable of a CronJob that nothing is wrong with.
func read(cronJob *batch.CronJob) (timetable, field.ErrorList) {
	var problems field.ErrorList
	if length := len(cronJob.Name); length > MaxNameLength {
		problems = append(problems, field.Invalid(field.NewPath("metadata", "name"), cronJob.Name,
			fmt.Sprintf("cronJob name must be no more than %d characters to accommodate job name suffix (max 63 total): it has %d, and the name of a Job adds up to 11",
				MaxNameLength, length)))
	}
	spec := field.NewPath("spec")
	zone := cronJob.Spec.TimeZone
	if problem := checkZone(zone); problem != "" {
		problems = append(problems, field.Invalid(spec.Child("timeZone"), *zone, problem))
		zone = nil
	}
	schedule := cronJob.Spec.Schedule
	if strings.Contains(schedule, "TZ") {
		return timetable{}, append(problems, field.Invalid(spec.Child("schedule"), schedule,
			"schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"))
	}
	times, err := parse(schedule, zone)
	if err != nil {
		said := "schedule is not a valid cron expression: "
		if schedule == "" {
			said = "schedule is required, but got empty: "
		}
		problems = append(problems, field.Invalid(spec.Child("schedule"), schedule, said+err.Error()))
	}
	return times, problems
}

// checkZone says what is wrong with a time zone, if anything.
func checkZone(zone *string) string {
	switch {
	case zone == nil:
		return ""
	case *zone == "":
		return "timeZone must be nil or non-empty string, got empty string: leave it out, or name one of the IANA database"
	case strings.EqualFold(*zone, "Local"):
		return "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones, or left out"
	}
	if _, err := time.LoadLocation(*zone); err != nil {
		return "invalid timeZone: unknown timeZone: " + err.Error()
	}
	return ""
}
