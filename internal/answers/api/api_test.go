package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/explain"
)

// A client asks about a pod at its path, and reads the answer out of an object of the API.
func ExampleReply() {
	fmt.Println(api.Pods.Path("team", "train-0"))
	sent, err := json.Marshal(api.Reply[api.Pod]{TypeMeta: metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: api.Pods.Kind},
		Metadata: api.Metadata{Name: "train-0", Namespace: "team"}, Answer: api.Pod{Pod: explain.Pod{Node: "n1"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var read api.Reply[api.Pod]
	err = json.Unmarshal(sent, &read)
	fmt.Println(read.Kind, read.Metadata.Name, "on", read.Answer.Node, err)
	// Output:
	// /apis/answers.hekla.sh/v1alpha1/namespaces/team/pods/train-0
	// PodAnswer train-0 on n1 <nil>
}

// The diagnosis is asked how many gangs of eight pods with eight GPUs could start now.
func ExampleParseGang() {
	gang, err := api.ParseGang("8xnvidia.com/gpu=8,cpu=500m")
	gpus, cpus := gang.Request["nvidia.com/gpu"], gang.Request[corev1.ResourceCPU]
	fmt.Println(gang.Pods, gpus.String(), cpus.String(), err)
	// Output: 8 8 500m <nil>
}

func TestAGangThatIsNoneIsRefusedWithItsText(t *testing.T) {
	for text, why := range map[string]string{
		"":                "the number of pods before the x is missing",
		"cpu=4":           "the number of pods before the x is missing",
		"0xcpu=4":         "the number of pods before the x is missing",
		"-1xcpu=4":        "the number of pods before the x is missing",
		"8x":              `"" is no request`,
		"8xcpu":           `"cpu" is no request`,
		"8x=4":            `"=4" is no request`,
		"8xcpu=four":      `"four" is no quantity`,
		"8xcpu=-4":        `"-4" is no quantity`,
		"8xcpu=1,cpu=2":   "cpu is requested twice",
		"8xcpu=1,":        `"" is no request`,
		"8xcpu=1e9999999": `"1e9999999" is no quantity`,
	} {
		if gang, err := api.ParseGang(text); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("gang %q: %s", text, why)) {
			t.Errorf("%q is %+v, %v; want %s", text, gang, err, why)
		}
	}
}

func TestEveryResourceHasItsOwnPath(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range api.Resources {
		path := r.Path("team", "one")
		if is := strings.Contains(path, "/namespaces/team/"); is != r.Namespaced || seen[path] || !strings.HasSuffix(path, "/one") {
			t.Errorf("%s is asked about at %s", r.Name, path)
		}
		seen[path] = true
		if all := r.Path("team", ""); all+"/one" != path {
			t.Errorf("all %s are asked about at %s", r.Name, all)
		}
	}
}

// Clients of the same version know these fields: new ones are added here, and none is taken away or renamed.
func TestFieldsAreOnlyAddedWithinAVersion(t *testing.T) {
	for kind, c := range map[string]struct {
		document string
		into     any
	}{
		"JobAnswer": {`{"kind": "", "apiVersion": "", "metadata": {"name": "", "namespace": ""}, "answer": {"job": {}, "cause": {}, "ahead": [{"job": "", "priority": 1,
			"because": "", "reason": ""}], "proposals": [], "queued": {}, "returns": "", "noProposals": "", "eta": {}, "story": []}}`, &api.Reply[api.Job]{}},
		"PodAnswer": {`{"metadata": {}, "answer": {"pod": "", "job": "", "queue": "", "status": "", "priority": 1, "requests": {}, "node": "", "verdict": {},
			"refusals": [], "leavesFor": "", "plan": "", "evictable": true, "refused": "", "notAsked": [], "cause": {}, "story": []}}`, &api.Reply[api.Pod]{}},
		"QueueAnswer": {`{"metadata": {}, "answer": {"queue": "", "parent": "", "state": "", "problem": "", "priority": 1, "weight": 1, "reclaimable": true, "holds": {},
			"requests": {}, "keptForAdmitted": {}, "deserved": {}, "guarantee": {}, "capability": {}, "share": 0.5, "jobs": {}, "children": [], "takesFrom": [],
			"givesTo": [], "story": []}}`, &api.Reply[api.Queue]{}},
		"SubmissionAnswer": {`{"podGroup": null, "pods": []}`, &api.Submission{}},
	} {
		decoder := json.NewDecoder(strings.NewReader(c.document))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(c.into); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
