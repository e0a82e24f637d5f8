package cache

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/verdict"
)

const preemptable = schedulingv1beta1.PreemptableKey

func groupAnnotated(key, value string) func(*schedulingv1beta1.PodGroup) {
	return func(g *schedulingv1beta1.PodGroup) { g.Annotations = map[string]string{key: value} }
}

func groupLabelled(key, value string) func(*schedulingv1beta1.PodGroup) {
	return func(g *schedulingv1beta1.PodGroup) { g.Labels = map[string]string{key: value} }
}

func TestThePodsMarkOutranksItsGangsAndAnAnnotationALabel(t *testing.T) {
	for name, test := range map[string]struct {
		pod   *corev1.Pod
		group *schedulingv1beta1.PodGroup // nil: there is none
		want  string                      // "" if there is no mark
	}{
		"nobody says anything":        {pod("p", in("g")), group("g", ""), ""},
		"the pod's annotation":        {pod("p", in("g"), annotated(preemptable, "1"), labelled(preemptable, "2")), group("g", "", groupAnnotated(preemptable, "3")), "1"},
		"the pod's label":             {pod("p", in("g"), labelled(preemptable, "2")), group("g", "", groupAnnotated(preemptable, "3")), "2"},
		"the gang's annotation":       {pod("p", in("g")), group("g", "", groupAnnotated(preemptable, "3"), groupLabelled(preemptable, "4")), "3"},
		"the gang's label":            {pod("p", in("g")), group("g", "", groupLabelled(preemptable, "4")), "4"},
		"the gang is not known":       {pod("p", in("g")), nil, ""},
		"no gang":                     {pod("p", annotated(preemptable, "1")), nil, "1"},
		"no gang, and nothing said":   {pod("p"), nil, ""},
		"another scheduler's pod":     {pod("p", in("g"), on("n"), scheduler("other")), group("g", "", groupAnnotated(preemptable, "3")), "3"},
		"an empty mark is a mark too": {pod("p", in("g"), annotated(preemptable, "")), group("g", "", groupAnnotated(preemptable, "3")), "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Set{test.pod})
			if test.group != nil {
				c.Apply(Set{test.group})
			}
			mark, ok := c.Task(key("p")).Mark()
			if ok && mark == "" {
				mark = "empty"
			}
			if mark != test.want || ok != (test.want != "") {
				t.Errorf("the mark is %q, %t, want %q", mark, ok, test.want)
			}
		})
	}
}

func TestATaskStartedWhenItsPodDidOrGotItsNodeOrWasCreated(t *testing.T) {
	started, scheduled := birth.Add(2*time.Minute), birth.Add(time.Minute)
	ran := func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: started} }
	got := func(status corev1.ConditionStatus) podOption {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue},
				{Type: corev1.PodScheduled, Status: status, LastTransitionTime: metav1.Time{Time: scheduled}}}
		}
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want time.Time
	}{
		"it started":         {pod("p", got(corev1.ConditionTrue), ran), started},
		"it got its node":    {pod("p", got(corev1.ConditionTrue)), scheduled},
		"it waits":           {pod("p", got(corev1.ConditionFalse)), birth},
		"nothing is told it": {pod("p"), birth},
	} {
		t.Run(name, func(t *testing.T) {
			if have := newCluster(Set{test.pod}).Task(key("p")).Started(); !have.Equal(test.want) {
				t.Errorf("started %s, want %s", have, test.want)
			}
		})
	}
}

func TestWhoNeverPreemptsSaysSoItselfOrByTheClassOfItsJob(t *testing.T) {
	class := func(name string, policy corev1.PreemptionPolicy, isDefault bool) *schedulingv1.PriorityClass {
		p := priorityClass(name, 5)
		p.PreemptionPolicy, p.GlobalDefault = &policy, isDefault
		return p
	}
	says := func(policy corev1.PreemptionPolicy) podOption {
		return func(p *corev1.Pod) { p.Spec.PreemptionPolicy = &policy }
	}
	const never, lower = corev1.PreemptNever, corev1.PreemptLowerPriority
	for name, test := range map[string]struct {
		events []Event
		want   bool
	}{
		"nobody says so":                        {[]Event{Set{group("g", "")}}, false},
		"the pod says so":                       {[]Event{Set{group("g", "")}, Set{pod("p", in("g"), says(never))}}, true},
		"the pod says the opposite":             {[]Event{Set{group("g", "")}, Set{pod("p", in("g"), says(lower))}}, false},
		"a pod without a gang says so":          {[]Event{Set{pod("p", says(never))}}, true},
		"the class says so":                     {[]Event{Set{class("c", never, false)}, Set{group("g", "", ranked("c"))}}, true},
		"the class says so later":               {[]Event{Set{group("g", "", ranked("c"))}, Set{class("c", never, false)}}, true},
		"the class says so no more":             {[]Event{Set{class("c", never, false)}, Set{group("g", "", ranked("c"))}, Set{class("c", lower, false)}}, false},
		"the class is gone":                     {[]Event{Set{class("c", never, false)}, Set{group("g", "", ranked("c"))}, Delete{class("c", never, false)}}, false},
		"the gang is gone":                      {[]Event{Set{class("c", never, false)}, Set{group("g", "", ranked("c"))}, Delete{group("g", "")}}, false},
		"the class says so, and the pod not":    {[]Event{Set{class("c", never, false)}, Set{group("g", "", ranked("c"))}, Set{pod("p", in("g"), says(lower))}}, true},
		"another class says so":                 {[]Event{Set{class("d", never, false)}, Set{group("g", "", ranked("c"))}}, false},
		"the default class says so too late":    {[]Event{Set{class("d", never, true)}, Set{group("g", "")}}, false},
		"of two defaults the first by name not": {[]Event{Set{class("d", never, true)}, Set{class("c", lower, true)}, Set{group("g", "")}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Set{pod("p", in("g"))})
			c.Apply(test.events...)
			if have := c.Task(key("p")).NeverPreempts(); have != test.want {
				t.Errorf("never preempts: %t, want %t", have, test.want)
			}
		})
	}
}

func TestAJobIsLoneIfItsPodGroupWasMadeForAPod(t *testing.T) {
	owned := func(version, kind string, controls bool) func(*schedulingv1beta1.PodGroup) {
		return func(g *schedulingv1beta1.PodGroup) {
			g.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "x", UID: "x", Controller: &controls}}
		}
	}
	for name, test := range map[string]struct {
		events []Event
		want   bool
	}{
		"made by hand":              {[]Event{Set{group("g", "")}}, false},
		"made for a pod":            {[]Event{Set{group("g", "", owned("v1", "Pod", true))}}, true},
		"made for a Job":            {[]Event{Set{group("g", "", owned("batch.volcano.sh/v1alpha1", "Job", true))}}, false},
		"made for another Pod":      {[]Event{Set{group("g", "", owned("example.com/v1", "Pod", true))}}, false},
		"a pod owns it only partly": {[]Event{Set{group("g", "", owned("v1", "Pod", false))}}, false},
		"only its pods are known":   {[]Event{Set{pod("p", in("g"))}}, false},
		"it is gone":                {[]Event{Set{pod("p", in("g"))}, Set{group("g", "", owned("v1", "Pod", true))}, Delete{group("g", "")}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if have := newCluster(test.events...).Job(jobID("g")).IsLone(); have != test.want {
				t.Errorf("lone: %t, want %t", have, test.want)
			}
		})
	}
}

func TestAPreemptorIsRetriedOnceOtherPodsMayBeEvicted(t *testing.T) {
	busy := func(changes ...func(*schedulingv1beta1.PodGroup)) Event {
		return Set{group("busy", "q", append(changes, needs("cpu=9"), at(schedulingv1beta1.PodGroupInqueue))...)}
	}
	holding := func(options ...podOption) Event {
		return Set{pod("b", append([]podOption{in("busy"), on("n"), asks("cpu=4"), running}, options...)...)}
	}
	for name, test := range map[string]struct {
		before, then []Event
		want         bool
	}{
		"nothing happens":                    {nil, nil, false},
		"a pod there is marked":              {nil, []Event{holding(annotated(preemptable, "true"))}, true},
		"a pod there is marked by a label":   {nil, []Event{holding(labelled(preemptable, "true"))}, true},
		"a pod there loses its mark":         {[]Event{holding(annotated(preemptable, "false"))}, []Event{holding()}, true},
		"a pod there changes otherwise":      {nil, []Event{holding(annotated("a", "b"))}, false},
		"a pod that waits is marked":         {nil, []Event{Set{pod("w", in("h"), annotated(preemptable, "true"))}}, false},
		"a gang there is marked":             {nil, []Event{busy(groupAnnotated(preemptable, "true"))}, true},
		"a gang there is marked by a label":  {nil, []Event{busy(groupLabelled(preemptable, "true"))}, true},
		"a gang there needs fewer":           {nil, []Event{busy(func(g *schedulingv1beta1.PodGroup) { g.Spec.MinMember = 0 })}, true},
		"a gang there needs fewer of a task": {nil, []Event{busy(func(g *schedulingv1beta1.PodGroup) { g.Spec.MinTaskMember = map[string]int32{"a": 1} })}, true},
		"a gang there is of less priority":   {nil, []Event{busy(ranked("low"))}, true},
		"a gang there is shown again":        {nil, []Event{busy()}, false},
		"a gang comes later than its pods":   {[]Event{Set{pod("late", in("late"), on("n"))}}, []Event{Set{group("late", "q")}}, true},
		"a gang comes that has no pods":      {nil, []Event{Set{group("late", "q")}}, false},
		"a pod gets a node":                  {nil, []Event{Set{pod("w", in("h"), on("n"))}}, true},
		"a budget comes":                     {nil, []Event{Set{pdbOf("x", "", 1)}}, false},
		"a budget goes":                      {[]Event{Set{pdbOf("x", "", 1)}}, []Event{Delete{pdbOf("x", "", 1)}}, true},
		"a budget allows more":               {[]Event{Set{pdbOf("x", "", 1)}}, []Event{Set{pdbOf("x", "", 2)}}, true},
		"a budget allows less":               {[]Event{Set{pdbOf("x", "", 1)}}, []Event{Set{pdbOf("x", "", 0)}}, false},
		"a budget selects others":            {[]Event{Set{pdbOf("x", "", 1)}}, []Event{Set{pdbOf("x", "a", 1)}}, true},
		"a budget is shown again":            {[]Event{Set{pdbOf("x", "", 1)}}, []Event{Set{pdbOf("x", "", 1)}}, false},
		"a budget nobody knows goes":         {nil, []Event{Delete{pdbOf("x", "", 1)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := crowded()
			c.Apply(test.before...)
			j := c.Job(jobID("g"))
			c.SetVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpPod, Looked: true})
			c.Apply(test.then...)
			c.Settle()
			if have := c.ShouldRetry(j, birth); have != test.want {
				t.Errorf("retried: %t, want %t", have, test.want)
			}
		})
	}
}
