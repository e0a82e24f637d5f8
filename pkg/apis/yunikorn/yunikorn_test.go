package yunikorn_test

import (
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/pkg/apis/yunikorn"
)

func TestTheFirstKeyThatIsWrittenCounts(t *testing.T) {
	type both struct{ labels, annotations map[string]string }
	is := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	for _, test := range []struct {
		name               string
		pod                both
		application, queue string
	}{
		{"neither", both{}, "", ""},
		{"the label of the new form", both{is(yunikorn.AppIDKey, "a", yunikorn.QueueKey, "q"), is(yunikorn.AppIDKey, "b", yunikorn.QueueKey, "r")}, "a", "q"},
		{"its annotation", both{is(yunikorn.SparkSelectorKey, "a", "queue", "q"), is(yunikorn.AppIDKey, "b", yunikorn.QueueKey, "r")}, "b", "r"},
		{"that of Spark", both{is(yunikorn.SparkSelectorKey, "a", yunikorn.ApplicationIDKey, "b", "queue", "q"), nil}, "a", "q"},
		{"the label of the old form", both{is(yunikorn.ApplicationIDKey, "a"), is(yunikorn.ApplicationIDKey, "b", "queue", "no label")}, "a", ""},
		{"its annotation", both{nil, is(yunikorn.ApplicationIDKey, "b")}, "b", ""},
		{"an empty one is not written", both{is(yunikorn.AppIDKey, "", yunikorn.QueueKey, ""), is(yunikorn.AppIDKey, "b", yunikorn.QueueKey, "r")}, "b", "r"},
	} {
		if got := yunikorn.ApplicationID(test.pod.labels, test.pod.annotations); got != test.application {
			t.Errorf("%s: application %q, want %q", test.name, got, test.application)
		}
		if got := yunikorn.QueuePath(test.pod.labels, test.pod.annotations); got != test.queue {
			t.Errorf("%s: queue %q, want %q", test.name, got, test.queue)
		}
	}
}

func TestTaskGroupsAreReadAsOperatorsWriteThem(t *testing.T) {
	groups, err := yunikorn.ReadTaskGroups(`[
		{"name": "spark-driver", "minMember": 1, "minResource": {"cpu": "1", "memory": "2Gi"}},
		{"name": "spark-executor", "minMember": 3, "minResource": {"cpu": 1.5}, "nodeSelector": {"disk": "ssd"},
		 "tolerations": [{"key": "spot", "operator": "Exists"}], "labels": {"a": "b"}}]`)
	if err != nil {
		t.Fatal(err)
	}
	if len(groups) != 2 || groups[0].Name != "spark-driver" || groups[1].MinMember != 3 || groups[1].MinResource.Cpu().MilliValue() != 1500 ||
		groups[1].NodeSelector["disk"] != "ssd" || groups[1].Tolerations[0].Key != "spot" {
		t.Errorf("read as %+v", groups)
	}
}

func TestProblemsOfTaskGroupsAreListedTogether(t *testing.T) {
	for text, wants := range map[string][]string{
		``:     {"not a JSON list"},
		`{}`:   {"not a JSON list"},
		`[]`:   {"no task group"},
		`null`: {"no task group"},
		`[{}]`: {"[0].name is missing", "[0].minMember is 0", "[0].minResource is missing"},
		`[{"name":"a","minMember":-1,"minResource":{"cpu":"-1"}},{"name":"a","minMember":1,"minResource":{"cpu":"1"}}]`: {
			"[0].minMember is -1", "[0].minResource.cpu is negative", `[1].name: "a" stands twice`},
		`[{"name":"a","minMember":1,"minResource":{"cpu":"many"}}]`:                                                   {"not a JSON list"},
		`[{"name":"a","minMember":1,"minResource":{"cpu":"1e-2000000000"}}]`:                                          {"exponent"},
		`[{"name":"a","minMember":99999,"minResource":{"cpu":1}},{"name":"b","minMember":2,"minResource":{"cpu":1}}]`: {"100001 pods"},
	} {
		groups, err := yunikorn.ReadTaskGroups(text)
		if err == nil || groups != nil {
			t.Errorf("%s: read as %+v", text, groups)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", text, err, want)
			}
		}
	}
}

func TestGangParametersHaveDefaults(t *testing.T) {
	for text, want := range map[string]yunikorn.GangParameters{
		"": {Timeout: 15 * time.Minute},
		"placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard":    {Timeout: 30 * time.Second, IsHard: true},
		"gangSchedulingStyle=Soft other=1":                           {Timeout: 15 * time.Minute},
		"placeholderTimeoutInSeconds=0":                              {Timeout: 15 * time.Minute},
		"placeholderTimeoutInSeconds=soon gangSchedulingStyle=Stiff": {Timeout: 15 * time.Minute},
		"placeholderTimeoutInSeconds=-1":                             {Timeout: 15 * time.Minute},
		"placeholderTimeoutInSeconds=99999999999":                    {Timeout: 15 * time.Minute},
	} {
		got, problems := yunikorn.ReadGangParameters(text)
		if got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
		wantProblems := 0
		for _, bad := range []string{"soon", "Stiff", "-1", "99999999999"} {
			if strings.Contains(text, bad) {
				wantProblems++
			}
		}
		if len(problems) != wantProblems {
			t.Errorf("%q: problems %v", text, problems)
		}
	}
}
