package builder

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
	"hekla.sh/hekla/test/fixture"
)

func TestPodsOfAnApplicationShareAPodGroup(t *testing.T) {
	pod := fixture.Controlled(fixture.LonePod(map[string]string{scheduling.GroupMinMemberAnnotationKey: "3"}), "apps/v1", "ReplicaSet")
	pod.Labels = map[string]string{yunikorn.SparkSelectorKey: "Spark_1"}
	group, _ := ApplicationGroup(pod, Surroundings{LabelQueue: "tenants.a"})
	if group.Name != ApplicationGroupName(pod) || !IsApplicationGroup(group) || len(group.OwnerReferences) > 0 {
		t.Errorf("it is %+v", group.ObjectMeta)
	}
	if group.Spec.MinMember != 1 || group.Spec.Queue != "tenants.a" || group.Spec.MinResources.Cpu().Value() != 2 {
		t.Errorf("it is %+v", group.Spec)
	}
	group.Annotations[yunikorn.AppIDKey] = "Spark_2"
	if IsApplicationGroup(group) {
		t.Error("it belongs to another application")
	}
	if name := ApplicationGroupName(fixture.LonePod(nil)); name != "" {
		t.Errorf("a pod of no application is in PodGroup %s", name)
	}
}

func TestNamesOfApplicationsAreToldApart(t *testing.T) {
	ids := []string{"spark-1", "Spark-1", "SPARK-1", "spark_1", "spark.1", "-", "_", "é", strings.Repeat("a", 300), strings.Repeat("a", 301), strings.Repeat("é", 300)}
	seen := map[string]string{}
	for _, id := range ids {
		name := groupNameOf(id)
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || !strings.HasPrefix(name, "podgroup-app-") {
			t.Errorf("%s has the name %s: %v", id, name, problems)
		}
		if other, is := seen[name]; is {
			t.Errorf("%s and %s share %s", id, other, name)
		}
		seen[name] = id
	}
	if name := groupNameOf("spark-1"); name != "podgroup-app-spark-1" {
		t.Errorf("a name that can stay became %s", name)
	}
}

func TestAPathNamesAQueue(t *testing.T) {
	paths := map[string]string{"root.sales.eu": "sales-eu"}
	queues := []string{"sales-eu", "research", "root.lab", "team.b"}
	byPath := func(path string) string { return paths[path] }
	exists := func(name string) bool {
		for _, queue := range queues {
			if queue == name {
				return true
			}
		}
		return false
	}
	for path, want := range map[string]string{
		"root.sales.eu": "sales-eu", "Root.Sales.EU": "sales-eu", "sales.eu": "sales-eu", "research": "research", "root.research": "research", "lab": "root.lab",
		"root.team.b": "team.b", "root.new_team.X": "new-team.x", "unknown": "unknown", "root.": "", "a..b": "", "__": "",
	} {
		name, problem := FindQueue(path, byPath, exists)
		if name != want || (problem == "") != (want != "") {
			t.Errorf("%s is queue %q (%s), want %q", path, name, problem, want)
		}
	}
}

func TestLabelsOfYuniKornCountBetweenOwnerAndNamespace(t *testing.T) {
	says := func(queue string) map[string]string {
		return map[string]string{scheduling.QueueNameAnnotationKey: queue}
	}
	for _, test := range []struct {
		name   string
		pod    map[string]string
		around Surroundings
		want   string
	}{
		{"the label", nil, Surroundings{LabelQueue: "l", Namespace: says("n")}, "l"},
		{"the pod's annotation", says("p"), Surroundings{LabelQueue: "l"}, "p"},
		{"the owner's annotation", nil, Surroundings{LabelQueue: "l", Owner: says("o")}, "o"},
		{"nothing", nil, Surroundings{DefaultQueue: "d"}, "d"},
		{"a label that names none", nil, Surroundings{LabelProblem: "no path", Namespace: says("n")}, "n"},
	} {
		var pod *corev1.Pod = fixture.LonePod(test.pod)
		group, problems := PodGroup(pod, test.around)
		if group.Spec.Queue != test.want || (len(problems) > 0) != (test.around.LabelProblem != "") {
			t.Errorf("%s: queue %s, %v", test.name, group.Spec.Queue, problems)
		}
	}
}
