package script

import (
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

const small = `# What it shows.
source: own
rules: J1

actions: allocate
plugins: gang, {name: drf, enableHierarchy: true} | predicates

node a b cpu=2 example.com/gpu=1 label:zone=x taint:k=v:NoSchedule
queue q weight=2 deserved:cpu=1 capability:cpu=4 guarantee:cpu=500m reclaimable=false
gang g queue=q min=2 class=high wants:cpu=2 preemptable
  2 pods cpu=1 on=a,b label:app=x
  pod task=master task-priority=5 near:app=x # not a comment
`

func TestParse(t *testing.T) {
	s, err := Parse(strings.Replace(small, " # not a comment", "", 1) + "cycle 2\n> 1 bind work/g-2 to a\ndelete Pod work/g-0\ncycle\n")
	if err != nil {
		t.Fatal(err)
	}
	if s.About != "What it shows.\n" || len(s.Steps) != 2 || s.Steps[0].Cycles != 2 || s.Steps[1].Cycles != 1 ||
		!gocmp.Equal(s.Steps[0].Decided, []string{"1 bind work/g-2 to a"}) || !gocmp.Equal(s.Steps[1].Deletes, []string{"Pod work/g-0"}) {
		t.Errorf("read %+v", s)
	}
	var nodes, pods []string
	for _, o := range s.Steps[0].Objects {
		switch o := o.(type) {
		case *corev1.Node:
			nodes = append(nodes, o.Name)
			if gpu := o.Status.Allocatable["example.com/gpu"]; gpu.Value() != 1 || o.Labels["zone"] != "x" || o.Spec.Taints[0].Effect != corev1.TaintEffectNoSchedule {
				t.Errorf("node %s is %+v", o.Name, o)
			}
		case *schedulingv1beta1.Queue:
			if o.Spec.Weight != 2 || o.Spec.Deserved.Cpu().Value() != 1 || *o.Spec.Reclaimable {
				t.Errorf("the queue is %+v", o.Spec)
			}
		case *schedulingv1beta1.PodGroup:
			if o.Spec.MinMember != 2 || o.Spec.PriorityClassName != "high" || o.Annotations[schedulingv1beta1.PreemptableKey] != "true" {
				t.Errorf("the gang is %+v", o)
			}
		case *corev1.Pod:
			pods = append(pods, o.Name+" on "+o.Spec.NodeName)
		case *corev1.ConfigMap:
			want := "actions: \"allocate\"\ntiers:\n- plugins:\n  - {name: gang}\n  - {name: drf, enableHierarchy: true}\n- plugins:\n  - {name: predicates}\n"
			if diff := gocmp.Diff(want, o.Data["volcano-scheduler.conf"]); diff != "" {
				t.Errorf("the configuration differs (-want +got):\n%s", diff)
			}
		}
	}
	if !gocmp.Equal(nodes, []string{"a", "b"}) || !gocmp.Equal(pods, []string{"g-0 on a", "g-1 on b", "g-2 on "}) {
		t.Errorf("nodes %v, pods %v", nodes, pods)
	}
	if now := s.Rewrite([][]string{{"1 bind work/g-2 to b", "after all"}, nil}); !strings.Contains(now, "cycle 2\n> 1 bind work/g-2 to b\n> after all\ndelete Pod") {
		t.Errorf("rewritten is\n%s", now)
	}
}

func TestAgesQueuesAndReasonsAreRead(t *testing.T) {
	s, err := Parse("source: own\nrules: J1\nqueue q annotation:example.com/a=b\npod p cpu=1 queue=q age=5m on=n\nfate work/p late refused=it is protected\ncycle\n")
	if err != nil {
		t.Fatal(err)
	}
	q, p := s.Steps[0].Objects[0].(*schedulingv1beta1.Queue), s.Steps[0].Objects[1].(*corev1.Pod)
	if q.Annotations["example.com/a"] != "b" || p.Annotations[schedulingv1beta1.QueueNameAnnotationKey] != "q" {
		t.Errorf("queue %v, pod %v", q.Annotations, p.Annotations)
	}
	if at := Start.Add(-5 * time.Minute); !p.CreationTimestamp.Time.Equal(at) || !p.Status.StartTime.Time.Equal(at) {
		t.Errorf("the pod is of %s and started at %s, want %s", p.CreationTimestamp, p.Status.StartTime, at)
	}
	if want := (Fate{Late: true, Refused: "it is protected"}); s.Fates["work/p"] != want {
		t.Errorf("the fate is %+v, want %+v", s.Fates["work/p"], want)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for mistake, want := range map[string]string{
		"node n cpu=lots\ncycle":               `line 1: "cpu=lots" is no amount`,
		"node n color=red\ncycle":              `line 1: a node has no "color=red"`,
		"queue q size=3\ncycle":                `line 1: a queue has no "size=3"`,
		"gang g min=two\ncycle":                `line 1: "min=two" is no number`,
		"gang g\n  pod cpu=1 color=red\ncycle": `line 2: a pod has no "color=red"`,
		"gang g\n  3 pods on=a,b\ncycle":       `line 2: 3 pods are on 2 nodes`,
		"  pod cpu=1\ncycle":                   `line 1: "pod cpu=1" is indented, and no gang stands before it`,
		"job j\ncycle":                         `line 1: there is no command "job"`,
		"color: red\ncycle":                    `line 1: there is no setting "color"`,
		"cycle 0":                              `line 1: "0" is no number of cycles`,
		"rest\ncycle":                          `line 2: nothing follows rest`,
		"> bound":                              `line 1: a decision stands under cycle or rest`,
		"cycle\nnode n cpu=1":                  `line 2: nothing runs after the last objects`,
		"yaml\n  kind: Pod\ncycle":             `line 3: a manifest has apiVersion, kind and metadata.name`,
		"fate work/p color=red\ncycle":         `line 1: a fate is not "color=red"`,
		"cycle":                                `source and rules must be given`,
		"source: own\nrules: J1":               `it runs no cycle`,
	} {
		if _, err := Parse(mistake); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of %q it is said %v, want %s", mistake, err, want)
		}
	}
	if _, err := Parse(small + "cycle"); err == nil || !strings.Contains(err.Error(), `a pod has no "#"`) {
		t.Errorf("a comment behind a line is %v", err)
	}
}

func TestPlacesOfPodsAndSwitchesAreRead(t *testing.T) {
	s, err := Parse("source: own\nrules: S4\nhypernode s tier=1 nodes=a,b\nhypernode r tier=2 hypernodes=s\ngang g tier=1 running\n" +
		"  pod near:app=x apart:app=y@zone bare\ngang h soft\n  pod spread:app=z@zone\nrest\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range s.Steps[0].Objects {
		switch o := o.(type) {
		case *topologyv1alpha1.HyperNode:
			for _, m := range o.Spec.Members {
				got = append(got, fmt.Sprint(o.Name, " of tier ", o.Spec.Tier, " has ", m.Type, " ", m.Selector.ExactMatch.Name))
			}
		case *schedulingv1beta1.PodGroup:
			got = append(got, fmt.Sprint(o.Name, " ", o.Status.Phase, " ", o.Spec.NetworkTopology.Mode, " ", o.Spec.NetworkTopology.HighestTierAllowed != nil))
		case *corev1.Pod:
			got = append(got, fmt.Sprint(o.Name, " owned ", len(o.OwnerReferences)))
			if a := o.Spec.Affinity; a != nil {
				near, apart := a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0], a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
				got = append(got, fmt.Sprint(near.LabelSelector.MatchLabels, near.TopologyKey, apart.LabelSelector.MatchLabels, apart.TopologyKey))
			}
			for _, c := range o.Spec.TopologySpreadConstraints {
				got = append(got, fmt.Sprint(c.LabelSelector.MatchLabels, c.TopologyKey, c.MaxSkew, c.WhenUnsatisfiable))
			}
		}
	}
	want := []string{"s of tier 1 has Node a", "s of tier 1 has Node b", "r of tier 2 has HyperNode s", "g Running hard true", "g-0 owned 0",
		"map[app:x]kubernetes.io/hostnamemap[app:y]zone", "h Inqueue soft false", "h-0 owned 1", "map[app:z]zone1DoNotSchedule"}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("read otherwise (-want +got):\n%s", diff)
	}
	if _, err := Parse("source: own\nrules: S4\nhypernode s tire=1\nrest\n"); err == nil || !strings.Contains(err.Error(), `a hypernode has no "tire=1"`) {
		t.Errorf("an unknown word is answered by %v", err)
	}
}
