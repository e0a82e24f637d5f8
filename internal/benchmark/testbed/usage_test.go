package testbed

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const apiServerMetrics = `# HELP apiserver_request_total [STABLE] Counter of apiserver requests
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 7
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="binding",verb="POST",version="v1"} 5000
apiserver_request_total{code="409",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="binding",verb="POST",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="events.k8s.io",resource="events",scope="resource",subresource="",verb="PATCH",version="v1"} 3
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="events",scope="resource",subresource="",verb="PATCH",version="v1"} 4
# TYPE apiserver_request_total_of_another_kind counter
apiserver_request_total_of_another_kind{verb="POST"} 1
`

func TestWritesThatAreRefusedForWhatTheyAskAreWrong(t *testing.T) {
	writes := Writes{
		BindingRequest: 5000, "POST pods/binding 409": 2, "PATCH podgroups/status 404": 1, "POST pods/eviction 429": 3, "PATCH pods/status 503": 1,
		"PATCH queues/status 422": 4, "DELETE pods 403": 1,
	}
	want := []string{"the API server refused 1 times: DELETE pods 403", "the API server refused 4 times: PATCH queues/status 422"}
	if difference := cmp.Diff(want, writes.Refused()); difference != "" {
		t.Error(difference)
	}
}

func TestWritesAreReadFromTheMetricsOfTheAPIServer(t *testing.T) {
	writes, err := parseWrites(apiServerMetrics)
	if err != nil {
		t.Fatal(err)
	}
	want := Writes{BindingRequest: 5000, "POST pods/binding 409": 2, "PATCH events 200": 7}
	if difference := cmp.Diff(want, writes); difference != "" {
		t.Errorf("(-want +got):\n%s", difference)
	}
	later := Writes{BindingRequest: 5003, "POST pods/binding 409": 2, "PATCH events 200": 7, "POST leases 201": 1}
	if difference := cmp.Diff(Writes{BindingRequest: 3, "POST leases 201": 1}, later.Since(writes)); difference != "" {
		t.Errorf("since the earlier reading (-want +got):\n%s", difference)
	}
}
