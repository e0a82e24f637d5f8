package explain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

// The answer about a pod says what the condition says that the scheduler gives to the pod, and never less.
func TestTheAnswerAboutAPodSaysWhatItsConditionSays(t *testing.T) {
	foreign := fixture.Group("foreign", "default", 1)
	foreign.Annotations = map[string]string{schedulingv1beta1.SchedulerNameKey: "volcanoo"}
	refused := fixture.Group("g", "default", 2)
	refused.Annotations = map[string]string{schedulingv1beta1.PodsRefusedKey: "exceeded quota"}
	node, pod := fixture.Node("n", "cpu=2"), func(name, of string, options ...func(*corev1.Pod)) *corev1.Pod {
		return fixture.Pod(name, append(options, fixture.In(of), fixture.Asks("cpu=1"))...)
	}
	closed := fixture.Queue("closed")
	closed.Status.State = schedulingv1beta1.QueueStateClosed
	for want, objects := range map[string][]runtime.Object{
		cluster.ReasonGroupNotFound:            {node, pod("p", "gone")},
		cluster.ReasonGroupNotFound + " alone": {node, fixture.Pod("p")},
		cluster.ReasonGroupOfAnother:           {node, foreign, pod("p", "foreign")},
		string(verdict.QueueNotFound):          {node, fixture.Group("g", "nowhere", 1), pod("p", "g")},
		string(verdict.QueueClosed):            {node, closed, fixture.Group("g", "closed", 1), pod("p", "g")},
		string(verdict.NotEnoughTasks):         {node, fixture.Group("g", "default", 2), pod("p", "g")},
		string(verdict.FailedCreate):           {node, refused, pod("p", "g")},
		corev1.PodReasonUnschedulable:          {node, fixture.Group("g", "default", 1), fixture.Pod("p", fixture.In("g"), fixture.Asks("cpu=9"))},
		"Schedulable":                          {node, fixture.Group("g", "default", 3), pod("p", "g"), pod("q", "g"), pod("r", "g")},
		"Unschedulable rest":                   {fixture.Node("n", "cpu=1"), fixture.Group("g", "default", 2), pod("o", "g"), pod("p", "g")},
		string(verdict.TooLargeForQueue): {node, fixture.Queue("q", fixture.Capped("cpu=500m")), fixture.Group("g", "q", 1),
			pod("p", "g")},
	} {
		w := newAsker(t, "", objects...)
		var condition corev1.PodCondition
		for began := w.Now; w.Now.Sub(began) <= 2*cluster.GroupingPause; {
			for _, c := range w.CycleAfter(time.Second).Pods {
				if c.Pod.Name == "p" {
					condition = c.Condition
				}
			}
		}
		word, _, _ := strings.Cut(want, " ")
		if condition.Reason != word {
			t.Errorf("%s: the condition is %+v", want, condition)
		}
		answer, err := w.model().Pod(w.Now, fixture.Key("p"))
		if err != nil || answer.Reason != condition.Reason || answer.Message != condition.Message {
			t.Errorf("%s: the answer is %s: %s, %v, and the condition %s: %s", want, answer.Reason, answer.Message, err, condition.Reason, condition.Message)
		}
		cause := w.model().PodCause(w.Now, fixture.Key("p"))
		if cause == nil || !cause.Waits {
			t.Errorf("%s: the cause is %+v", want, cause)
		} else if isOnlyOnPods := strings.HasPrefix(word, "PodGroup"); isOnlyOnPods && (cause.Code != condition.Reason || cause.Message != condition.Message) {
			t.Errorf("%s: the cause is %s: %s", want, cause.Code, cause.Message)
		}
	}
}

func TestAPodThatIsNewHasACauseWithoutAPodGroup(t *testing.T) {
	w := newAsker(t, "", fixture.Node("n", "cpu=2"), fixture.Pod("p", func(p *corev1.Pod) { p.CreationTimestamp.Time = fixture.Birth }))
	w.Now = fixture.Birth
	w.CycleAfter(0)
	if c := w.model().PodCause(w.Now, fixture.Key("p")); c == nil || !strings.Contains(c.Message, "yet") {
		t.Errorf("the cause is %+v", c)
	}
}

func TestAJobOfAMistypedSchedulerNameNamesTheOneThatWasMeant(t *testing.T) {
	for named, meant := range map[string]string{"volcanoo": "volcano", "default-scheduler": ""} {
		group := fixture.Group("g", "default", 1)
		group.Annotations = map[string]string{schedulingv1beta1.SchedulerNameKey: named}
		w := newAsker(t, "", fixture.Node("n", "cpu=2"), group)
		w.CycleAfter(time.Second)
		why, err := w.model().Why(w.Now, cluster.GroupID(fixture.Key("g")), false)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, m := range why.Mistakes {
			got += m.Meant
		}
		if got != meant {
			t.Errorf("of %s is said %s", named, fmt.Sprint(why.Mistakes))
		}
	}
}

func TestPodsWithoutTheirPodGroupAreAJobThatSaysWhereItIs(t *testing.T) {
	elsewhere := fixture.Group("g", "default", 1)
	elsewhere.Namespace, elsewhere.UID = "elsewhere", "elsewhere"
	w := newAsker(t, "", fixture.Node("n", "cpu=2"), elsewhere, fixture.Pod("p", fixture.In("g")))
	w.CycleAfter(time.Minute)
	id, err := w.model().FindJob(fixture.Namespace, "g")
	if err != nil {
		t.Fatal(err)
	}
	why, err := w.model().Why(w.Now, id, true)
	if err != nil || why.Cause.Code != cluster.ReasonGroupNotFound || !why.Cause.Never || !strings.HasSuffix(why.Cause.Message,
		"; PodGroup elsewhere/g does, and a pod belongs to a PodGroup of its own namespace") {
		t.Errorf("%+v, %v", why.Cause, err)
	}
	w.Set(fixture.Pod("p", fixture.In("g"), fixture.On("n")))
	w.CycleAfter(time.Second)
	if id, err := w.model().FindJob(fixture.Namespace, "g"); err == nil {
		t.Errorf("pods with nodes are the job %s, which waits for nothing", id)
	}
}
