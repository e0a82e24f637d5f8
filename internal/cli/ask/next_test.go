package ask

import (
	"strings"
	"testing"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

func TestWhyOfAWorkloadEndsInTheCommandThatHelps(t *testing.T) {
	ahead := []queued.Neighbor{{Workload: "other/head"}}
	for next, test := range map[string]struct {
		code string
		queued.Workload
	}{
		"hekla why workload head -n other":   {"HeldUp", queued.Workload{State: queued.Waiting, ClusterQueue: "q", Ahead: ahead}},
		"hekla diag":                         {explain.WorkloadsOff, queued.Workload{State: queued.Waiting, ClusterQueue: "q"}},
		"hekla tree q":                       {v1beta2.ReasonWaitingForQuota, queued.Workload{State: queued.Waiting, ClusterQueue: "q", Ahead: ahead}},
		"hekla tree hidden":                  {"HeldUp", queued.Workload{State: queued.Waiting, ClusterQueue: "hidden", Ahead: []queued.Neighbor{{Workload: "a job"}}}},
		"hekla why workload leaves -n other": {v1beta2.ReasonWaitingForPreemptedWorkloads, queued.Workload{State: queued.Promised, WaitsFor: []queued.Neighbor{{Workload: "other/leaves"}}}},
		"hekla list localqueue -n team":      {v1beta2.ReasonMisconfigured, queued.Workload{State: queued.NotQueued}},
		"hekla list clusterqueue":            {v1beta2.ReasonMisconfigured, queued.Workload{State: queued.NotQueued, Wants: "q"}},
		"hekla resume clusterqueue q":        {v1beta2.ReasonSuspended, queued.Workload{State: queued.NotQueued, Wants: "q", Stopped: "ClusterQueue q"}},
		"hekla resume localqueue l -n team":  {v1beta2.ReasonSuspended, queued.Workload{State: queued.NotQueued, Wants: "q", Stopped: "LocalQueue l"}},
		"hekla resume workload w -n team":    {v1beta2.ReasonDeactivated, queued.Workload{State: queued.NotQueued, Wants: "q"}},
		"kubectl describe clusterqueues.kueue.x-k8s.io q": {v1beta2.ReasonSuspended,
			queued.Workload{State: queued.NotQueued, Wants: "q", Inactive: []string{"references missing ResourceFlavor(s): gone"}}},
		"kubectl -n team describe workloads.kueue.x-k8s.io w": {queued.Reserved, queued.Workload{State: queued.Reserved, ClusterQueue: "q"}},
	} {
		test.Workload.Workload = "team/w"
		answer := &api.Job{}
		answer.Queued, answer.Cause = &test.Workload, explain.Cause{Code: test.code, Waits: true}
		var text strings.Builder
		p := printer{program: "hekla", namespace: "team", name: "a-job-of-it"}
		if p.job(&text, answer); !strings.HasSuffix(text.String(), "\nNext: "+next+"\n") {
			t.Errorf("of %+v is said\n%s", test, &text)
		}
	}
}

func TestWhatTheJobOfAPodGroupIsCalled(t *testing.T) {
	const uid = "27427dea-291c-4a6a-b303-90214d4d6cd8"
	for group, want := range map[string]string{
		"team/train-" + uid:         "team/train",
		"team/podgroup-" + uid:      "team/podgroup-" + uid, // of a lone pod: no job is called podgroup
		"team/my-podgroup-" + uid:   "team/my-podgroup",
		"team/train":                "team/train",
		"team/podgroup-app-reports": "team/podgroup-app-reports",
		"":                          "",
	} {
		if got := jobOf(group); got != want {
			t.Errorf("the job of PodGroup %q is called %q, want %q", group, got, want)
		}
	}
}
