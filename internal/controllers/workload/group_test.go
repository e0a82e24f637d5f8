package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// podOf is a pod by a few words: its name, and what it is.
func podOf(text string) *corev1.Pod {
	words := strings.Fields(text)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: words[0], Annotations: map[string]string{}}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	isDeleted := slices.Contains(words, "deleted") || slices.Contains(words, "forced")
	if isDeleted {
		grace := int64(30)
		if slices.Contains(words, "forced") || !slices.Contains(words, "running") {
			grace = 0
		}
		asked := noon
		if slices.Contains(words, "long-ago") {
			asked = noon.Add(-time.Hour)
		}
		pod.DeletionGracePeriodSeconds = &grace
		pod.DeletionTimestamp = &metav1.Time{Time: asked.Add(time.Duration(grace) * time.Second)}
	}
	for _, word := range words[1:] {
		ended := func(at time.Time) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(at)}}}}
		}
		switch word {
		case "gated":
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: v1beta2.AdmissionGate}}
		case "running":
			pod.Status.Phase, pod.Spec.NodeName = corev1.PodRunning, "n"
		case "failed":
			pod.Status.Phase, pod.Spec.NodeName = corev1.PodFailed, "n"
		case "succeeded":
			pod.Status.Phase, pod.Spec.NodeName = corev1.PodSucceeded, "n"
		case "before":
			ended(noon.Add(-2 * time.Hour))
		case "after":
			ended(noon.Add(time.Second))
		case "last":
			pod.Annotations[v1beta2.RetriableInGroupAnnotation] = "false"
		case "fast":
			pod.Annotations[v1beta2.PodGroupFastAdmissionAnnotation] = "true"
		case "controlled":
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "job"}, corev1.SchemeGroupVersion.WithKind("Any"))}
		}
	}
	return pod
}

func groupOf(total int32, pods ...string) *group {
	g := &group{name: "g", total: total}
	for _, text := range pods {
		g.add(podOf(text))
	}
	return g
}

// workloadIn is a Workload with some conditions that are True.
func workloadIn(state string) *v1beta2.Workload {
	if state == "none" {
		return nil
	}
	w := &v1beta2.Workload{Spec: v1beta2.WorkloadSpec{PodSets: []v1beta2.PodSet{{Name: "main", Count: 3}}}}
	for _, kind := range strings.Fields(state) {
		if kind == "Deleted" {
			w.DeletionTimestamp = &metav1.Time{Time: noon}
			continue
		}
		conditions.Set(w, kind, true, v1beta2.ReasonPreempted, "why", noon)
	}
	return w
}

func namesOf(pods []*corev1.Pod) string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestPodsAreKeptAsLongAsTheyHaveToBeCounted(t *testing.T) {
	const admitted = "QuotaReserved Admitted"
	for name, test := range map[string]struct {
		state string
		pods  []string // of a group of three
		over  string
		again time.Duration
	}{
		"all run":                              {admitted, []string{"a running", "b running", "c running"}, "", 0},
		"there is no Workload":                 {"none", []string{"a gated", "b gated deleted", "c failed"}, "b c", 0},
		"the Workload is being deleted":        {admitted + " Deleted", []string{"a running", "b failed", "c gated"}, "a b c", 0},
		"the group has ended":                  {admitted + " Finished", []string{"a succeeded", "b succeeded deleted", "c succeeded"}, "a b c", 0},
		"one has failed":                       {admitted, []string{"a running", "b running", "c failed"}, "", 0},
		"one has failed and was deleted":       {admitted, []string{"a running", "b running", "c failed deleted"}, "", 0},
		"one that failed is replaced":          {admitted, []string{"a running", "b running", "c failed deleted", "d gated"}, "c", 0},
		"one that failed and is there is":      {admitted, []string{"a running", "b running", "c failed", "d running"}, "c", 0},
		"of two the one before is replaced":    {admitted, []string{"a running", "b failed deleted", "c failed deleted long-ago", "d gated"}, "c", 0},
		"one leaves, and another has come":     {admitted, []string{"a running", "b running", "c running deleted", "d gated"}, "", 0},
		"one has succeeded and was deleted":    {admitted, []string{"a running", "b running", "c succeeded deleted before long-ago"}, "", 0},
		"one that waited was deleted":          {"", []string{"a gated", "b gated", "c gated deleted"}, "c", 0},
		"one was deleted by force":             {admitted, []string{"a running", "b running", "c running forced"}, "c", 0},
		"one of a controller was deleted":      {admitted, []string{"a running", "b running", "c failed deleted controlled"}, "c", 0},
		"all were evicted":                     {"Evicted", []string{"a failed deleted", "b failed deleted", "c deleted"}, "", 0},
		"all were evicted an hour ago":         {"Evicted", []string{"a failed deleted long-ago", "b failed deleted long-ago", "c deleted long-ago"}, "", 0},
		"of the evicted one is replaced":       {"Evicted", []string{"a failed deleted", "b failed deleted", "c deleted long-ago", "d gated"}, "c", 0},
		"all were deleted":                     {admitted, []string{"a failed deleted", "b failed deleted", "c succeeded after deleted"}, "", replacedWithin},
		"all were deleted an hour ago":         {admitted, []string{"a failed deleted long-ago", "b deleted long-ago", "c failed deleted long-ago"}, "a b c", 0},
		"all were, and one is leaving":         {admitted, []string{"a failed deleted long-ago", "b running deleted", "c failed deleted long-ago"}, "", 0},
		"all that are left have failed":        {admitted, []string{"a failed", "b failed deleted long-ago", "c failed deleted long-ago"}, "", 0},
		"those that have succeeded stay":       {admitted, []string{"a succeeded", "b succeeded", "c failed deleted long-ago"}, "", 0},
		"all that are left succeeded and went": {admitted, []string{"a succeeded deleted before long-ago", "b failed deleted long-ago"}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := groupOf(3, test.pods...)
			over, again := g.uncounted(workloadIn(test.state), noon)
			if got := namesOf(over); got != test.over || again != test.again {
				t.Errorf("not counted are %q, again in %s; want %q and %s", got, again, test.over, test.again)
			}
		})
	}
}

func TestAWorkloadIsMadeOfPodsThatWaitOrHaveSucceeded(t *testing.T) {
	for name, test := range map[string]struct {
		pods []string // of a group of two
		made string
	}{
		"one is missing":               {[]string{"a gated"}, ""},
		"all wait":                     {[]string{"a gated", "b gated"}, "a b"},
		"more wait":                    {[]string{"a gated", "b gated", "c gated"}, "a b"},
		"one has succeeded":            {[]string{"a succeeded", "b gated"}, "a b"},
		"one had, and was deleted":     {[]string{"a succeeded deleted before", "b gated"}, "a b"},
		"one was stopped and succeeds": {[]string{"a succeeded after deleted", "b gated"}, ""},
		"one has failed":               {[]string{"a failed", "b gated"}, ""},
		"one runs":                     {[]string{"a running", "b gated"}, ""},
		"all have succeeded":           {[]string{"a succeeded", "b succeeded"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := namesOf(groupOf(2, test.pods...).counted()); got != test.made {
				t.Errorf("it is made of %q, want %q", got, test.made)
			}
		})
	}
}

func TestNoPodIsKeptInANamespaceThatEnds(t *testing.T) {
	g := groupOf(2, "a running", "b failed deleted")
	g.isEnding = true
	if over, _ := g.uncounted(workloadIn("Evicted"), noon); namesOf(over) != "a b" {
		t.Errorf("not counted are %q", namesOf(over))
	}
}

func TestAPodThatIsStoppedHasNotSucceeded(t *testing.T) {
	for text, want := range map[string]bool{
		"a succeeded":                         true,
		"a succeeded before deleted long-ago": true,
		"a succeeded deleted":                 true, // it does not say when it ended
		"a succeeded after deleted":           false,
		"a failed before deleted":             false,
	} {
		if got := hasSucceeded(podOf(text)); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}

func TestAGroupSaysWhetherItsPodsHaveToBeReplaced(t *testing.T) {
	for name, test := range map[string]struct {
		state string
		pods  []string
		want  string // status and reason, "" if nothing is said
	}{
		"all wait":                         {"", []string{"a gated", "b gated", "c gated"}, ""},
		"one that waited is gone":          {"", []string{"a gated", "b gated"}, "True PodsFailed"},
		"one has failed":                   {"QuotaReserved", []string{"a running", "b running", "c failed"}, "True PodsFailed"},
		"all were evicted":                 {"QuotaReserved Evicted", []string{"a failed deleted", "b deleted", "c failed deleted"}, "True Preempted"},
		"one is replaced":                  {"WaitingForReplacementPods", []string{"a gated", "b gated", "c gated"}, "False PodsReady"},
		"a fast group has one of three":    {"QuotaReserved", []string{"a running fast"}, ""},
		"a fast group that waits has none": {"Evicted", []string{"a failed deleted fast"}, "True Preempted"},
		"a fast group that waits has one":  {"WaitingForReplacementPods Evicted", []string{"a gated fast"}, "False PodsReady"},
	} {
		t.Run(name, func(t *testing.T) {
			w := workloadIn(test.state)
			groupOf(3, test.pods...).await(w, noon)
			c := cmp.Or(conditions.Of(w, v1beta2.WaitingForReplacementPods), &metav1.Condition{})
			if got := strings.TrimSpace(fmt.Sprint(c.Status, " ", c.Reason)); got != test.want {
				t.Errorf("it says %q, want %q", got, test.want)
			}
		})
	}
}

func TestAGroupWhosePodsAreNotReplacedEndsWithTheLast(t *testing.T) {
	for name, test := range map[string]struct {
		pods []string
		want bool
	}{
		"all have failed":                {[]string{"a failed last", "b failed", "c failed"}, true},
		"one was deleted after it did":   {[]string{"a failed", "b failed", "c failed deleted last"}, true},
		"one runs":                       {[]string{"a failed last", "b failed", "c running"}, false},
		"one leaves":                     {[]string{"a failed last", "b failed", "c running deleted"}, false},
		"they are replaced":              {[]string{"a failed", "b failed", "c failed"}, false},
		"one that waited went meanwhile": {[]string{"a failed last", "b failed", "c gated deleted"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, is := groupOf(3, test.pods...).finished(workloadIn("QuotaReserved")); is != test.want {
				t.Errorf("it has ended: %t, want %t", is, test.want)
			}
		})
	}
}
