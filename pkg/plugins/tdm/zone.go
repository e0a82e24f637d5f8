package tdm

import (
	"errors"
	"strings"
	"time"
)

// zone is a name with the hours at which it is open.
type zone struct {
	name     string
	hours    string        // as they are written
	from, to time.Duration // since midnight
}

var errHours = errors.New(`two times of day, such as "09:00-17:30"`)

// readZone reads the hours of a zone.
func readZone(name, hours string) (zone, error) {
	first, second, found := strings.Cut(strings.TrimSpace(hours), "-")
	if !found {
		return zone{}, errHours
	}
	from, err := time.Parse("15:04", strings.TrimSpace(first))
	if err != nil {
		return zone{}, errHours
	}
	to, err := time.Parse("15:04", strings.TrimSpace(second))
	if err != nil {
		return zone{}, errHours
	}
	return zone{name: name, hours: hours, from: sinceMidnight(from), to: sinceMidnight(to)}, nil
}

func sinceMidnight(t time.Time) time.Duration {
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
}

// isOpen reports whether the zone is open. It compares the local time of day, so that days of 23 or 25 hours are like
// any other.
func (z *zone) isOpen(now time.Time) bool {
	clock := sinceMidnight(now)
	switch {
	case z.from == z.to:
		return true
	case z.from < z.to:
		return z.from <= clock && clock < z.to
	}
	return z.from <= clock || clock < z.to
}

// next is when the zone opens or closes next, zero if it never does.
func (z *zone) next(now time.Time) time.Time {
	var next time.Time
	if z.from == z.to {
		return next
	}
	year, month, day := now.Date()
	for _, clock := range []time.Duration{z.from, z.to} {
		// On the day the clocks change an hour may be there twice, or not at all; the day after tomorrow is far enough.
		for ahead := range 3 {
			when := time.Date(year, month, day+ahead, int(clock/time.Hour), int(clock%time.Hour/time.Minute), 0, 0, now.Location())
			if when.After(now) {
				if next.IsZero() || when.Before(next) {
					next = when
				}
				break
			}
		}
	}
	return next
}
