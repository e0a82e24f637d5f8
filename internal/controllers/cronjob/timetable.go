package cronjob

import (
	"errors"
	"fmt"
	"strings"
	"time"

	// The time zones, for machines and images that have no database of them.
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

// maxCounted is up to where missed runs are counted. Nobody is helped by knowing of more.
const maxCounted = 100

// timetable is the times of a schedule.
type timetable struct {
	schedule cron.Schedule
}

// parse reads a schedule and the time zone it is meant in. Without a time zone it is meant in that of the process.
func parse(schedule string, zone *string) (timetable, error) {
	schedule = strings.TrimSpace(schedule)
	text := schedule
	if zone != nil {
		text = "TZ=" + *zone + " " + schedule
	}
	parsed, err := cron.ParseStandard(text)
	if err != nil {
		return timetable{}, err
	}
	if every, is := parsed.(cron.ConstantDelaySchedule); is {
		if asked, err := time.ParseDuration(schedule[len("@every "):]); err == nil && asked != every.Delay {
			return timetable{}, fmt.Errorf("%s is not a whole number of seconds from 1 up", asked)
		}
	}
	// Any start will do: a schedule that comes at all does so within the years that the library looks ahead.
	if parsed.Next(time.Unix(0, 0)).IsZero() {
		return timetable{}, errors.New("there is no such day")
	}
	return timetable{parsed}, nil
}

// next is the first time after the given one, which is a time of the schedule or from where it is counted.
func (t timetable) next(after time.Time) time.Time {
	return t.schedule.Next(after)
}

// latest returns the last time of the schedule in (after, now], and how many there are, of which it counts no more than
// one above maxCounted. The time is zero if there is none.
//
// Going from one time to the next would take as long as the controller was away, or as a clock is wrong. But whether
// there is a time left between a moment and now changes once, at the time that is looked for, so bisection finds it.
func (t timetable) latest(after, now time.Time) (latest time.Time, passed int) {
	first := t.schedule.Next(after)
	if first.IsZero() || first.After(now) {
		return time.Time{}, 0
	}
	if every, is := t.schedule.(cron.ConstantDelaySchedule); is {
		// Its times are counted from the first; it says of any moment that the next one is a delay away.
		further := now.Sub(first) / every.Delay
		return first.Add(further * every.Delay), int(min(further, maxCounted)) + 1
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
	for passed = 1; first.Before(latest) && passed <= maxCounted; passed++ {
		first = t.schedule.Next(first)
	}
	return latest, passed
}

// atLeast returns the timetable with runs that are no closer together than the interval, which is a minute at most: the five fields
// of a schedule can say no less. isLimited says that it is another one.
func (t timetable) atLeast(interval time.Duration) (limited timetable, isLimited bool) {
	every, is := t.schedule.(cron.ConstantDelaySchedule)
	if !is || every.Delay >= interval {
		return t, false
	}
	return timetable{cron.Every(interval)}, true
}

// isDense says whether several times of the schedule fall into one minute.
func (t timetable) isDense() bool {
	every, is := t.schedule.(cron.ConstantDelaySchedule)
	return is && every.Delay < time.Minute
}
