package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

func TestWhatCannotBeReadIsNamedWithItsValue(t *testing.T) {
	for _, test := range []struct {
		name, schedule, zone, want string
	}{
		{"five fields", "*/5 9-17 * JAN-JUN MON-FRI", "", ""},
		{"a question mark", "*/1 * * * ?", "", ""},
		{"a name", "@hourly", "Atlantic/Reykjavik", ""},
		{"an interval", "@every 90s", "UTC", ""},
		{"spaces around", "  @every 90s ", "UTC", ""},
		{"four fields", "* * * *", "", `spec.schedule: Invalid value: "* * * *": schedule is not a valid cron expression: expected exactly 5 fields`},
		{"seconds", "0 * * * * *", "", "expected exactly 5 fields, found 6"},
		{"out of range", "60 * * * *", "", "above maximum (59)"},
		{"no day of that name", "@sometimes", "", "unrecognized descriptor"},
		{"a day that never comes", "0 0 31 2 *", "", `spec.schedule: Invalid value: "0 0 31 2 *": schedule is not a valid cron expression: there is no such day`},
		{"no interval", "@every now", "", "failed to parse duration"},
		{"an interval below a second", "@every 500ms", "", "500ms is not a whole number of seconds from 1 up"},
		{"an interval of seconds and a half", "@every 1500ms", "", "1.5s is not a whole number of seconds"},
		{"an interval backwards", "@every -1h", "", "-1h0m0s is not a whole number of seconds"},
		{"a time zone in the schedule", "TZ=UTC @daily", "", "TZ should only be set in the timeZone field"},
		{"a time zone in the schedule, and nothing else", "CRON_TZ=UTC", "", "TZ should only be set in the timeZone field"},
		{"a time zone nobody knows", "@daily", "Europe/Reykjavik", `spec.timeZone: Invalid value: "Europe/Reykjavik": invalid timeZone: unknown timeZone`},
		{"a time zone of the machine", "@daily", "local", `spec.timeZone: Invalid value: "local": timeZone can't be Local`},
		{"a path", "@daily", "../../etc/passwd", `spec.timeZone: Invalid value: "../../etc/passwd"`},
		{"more after the time zone", "@daily", "UTC @hourly", `spec.timeZone: Invalid value: "UTC @hourly"`},
		{"two mistakes", "@dayly", "Mars", "unrecognized descriptor"},
		{"two mistakes", "@dayly", "Mars", "spec.timeZone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cronJob := &batch.CronJob{
				ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: batch.CronJobSpec{Schedule: test.schedule},
			}
			if test.zone != "" {
				cronJob.Spec.TimeZone = &test.zone
			}
			err := ValidateCronJob(cronJob).ToAggregate()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	zone := ""
	err := ValidateCronJob(&batch.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a", MaxCronJobNameLength+1)},
		Spec:       batch.CronJobSpec{Schedule: "@daily", TimeZone: &zone},
	}).ToAggregate()
	for _, want := range []string{"metadata.name", "cronJob name must be no more than 52 characters to accommodate job name suffix (max 63 total): it has 53", "spec.timeZone", "timeZone must be nil or non-empty string"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
