package validation

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"hekla.sh/hekla/internal/timetable"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// MaxCronJobNameLength is how long the name of a CronJob may be: those of its Jobs have up to 11 characters more, and
// 63 are the most that a label can tell.
const MaxCronJobNameLength = 52

// ValidateCronJob says what is wrong with a CronJob, its jobTemplate aside: the rules for that are those of a Job.
func ValidateCronJob(cronJob *batch.CronJob) field.ErrorList {
	_, problems := ReadCronJob(cronJob)
	return problems
}

// ReadCronJob returns what ValidateCronJob says, and the timetable of a CronJob that nothing is wrong with.
func ReadCronJob(cronJob *batch.CronJob) (timetable.Timetable, field.ErrorList) {
	var problems field.ErrorList
	if length := len(cronJob.Name); length > MaxCronJobNameLength {
		problems = append(problems, field.Invalid(field.NewPath("metadata", "name"), cronJob.Name,
			fmt.Sprintf("cronJob name must be no more than %d characters to accommodate job name suffix (max 63 total): it has %d, and the name of a Job adds up to 11",
				MaxCronJobNameLength, length)))
	}
	spec := field.NewPath("spec")
	zone := cronJob.Spec.TimeZone
	if problem := checkZone(zone); problem != "" {
		problems = append(problems, field.Invalid(spec.Child("timeZone"), *zone, problem))
		zone = nil
	}
	schedule := cronJob.Spec.Schedule
	if strings.Contains(schedule, "TZ") {
		return timetable.Timetable{}, append(problems, field.Invalid(spec.Child("schedule"), schedule,
			"schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"))
	}
	times, err := timetable.Parse(schedule, zone)
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

// ValidateCronJobInterval refuses a schedule whose runs are closer together than a bound, which is a minute at most:
// the five fields of a schedule cannot ask for more. One that cannot be read is left to ValidateCronJob. Zero allows
// all.
func ValidateCronJobInterval(cronJob *batch.CronJob, shortest time.Duration) field.ErrorList {
	times, err := timetable.Parse(cronJob.Spec.Schedule, nil)
	if err != nil {
		return nil
	}
	every, is := times.Interval()
	if !is || every >= shortest {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "schedule"), cronJob.Spec.Schedule,
		fmt.Sprintf("asks for a run every %s; runs must be at least %s apart (--shortest-cronjob-interval)", every, shortest))}
}
