// Package forecast checks what the scheduler says about when jobs will start. Its tests run random clusters in the
// simulator, in which jobs come, start and end. At random moments they ask when jobs that wait will start, and later
// compare that with the true start.
//
// The clusters are of kinds, described in scenarios_test.go. Of each kind the table of docs/why/eta.md says how many of
// the ranges hold the true start, and how wide they are; the test fails if the table is not what comes out:
//
//	go test ./test/forecast -run TestRanges -rewrite
//
// writes it again. For what the ranges promise, nine of ten true starts must be inside, and they may not be wider than
// a stated bound.
package forecast
