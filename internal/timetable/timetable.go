package timetable

import (
	"errors"
	"fmt"
	"strings"
	"time"

	// The time zones, for machines and images that have no database of them.
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

// MaxCounted is up to where missed runs are counted. More would help no user.
const MaxCounted = 100

// Timetable is the times of a schedule.
type Timetable struct {
	schedule cron.Schedule
}

// Parse reads a schedule and the time zone it is meant in. Without a time zone it is meant in that of the process.
func Parse(schedule string, zone *string) (Timetable, error) {
	schedule = strings.TrimSpace(schedule)
	// The library panics on a schedule that is a time zone only, and reads one as part of the schedule.
	if strings.HasPrefix(schedule, "TZ=") || strings.HasPrefix(schedule, "CRON_TZ=") {
		return Timetable{}, errors.New("a schedule names no time zone")
	}
	text := schedule
	if zone != nil {
		text = "TZ=" + *zone + " " + schedule
	}
	parsed, err := cron.ParseStandard(text)
	if err != nil {
		return Timetable{}, err
	}
	if every, is := parsed.(cron.ConstantDelaySchedule); is {
		if asked, err := time.ParseDuration(schedule[len("@every "):]); err == nil && asked != every.Delay {
			return Timetable{}, fmt.Errorf("%s is not a whole number of seconds from 1 up", asked)
		}
	}
	// Any start will do: a schedule that comes at all does so within the years that the library looks ahead.
	if parsed.Next(time.Unix(0, 0)).IsZero() {
		return Timetable{}, errors.New("there is no such day")
	}
	return Timetable{parsed}, nil
}

// Next is the first time after the given one, which is a time of the schedule or from where it is counted.
func (t Timetable) Next(after time.Time) time.Time {
	return t.schedule.Next(after)
}

// Latest returns the last time of the schedule in (after, now], and how many there are, of which it counts no more than
// one above MaxCounted. The time is zero if there is none.
//
// Going from one time to the next would take as long as the controller was away, or as a clock is wrong. But whether
// there is a time left between a moment and now changes once, at the time that is looked for, so bisection finds it.
func (t Timetable) Latest(after, now time.Time) (latest time.Time, passed int) {
	first := t.schedule.Next(after)
	if first.IsZero() || first.After(now) {
		return time.Time{}, 0
	}
	if every, is := t.schedule.(cron.ConstantDelaySchedule); is {
		// Its times are counted from the first; it says of any moment that the next one is a delay away.
		further := now.Sub(first) / every.Delay
		return first.Add(further * every.Delay), int(min(further, MaxCounted)) + 1
	}
	isLeft := func(moment time.Time) bool {
		next := t.schedule.Next(moment)
		return !next.IsZero() && !next.After(now)
	}
	before, behind := after, now
	for behind.Sub(before) > time.Second {
		middle := before.Add(behind.Sub(before) / 2)
		if isLeft(middle) {
			before = middle
		} else {
			behind = middle
		}
	}
	latest = t.schedule.Next(before)
	for passed = 1; first.Before(latest) && passed <= MaxCounted; passed++ {
		first = t.schedule.Next(first)
	}
	return latest, passed
}

// AtLeast returns the timetable with runs that are no closer together than the interval, which is a minute at most: the
// five fields of a schedule can say no less. isLimited says that it is another one.
func (t Timetable) AtLeast(interval time.Duration) (limited Timetable, isLimited bool) {
	every, is := t.schedule.(cron.ConstantDelaySchedule)
	if !is || every.Delay >= interval {
		return t, false
	}
	return Timetable{cron.Every(interval)}, true
}

// IsDense says whether several times of the schedule fall into one minute.
func (t Timetable) IsDense() bool {
	every, is := t.schedule.(cron.ConstantDelaySchedule)
	return is && every.Delay < time.Minute
}

// Interval is the time between two runs of a schedule like "@every 90s"; false for one of five fields.
func (t Timetable) Interval() (every time.Duration, is bool) {
	delay, is := t.schedule.(cron.ConstantDelaySchedule)
	return delay.Delay, is
}
