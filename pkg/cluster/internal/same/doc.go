// Package same says whether two states of an object differ in anything that decisions depend on. Most updates are
// heartbeats and statuses that the scheduler has written itself, and should cost nothing.
package same
