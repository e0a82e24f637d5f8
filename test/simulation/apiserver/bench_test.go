package apiserver

import (
	"fmt"
	"testing"
)

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		s, err := New(Options{})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

// BenchmarkRestore measures a start from a snapshot with our definitions, and the first request for an object of one.
func BenchmarkRestore(b *testing.B) {
	first, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer first.Close()
	if err := first.Create(installed(b)...); err != nil {
		b.Fatal(err)
	}
	from := first.Snapshot()
	for b.Loop() {
		s, err := New(Options{From: from})
		if err != nil {
			b.Fatal(err)
		}
		ask(b, s, 200, "GET", "/apis/batch.volcano.sh/v1alpha1/jobs", "")
		s.Close()
	}
}

// BenchmarkRequests measures a life of a pod: made, bound, its status, read, deleted: five requests an operation.
func BenchmarkRequests(b *testing.B) {
	s, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	const pods = "/api/v1/namespaces/default/pods"
	n := 0
	for b.Loop() {
		n++
		name := fmt.Sprintf("%s/p%d", pods, n)
		for _, r := range [][3]string{
			{"POST", pods, fmt.Sprintf(`{"metadata":{"name":"p%d"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, n)},
			{"POST", name + "/binding", fmt.Sprintf(`{"metadata":{"name":"p%d"},"target":{"kind":"Node","name":"n"}}`, n)},
			{"PATCH", name + "/status", `{"status":{"phase":"Running"}}`},
			{"GET", name, ""},
			{"DELETE", name, `{"gracePeriodSeconds":0}`},
		} {
			made := request(b, r[0], r[1], r[2])
			if r[0] == "PATCH" {
				made.Header.Set("Content-Type", "application/merge-patch+json")
			}
			if response := s.Handle(made); response.Code > 299 {
				b.Fatalf("%v: %s", r, response.Body)
			}
		}
		if n%1000 == 0 {
			if err := s.Compact(s.Revision()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(5*n)/b.Elapsed().Seconds(), "requests/s")
}
