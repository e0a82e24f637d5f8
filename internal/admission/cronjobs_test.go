package admission

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

func TestACronJobIsJudgedWithTheJobsThatItMakes(t *testing.T) {
	cron := func(name, spec, job string) string {
		return "{metadata: {name: " + name + "}, spec: {" + spec + ", jobTemplate: {spec: {" + job +
			" tasks: [{name: a, replicas: 3, template: {spec: {containers: [{name: c, image: i}]}}}]}}}}"
	}
	good := cron("nightly", "schedule: '0 3 * * *', timeZone: Europe/Berlin", "")
	for _, test := range []struct{ name, object, before, want string }{
		{"what can run", good, "", ""},
		{"no schedule", cron("nightly", "schedule: ''", ""), "", `spec.schedule: Invalid value: ""`},
		{"a schedule that is none", cron("nightly", "schedule: now", ""), "", `spec.schedule: Invalid value: "now"`},
		{"a time zone in the schedule", cron("nightly", "schedule: 'TZ=UTC 0 3 * * *'", ""), "",
			`spec.schedule: Invalid value: "TZ=UTC 0 3 * * *": schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field`},
		{"a time zone without a name", cron("nightly", "schedule: '0 3 * * *', timeZone: ''", ""), "", `spec.timeZone: Invalid value: ""`},
		{"the time zone of the machine", cron("nightly", "schedule: '0 3 * * *', timeZone: Local", ""), "", `spec.timeZone: Invalid value: "Local": timeZone can't be Local, and must be defined in https://www.iana.org/time-zones`},
		{"a time zone that nobody knows", cron("nightly", "schedule: '0 3 * * *', timeZone: Mars/North", ""), "", `spec.timeZone: Invalid value: "Mars/North"`},
		{"a long name", cron(strings.Repeat("a", 53), "schedule: '0 3 * * *'", ""), "", `metadata.name: Invalid value: "` + strings.Repeat("a", 53) + `": cronJob name must be no more than 52 characters to accommodate job name suffix (max 63 total): it has 53`},
		{"just short enough", cron(strings.Repeat("a", 52), "schedule: '0 3 * * *'", ""), "", ""},
		{"Jobs that could never run", cron("nightly", "schedule: '0 3 * * *'", "minAvailable: 4,"), "",
			`spec.jobTemplate.spec.minAvailable: Invalid value: 4: job 'minAvailable' should not be greater than total replicas in tasks, which is 3`},
		{"pods that nobody could make", strings.Replace(good, "name: c,", "name: C,", 1), "",
			`spec.jobTemplate.spec.tasks[0].template.spec.containers[0].name: Invalid value: "C"`},
		{"a queue that is not there yet", cron("nightly", "schedule: '0 3 * * *'", "queue: later,"), "", ""},
		{"too often", cron("nightly", "schedule: '@every 9s'", ""), "",
			`spec.schedule: Invalid value: "@every 9s": asks for a run every 9s; runs must be at least 10s apart (--shortest-cronjob-interval)`},
		{"just seldom enough", cron("nightly", "schedule: '@every 10s'", ""), "", ""},
		{"more often than before", cron("nightly", "schedule: '@every 2s'", ""), good, `spec.schedule: Invalid value: "@every 2s"`},
		{"as often as before", cron("nightly", "suspend: true, schedule: '@every 2s'", ""), cron("nightly", "schedule: '@every 2s'", ""), ""},
		{"another mistake", cron("nightly", "schedule: never", ""), good, `spec.schedule: Invalid value: "never"`},
		{"the same mistake", cron("nightly", "suspend: true, schedule: never", ""), cron("nightly", "schedule: never", ""), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, handler := newServer(t, &shelf{}, nil)
			request := asked{path: "/cronjobs/validate", operation: admissionv1.Create, object: test.object}
			if test.before != "" {
				request.operation, request.before = admissionv1.Update, test.before
			}
			got := refusal(ask(t, handler, request))
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
