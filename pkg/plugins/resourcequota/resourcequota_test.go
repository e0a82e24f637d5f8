package resourcequota_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/plugins/resourcequota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

type quotaOption = func(*corev1.ResourceQuota)

// quota is a ResourceQuota of which some is used.
func quota(name, hard, used string, options ...quotaOption) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name, UID: types.UID(name + "-uid")}}
	q.Spec.Hard, q.Status.Hard, q.Status.Used = fixture.List(hard), fixture.List(hard), fixture.List(used)
	for _, option := range options {
		option(q)
	}
	return q
}

func scoped(scopes ...corev1.ResourceQuotaScope) quotaOption {
	return func(q *corev1.ResourceQuota) { q.Spec.Scopes = scopes }
}

func selecting(operator corev1.ScopeSelectorOperator, classes ...string) quotaOption {
	return func(q *corev1.ResourceQuota) {
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
			ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: classes}}}
	}
}

// pendingAdmission is a job of two that was not admitted yet.
func pendingAdmission(name, minimum string, options ...func(*schedulingv1beta1.PodGroup)) runtime.Object {
	return fixture.Group(name, "q", 2, append(options, fixture.PendingAdmission, fixture.Wanting(minimum))...)
}

func admitted(name, minimum string) runtime.Object {
	return fixture.Group(name, "q", 2, fixture.Wanting(minimum))
}

func newWorld(tb testing.TB, objects ...runtime.Object) *harness.Model {
	return harness.ForPlugin(tb, resourcequota.Factory(), "").Set(fixture.Queue("q"), fixture.Node("n", "cpu=100")).Set(objects)
}

func TestAJobPassesIfItsMinimumFitsIntoEveryQuota(t *testing.T) {
	class := func(g *schedulingv1beta1.PodGroup) { g.Spec.PriorityClassName = "high" }
	const refused = "Refused ResourceQuota work/a: "
	for name, test := range map[string]struct {
		quotas  []runtime.Object
		want    string // minResources
		verdict string
	}{
		"no quota":                   {nil, "cpu=9", ""},
		"fits exactly":               {objects(quota("a", "cpu=4", "cpu=2")), "cpu=2", ""},
		"does not fit":               {objects(quota("a", "cpu=4", "cpu=3")), "cpu=2", refused + "cpu: needs 2, has 1, short by 1; of cpu 4, 3 used"},
		"in thousandths":             {objects(quota("a", "cpu=500m", "")), "cpu=501m", refused + "cpu: needs 501m, has 500m, short by 1m; cpu is 500m in all"},
		"the second refuses":         {objects(quota("0", "cpu=9", ""), quota("a", "memory=1Gi", "")), "cpu=2 memory=2Gi", refused + "memory: needs 2Gi, has 1Gi, short by 1Gi; memory is 1Gi in all"},
		"by its long name":           {objects(quota("a", "requests.cpu=1", "")), "cpu=2", refused + "cpu: needs 2, has 1, short by 1; requests.cpu is 1 in all"},
		"both by their long names":   {objects(quota("a", "requests.cpu=250m", "")), "requests.cpu=500m", refused + "cpu: needs 500m, has 250m, short by 250m; requests.cpu is 250m in all"},
		"the minimum by a long name": {objects(quota("a", "cpu=1", "")), "requests.cpu=2", refused + "cpu: needs 2, has 1, short by 1; cpu is 1 in all"},
		"a device":                   {objects(quota("a", "requests.nvidia.com/gpu=1", "")), "nvidia.com/gpu=2", refused + "nvidia.com/gpu: needs 2, has 1, short by 1; requests.nvidia.com/gpu is 1 in all"},
		"huge pages":                 {objects(quota("a", "hugepages-2Mi=4Mi", "")), "hugepages-2Mi=6Mi", refused + "hugepages-2Mi: needs 6Mi, has 4Mi, short by 2Mi; hugepages-2Mi is 4Mi in all"},
		"pods, by minMember":         {objects(quota("a", "pods=4", "pods=3")), "cpu=1", refused + "pods: needs 2, has 1, short by 1; of pods 4, 3 used"},
		"pods, by another name":      {objects(quota("a", "count/pods=1", "")), "cpu=1", refused + "pods: needs 2, has 1, short by 1; count/pods is 1 in all"},
		"pods, as the minimum says":  {objects(quota("a", "pods=4", "pods=3")), "pods=1", ""},
		"limits that nobody named":   {objects(quota("a", "limits.cpu=1", "")), "cpu=9", ""},
		"limits that are named":      {objects(quota("a", "limits.cpu=1", "")), "cpu=1 limits.cpu=2", refused + "cpu: needs 2, has 1, short by 1; limits.cpu is 1 in all"},
		"what is no part of a pod":   {objects(quota("a", "services=0 requests.storage=0 count/jobs.batch=0 persistentvolumeclaims=0", "")), "cpu=9 storage=5", ""},
		"two that are short": {objects(quota("a", "cpu=1 pods=1", "")), "cpu=2",
			refused + "cpu: needs 2, has 1, short by 1: pods: needs 2, has 1, short by 1; cpu is 1 in all; pods is 1 in all"},
		"above what is allowed, and nothing wanted": {objects(quota("a", "cpu=1 memory=1Gi", "cpu=1 memory=2Gi")), "cpu=0", ""},
		"above what is allowed":                     {objects(quota("a", "cpu=1", "cpu=5")), "cpu=1", refused + "cpu: needs 1, has 0, short by 1; of cpu 1, 5 used"},
		"a large one that is much used":             {objects(quota("a", "memory=2Pi", "memory=1Pi")), "memory=1Ti", ""},
		"of another namespace":                      {objects(quota("a", "cpu=0", "", func(q *corev1.ResourceQuota) { q.Namespace = "elsewhere" })), "cpu=1", ""},
		"not looked at by the API server yet":       {objects(quota("a", "cpu=1", "", func(q *corev1.ResourceQuota) { q.Status = corev1.ResourceQuotaStatus{} })), "cpu=2", refused + "cpu: needs 2, has 1, short by 1; cpu is 1 in all"},
		"raised, and not looked at yet":             {objects(quota("a", "cpu=1", "", func(q *corev1.ResourceQuota) { q.Spec.Hard = fixture.List("cpu=9") })), "cpu=2", refused + "cpu: needs 2, has 1, short by 1; cpu is 1 in all"},

		"for pods with a deadline":     {objects(quota("a", "cpu=0", "", scoped(corev1.ResourceQuotaScopeTerminating))), "cpu=1", ""},
		"for pods without a deadline":  {objects(quota("a", "cpu=0", "", scoped(corev1.ResourceQuotaScopeNotTerminating))), "cpu=1", ""},
		"for best effort":              {objects(quota("a", "pods=0", "", scoped(corev1.ResourceQuotaScopeBestEffort))), "cpu=1", ""},
		"for best effort, and it is":   {objects(quota("a", "pods=0", "", scoped(corev1.ResourceQuotaScopeBestEffort))), "cpu=0", refused + "pods: needs 2, has 0, short by 2; pods is 0 in all"},
		"for more than best effort":    {objects(quota("a", "pods=0", "", scoped(corev1.ResourceQuotaScopeNotBestEffort))), "requests.memory=1", refused + "pods: needs 2, has 0, short by 2; pods is 0 in all"},
		"for all classes":              {objects(quota("a", "pods=0", "", scoped(corev1.ResourceQuotaScopePriorityClass))), "cpu=1", refused + "pods: needs 2, has 0, short by 2; pods is 0 in all"},
		"for this class":               {objects(quota("a", "pods=0", "", selecting(corev1.ScopeSelectorOpIn, "low", "high"))), "cpu=1", refused + "pods: needs 2, has 0, short by 2; pods is 0 in all"},
		"for another class":            {objects(quota("a", "pods=0", "", selecting(corev1.ScopeSelectorOpIn, "low"))), "cpu=1", ""},
		"for all but another":          {objects(quota("a", "pods=0", "", selecting(corev1.ScopeSelectorOpNotIn, "low"))), "cpu=1", refused + "pods: needs 2, has 0, short by 2; pods is 0 in all"},
		"for all but this class":       {objects(quota("a", "pods=0", "", selecting(corev1.ScopeSelectorOpNotIn, "high"))), "cpu=1", ""},
		"for those without class":      {objects(quota("a", "pods=0", "", selecting(corev1.ScopeSelectorOpDoesNotExist))), "cpu=1", ""},
		"for a class, with a deadline": {objects(quota("a", "pods=0", "", scoped(corev1.ResourceQuotaScopeTerminating), selecting(corev1.ScopeSelectorOpExists))), "cpu=1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pendingAdmission("j", test.want, class)).Set(test.quotas)
			if diff := cmp.Diff(test.verdict, harness.Describe(w.Open().MayEnqueue(w.JobNamed("j")))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func objects(all ...runtime.Object) []runtime.Object { return all }

func TestTheSentenceNamesTheQuotaAndTheNumbers(t *testing.T) {
	w := newWorld(t, quota("team", "requests.cpu=10", "requests.cpu=8"), admitted("in", "cpu=1"), pendingAdmission("j", "cpu=3"))
	v := w.Open().MayEnqueue(w.JobNamed("j"))
	want := "refused by ResourceQuota work/team: cpu: needs 3, has 1, short by 2; of requests.cpu 10, 8 used, 1 kept for admitted jobs"
	if diff := cmp.Diff(want, v.Sentence()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsAdmittedIsKeptRoomFor(t *testing.T) {
	w := newWorld(t, quota("a", "cpu=10", "cpu=1"), quota("b", "pods=7", ""), admitted("before", "cpu=4"),
		pendingAdmission("first", "cpu=3"), pendingAdmission("second", "cpu=3"), pendingAdmission("third", "cpu=2"), pendingAdmission("fourth", "cpu=0"))
	s := w.Open()
	for _, step := range []struct {
		job, want string
		enters    bool
	}{
		{"first", "", false}, // another plugin refuses it: it books nothing
		{"second", "", true},
		{"first", "Refused ResourceQuota work/a: cpu: needs 3, has 2, short by 1; of cpu 10, 1 used, 7 kept for admitted jobs", false},
		{"third", "", false},
		{"third", "", true}, // asked twice, as when an action tries whether it could make room
		{"fourth", "Refused ResourceQuota work/b: pods: needs 2, has 1, short by 1; of pods 7, 0 used, 6 kept for admitted jobs", false},
	} {
		j := w.JobNamed(step.job)
		if diff := cmp.Diff(step.want, harness.Describe(s.MayEnqueue(j))); diff != "" {
			t.Errorf("job %s: %s", step.job, diff)
		}
		if step.enters {
			s.Admit(j)
		}
	}
	// The next session knows it from the jobs themselves.
	want := "Refused ResourceQuota work/a: cpu: needs 3, has 0, short by 3; of cpu 10, 1 used, 9 kept for admitted jobs"
	if diff := cmp.Diff(want, harness.Describe(w.Open().MayEnqueue(w.JobNamed("first")))); diff != "" {
		t.Error(diff)
	}
}

func TestPodsThatExistAreUsedAlready(t *testing.T) {
	limited := func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = fixture.List("cpu=2") }
	w := newWorld(t, quota("a", "cpu=4 limits.cpu=6 pods=4", "cpu=2 limits.cpu=4 pods=2"),
		admitted("in", "cpu=2 limits.cpu=4"), fixture.Pod("in-0", fixture.In("in"), limited),
		pendingAdmission("alone", "cpu=2 limits.cpu=2 pods=1"), fixture.Pod("alone-0", fixture.In("alone"), limited),
		pendingAdmission("new", "cpu=1 limits.cpu=1"), pendingAdmission("newer", "cpu=1 limits.cpu=1 pods=1"))
	s := w.Open()
	const short = "needs 1, has 0, short by 1"
	for job, want := range map[string]string{
		// Of two CPUs it lacks one, which is all that is left after what the job that was admitted lacks.
		"alone": "",
		"new": "Refused ResourceQuota work/a: cpu: " + short + ": pods: needs 2, has 1, short by 1; of limits.cpu 6, 4 used, " +
			"2 kept for admitted jobs; of pods 4, 2 used, 1 kept for admitted jobs",
		"newer": "Refused ResourceQuota work/a: cpu: " + short + "; of limits.cpu 6, 4 used, 2 kept for admitted jobs",
	} {
		if diff := cmp.Diff(want, harness.Describe(s.MayEnqueue(w.JobNamed(job)))); diff != "" {
			t.Errorf("job %s: %s", job, diff)
		}
	}
}

// The watch may show pods of an admitted job before the quota that counts them. Otherwise another job were admitted
// in addition to it, and each might get only a part of its pods.
func TestPodsThatTheQuotaDoesNotCountYetAreUsedToo(t *testing.T) {
	w := newWorld(t, quota("a", "cpu=4 pods=4", ""), admitted("in", "cpu=4 pods=4"), fixture.Pod("in-0", fixture.In("in"), fixture.Asks("cpu=1")),
		fixture.Pod("in-1", fixture.In("in"), fixture.Asks("cpu=1")), pendingAdmission("new", "cpu=2 pods=2"))
	want := "Refused ResourceQuota work/a: cpu: needs 2, has 0, short by 2: pods: needs 2, has 0, short by 2; of cpu 4, 2 used, 2 kept for admitted jobs; " +
		"of pods 4, 2 used, 2 kept for admitted jobs"
	if diff := cmp.Diff(want, harness.Describe(w.Open().MayEnqueue(w.JobNamed("new")))); diff != "" {
		t.Error(diff)
	}
}

func TestAJobLargerThanAQuotaNeverPasses(t *testing.T) {
	w := newWorld(t, quota("a", "cpu=1", ""), pendingAdmission("j", "cpu=2 pods=2"), fixture.Pod("j-0", fixture.In("j")), fixture.Pod("j-1", fixture.In("j")))
	want := "Refused ResourceQuota work/a: cpu: needs 2, has 1, short by 1; cpu is 1 in all"
	if diff := cmp.Diff(want, harness.Describe(w.Open().MayEnqueue(w.JobNamed("j")))); diff != "" {
		t.Error(diff)
	}
}

func TestARefusedJobIsWokenByWhatMayHelp(t *testing.T) {
	w := newWorld(t, quota("a", "cpu=4", ""), admitted("in", "cpu=3"), pendingAdmission("small", "cpu=2"), pendingAdmission("large", "cpu=5"))
	s := w.Open()
	for job, want := range map[string]verdict.Help{"small": verdict.HelpQueue | verdict.HelpPod, "large": verdict.HelpQueue} {
		if v := s.MayEnqueue(w.JobNamed(job)); v == nil || v.Help != want {
			t.Errorf("job %s: %+v, want help %b", job, v, want)
		}
	}
	large := w.JobNamed("large")
	w.SetVerdict(large, s.MayEnqueue(large))
	if w.ShouldRetry(large, s.Now) {
		t.Fatal("nothing has happened, and the job is looked at again")
	}
	w.Set(quota("a", "cpu=8", ""))
	if !w.ShouldRetry(large, s.Now) {
		t.Error("the quota was raised, and the job is not looked at again")
	}
	if v := w.Open().MayEnqueue(large); v != nil {
		t.Error(harness.Describe(v))
	}
}

func TestNoMoreIsAdmittedThanAQuotaAllows(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const limit = 9000
		used := rapid.IntRange(0, limit).Draw(r, "used")
		w := newWorld(t, quota("a", "requests.cpu=9", fmt.Sprintf("requests.cpu=%dm", used)))
		for i := range rapid.IntRange(1, 9).Draw(r, "jobs") {
			minimum := fmt.Sprintf("cpu=%dm", rapid.IntRange(0, 6000).Draw(r, "cpu"))
			if name := fmt.Sprintf("j%d", i); rapid.Bool().Draw(r, "inside") {
				w.Set(admitted(name, minimum))
			} else {
				w.Set(pendingAdmission(name, minimum))
			}
		}
		s := w.Open()
		kept := func() (sum int64) {
			for _, j := range w.Jobs() {
				if !j.IsPendingAdmission() {
					sum += j.MinResources.At(resources.CPU)
				}
			}
			return sum
		}
		for _, j := range s.Jobs(w.Queue("q")) {
			if !j.IsPendingAdmission() {
				continue
			}
			need := j.MinResources.At(resources.CPU)
			fits := need == 0 || int64(used)+kept()+need <= limit
			if let := s.MayEnqueue(j) == nil; let != fits {
				t.Fatalf("with %d and %d of %d taken, %d is admitted: %t", used, kept(), limit, need, let)
			} else if let && rapid.Bool().Draw(r, "enters") {
				s.Admit(j)
			}
		}
	})
}
