package timetable

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func mustParse(t interface{ Fatal(...any) }, schedule, zone string) Timetable {
	var name *string
	if zone != "" {
		name = &zone
	}
	times, err := Parse(schedule, name)
	if err != nil {
		t.Fatal(err)
	}
	return times
}

func moment(t interface{ Fatal(...any) }, text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestTheLatestRunIsFoundHoweverManyHavePassed(t *testing.T) {
	for _, test := range []struct {
		schedule, zone, after, now, want string
		passed                           int
	}{
		{"0 * * * *", "UTC", "2026-03-01T10:00:00Z", "2026-03-01T10:59:59Z", "", 0},
		{"0 * * * *", "UTC", "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", "2026-03-01T11:00:00Z", 1},
		{"0 * * * *", "UTC", "2026-03-01T10:00:00Z", "2026-03-01T14:30:00Z", "2026-03-01T14:00:00Z", 4},
		{"* * * * *", "UTC", "2026-03-01T10:00:00Z", "2026-03-01T11:40:00Z", "2026-03-01T11:40:00Z", 100},
		{"* * * * *", "UTC", "1996-03-01T10:00:00Z", "2026-03-01T11:40:07Z", "2026-03-01T11:40:00Z", 101},
		// Dense times and then none for long: nothing about two of them tells where the others are.
		{"* 9 1 1 *", "UTC", "2020-01-01T09:30:00Z", "2026-06-01T00:00:00Z", "2026-01-01T09:59:00Z", 101},
		{"0 0 29 2 *", "UTC", "2020-03-01T00:00:00Z", "2027-01-01T00:00:00Z", "2024-02-29T00:00:00Z", 1},
		// The hour that is left out in spring, and the one that comes twice in autumn.
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z", "", 0},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z", "2026-10-25T01:30:00Z", 2},
		{"0 9 * * *", "Asia/Tokyo", "2026-03-01T10:00:00Z", "2026-03-02T10:00:00Z", "2026-03-02T00:00:00Z", 1},
		// Counted from the last one, whatever the clock says.
		{"@every 7m", "", "2026-03-01T10:00:13Z", "2026-03-01T10:30:00Z", "2026-03-01T10:28:13Z", 4},
		{"@every 1s", "", "2026-03-01T10:00:13Z", "2036-03-01T10:30:00Z", "2036-03-01T10:30:00Z", 101},
		{"@monthly", "UTC", "2026-01-31T23:59:59Z", "2026-03-15T00:00:00Z", "2026-03-01T00:00:00Z", 2},
	} {
		t.Run(test.schedule+" "+test.zone+" until "+test.now, func(t *testing.T) {
			latest, passed := mustParse(t, test.schedule, test.zone).Latest(moment(t, test.after), moment(t, test.now))
			want := time.Time{}
			if test.want != "" {
				want = moment(t, test.want)
			}
			if !latest.Equal(want) || passed != test.passed {
				t.Errorf("%s, %d passed; want %s, %d", latest, passed, test.want, test.passed)
			}
		})
	}
}

func TestTheLatestRunIsTheLastOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(low, high int, name string) string {
			return rapid.OneOf(rapid.Just("*"), rapid.Map(rapid.IntRange(low, high), func(n int) string { return fmt.Sprint(n) }),
				rapid.Map(rapid.IntRange(2, 20), func(n int) string { return fmt.Sprintf("*/%d", n) })).Draw(t, name)
		}
		schedule := strings.Join([]string{
			number(0, 59, "minute"), number(0, 23, "hour"), number(1, 28, "day"), number(1, 12, "month"), number(0, 6, "weekday"),
		}, " ")
		if rapid.IntRange(0, 9).Draw(t, "isEvery") == 0 {
			schedule = fmt.Sprintf("@every %ds", rapid.IntRange(1, 9999).Draw(t, "every"))
		}
		zone := rapid.SampledFrom([]string{"", "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"}).Draw(t, "zone")
		times := mustParse(t, schedule, zone)
		after := time.Unix(rapid.Int64Range(1700000000, 1800000000).Draw(t, "after"), rapid.Int64Range(0, 1e9-1).Draw(t, "nanoseconds"))
		now := after.Add(time.Duration(rapid.Int64Range(0, int64(200*time.Hour)).Draw(t, "passed")))

		var want time.Time
		count := 0
		for next := times.Next(after); !next.IsZero() && !next.After(now); next = times.Next(next) {
			want = next
			count++
		}
		latest, passed := times.Latest(after, now)
		if !latest.Equal(want) || passed != min(count, MaxCounted+1) {
			t.Fatalf("%q in %q from %s to %s: %s, %d passed; want %s, %d", schedule, zone, after, now, latest, passed, want, count)
		}
	})
}

func TestRunsAreNoCloserTogetherThanTheBound(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		schedule  string
		bound     time.Duration
		next      time.Duration
		isLimited bool
	}{
		{"@every 1s", 10 * time.Second, 10 * time.Second, true},
		{"@every 10s", 10 * time.Second, 10 * time.Second, false},
		{"@every 1s", 0, time.Second, false},
		{"* * * * *", time.Minute, time.Minute, false},
	} {
		times, err := Parse(test.schedule, nil)
		if err != nil {
			t.Fatal(err)
		}
		times, isLimited := times.AtLeast(test.bound)
		if next := times.Next(noon).Sub(noon); next != test.next || isLimited != test.isLimited {
			t.Errorf("%s under a bound of %s: the next run is after %s, limited is %t", test.schedule, test.bound, next, isLimited)
		}
	}
}

func TestAScheduleNamesNoTimeZone(t *testing.T) {
	zone := "UTC"
	for _, schedule := range []string{"TZ=UTC", "TZ=", "CRON_TZ=UTC", " TZ=UTC @daily", "TZ=UTC 0 3 * * *"} {
		for _, of := range []*string{nil, &zone} {
			if _, err := Parse(schedule, of); err == nil {
				t.Errorf("%q was parsed", schedule)
			}
		}
	}
}
