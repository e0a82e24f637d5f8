// Package same says whether two states of an object differ in anything that a decision rests on. Most updates are heartbeats and
// statuses that the scheduler has written itself; they must cost nothing.
package same
