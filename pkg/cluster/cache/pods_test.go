package cache

import (
	"testing"
	"time"

	"hekla.sh/hekla/pkg/cluster"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/pods"
)

// TestAPodStandsWhereTheAPISaysItDoes covers what is read from a pod that nothing is assumed of.
func TestAPodStandsWhereTheAPISaysItDoes(t *testing.T) {
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want cluster.Status
		on   string // the node it is listed on
		used string // what it takes there
	}{
		"it waits":                                     {pod("p"), cluster.Pending, "", ""},
		"it waits and is held by a gate":               {pod("p", gated), cluster.Gated, "", ""},
		"it has a node and does not run yet":           {pod("p", on("n")), cluster.Bound, "n", "cpu=1 pods=1"},
		"it has a node, gates notwithstanding":         {pod("p", on("n"), gated), cluster.Bound, "n", "cpu=1 pods=1"},
		"it runs":                                      {pod("p", on("n"), phase(corev1.PodRunning)), cluster.Running, "n", "cpu=1 pods=1"},
		"its node has lost contact":                    {pod("p", on("n"), phase(corev1.PodUnknown)), cluster.Unknown, "n", "cpu=1 pods=1"},
		"it is on its way out and holds its room":      {pod("p", on("n"), phase(corev1.PodRunning), deleting), cluster.Releasing, "n", "cpu=1 pods=1"},
		"it is deleted before it had a node":           {pod("p", deleting), cluster.Releasing, "", ""},
		"it has succeeded":                             {pod("p", on("n"), phase(corev1.PodSucceeded)), cluster.Succeeded, "", ""},
		"it has failed":                                {pod("p", on("n"), phase(corev1.PodFailed)), cluster.Failed, "", ""},
		"it has failed and waits for a finalizer":      {pod("p", on("n"), phase(corev1.PodFailed), deleting), cluster.Failed, "", ""},
		"it has failed before it had a node":           {pod("p", phase(corev1.PodFailed)), cluster.Failed, "", ""},
		"it runs and is another scheduler's":           {pod("p", on("n"), phase(corev1.PodRunning), scheduler("other")), cluster.Running, "n", "cpu=1 pods=1"},
		"it runs and nobody scheduled it (static pod)": {pod("p", on("n"), phase(corev1.PodRunning), scheduler("")), cluster.Running, "n", "cpu=1 pods=1"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Set{node("n", "cpu=4 pods=10")}, Set{test.pod})
			status(t, c, "p", test.want, test.on)
			amounts(t, c, "what is used on the node", c.Node("n").Used, test.used)
			amounts(t, c, "what is used of the cluster", c.Used, test.used)
			releasing := ""
			if test.want == cluster.Releasing {
				releasing = test.used
			}
			amounts(t, c, "what is on its way out", c.Node("n").Releasing, releasing)
			sound(t, c)
		})
	}
}

func TestPodsOfOtherSchedulersAreNotOursToPlace(t *testing.T) {
	c := newCluster(Set{pod("theirs", scheduler("other"))}, Set{group("g", "")},
		Set{pod("placed", scheduler("other"), in("g"), on("n"))})
	if c.Task(key("theirs")) != nil {
		t.Error("a waiting pod of another scheduler is a task")
	}
	if task := c.Task(key("placed")); task.Job != c.Job(jobID("g")) || len(c.Job(jobID("g")).Tasks()) != 1 {
		t.Error("a pod of another scheduler is not in the gang that it names")
	}
	sound(t, c)
}

func TestAPodIsCountedOnceThroughItsWholeLife(t *testing.T) {
	c := newCluster(Set{node("n", "cpu=4")}, Set{queue("q", "")}, Set{group("g", "q", at(schedulingv1beta1.PodGroupInqueue))})
	for _, step := range []struct {
		name                           string
		pod                            *corev1.Pod
		used, allocated, request, left string
	}{
		{"gated", pod("p", in("g"), gated), "", "", "", "cpu=4"},
		{"pending", pod("p", in("g")), "", "", "cpu=1 pods=1", "cpu=4"},
		{"bound", pod("p", in("g"), on("n")), "cpu=1 pods=1", "cpu=1 pods=1", "cpu=1 pods=1", "cpu=3"},
		{"running", pod("p", in("g"), on("n"), phase(corev1.PodRunning)), "cpu=1 pods=1", "cpu=1 pods=1", "cpu=1 pods=1", "cpu=3"},
		{"resized", pod("p", in("g"), on("n"), phase(corev1.PodRunning), asks("cpu=2"), holds("main", "cpu=1", "cpu=1")),
			"cpu=2 pods=1", "cpu=2 pods=1", "cpu=2 pods=1", "cpu=2"},
		{"terminating", pod("p", in("g"), on("n"), phase(corev1.PodRunning), asks("cpu=2"), deleting), "cpu=2 pods=1", "", "", "cpu=2"},
		{"finished", pod("p", in("g"), on("n"), phase(corev1.PodSucceeded), asks("cpu=2")), "", "", "", "cpu=4"},
	} {
		for range 2 { // Hearing the same twice changes nothing.
			c.Apply(Set{step.pod})
			c.Settle()
			amounts(t, c, step.name+": used on the node", c.Node("n").Used, step.used)
			amounts(t, c, step.name+": allocated to the queue", c.Queue("q").Own.Allocated, step.allocated)
			amounts(t, c, step.name+": requested in the queue", c.Queue("q").Own.Request, step.request)
			amounts(t, c, step.name+": allocated below the root", c.Root().Subtree.Allocated, step.allocated)
			if free, want := c.Node("n").Free(0), c.vector(step.left).At(0); free != want {
				t.Errorf("%s: %d is free, want %d", step.name, free, want)
			}
			sound(t, c)
		}
	}
	c.Apply(Delete{pod("p")})
	if c.Task(key("p")) != nil {
		t.Error("a deleted pod is a task")
	}
	sound(t, c)
}

// assumed is a model in which pod p of gang g is bound, and the API does not show it yet.
func assumed() *Cache {
	c := newCluster(Set{node("n", "cpu=4")}, Set{node("m", "cpu=4")}, Set{group("g", "")}, Set{pod("p", in("g"))})
	c.bind("p", "n")
	return c
}

func TestWhatIsAssumedStandsUntilAnEventSaysOtherwise(t *testing.T) {
	for name, test := range map[string]struct {
		events []Event
		want   cluster.Status
		on     string
	}{
		"nothing happens":                           {nil, cluster.Binding, "n"},
		"the pod changes in another respect":        {[]Event{Set{pod("p", in("g"), labelled("a", "b"))}}, cluster.Binding, "n"},
		"the pod is resized":                        {[]Event{Set{pod("p", in("g"), asks("cpu=2"))}}, cluster.Binding, "n"},
		"the pod is shown bound there":              {[]Event{Set{pod("p", in("g"), on("n"))}}, cluster.Bound, "n"},
		"the pod is shown bound elsewhere":          {[]Event{Set{pod("p", in("g"), on("m"))}}, cluster.Bound, "m"},
		"the pod is shown on a node nobody knows":   {[]Event{Set{pod("p", in("g"), on("x"))}}, cluster.Bound, "x"},
		"the pod is on its way out, without a node": {[]Event{Set{pod("p", in("g"), deleting)}}, cluster.Releasing, ""},
		"the pod failed before it was bound":        {[]Event{Set{pod("p", in("g"), phase(corev1.PodFailed))}}, cluster.Failed, ""},
		"the binding is refused":                    {[]Event{BindFailed{Pod: key("p"), UID: "p-uid", At: birth}}, cluster.Pending, ""},
		"the binding of an earlier pod of that name is refused": {
			[]Event{BindFailed{Pod: key("p"), UID: "earlier", At: birth}}, cluster.Binding, "n"},
		"the binding is refused after the pod was shown bound": {
			[]Event{Set{pod("p", in("g"), on("n"))}, BindFailed{Pod: key("p"), UID: "p-uid", At: birth}}, cluster.Bound, "n"},
		"another pod of that name is deleted": {[]Event{Delete{pod("p", uid("earlier"))}}, cluster.Binding, "n"},
		"the node vanishes":                   {[]Event{Delete{node("n", "")}}, cluster.Binding, "n"},
		"the node is no longer ready":         {[]Event{Set{node("n", "cpu=4", notReady)}}, cluster.Binding, "n"},
		"the pod was made again under its name": {
			[]Event{Delete{pod("p")}, Set{pod("p", in("g"), uid("later"))}}, cluster.Pending, ""},
		"the pod was made again, and its deletion was not seen": {
			[]Event{Set{pod("p", in("g"), uid("later"))}}, cluster.Pending, ""},
		"the pod was made again, the first binding is refused": {
			[]Event{Set{pod("p", in("g"), uid("later"))}, BindFailed{Pod: key("p"), UID: "p-uid", At: birth}}, cluster.Pending, ""},
		"the pod was made again, the first deletion comes late": {
			[]Event{Set{pod("p", in("g"), uid("later"))}, Delete{pod("p")}}, cluster.Pending, ""},
		"the pod's gang is gone": {[]Event{Delete{group("g", "")}}, cluster.Binding, "n"},
	} {
		t.Run(name, func(t *testing.T) {
			c := assumed()
			for _, event := range test.events {
				c.Apply(event)
				sound(t, c)
			}
			c.Settle()
			sound(t, c)
			status(t, c, "p", test.want, test.on)
			for _, n := range c.Nodes() {
				if holds := !n.Used.IsZero(); holds != (n.Name == test.on && test.want.Holds()) {
					t.Errorf("node %s holds something: %t", n.Name, holds)
				}
			}
		})
	}
}

func TestAPodDeletedWhileItIsAssumedFreesItsRoom(t *testing.T) {
	c := assumed()
	c.Apply(Delete{pod("p")})
	c.Settle()
	if c.Task(key("p")) != nil || !c.Node("n").Used.IsZero() || len(c.Node("n").Tasks()) != 0 {
		t.Error("the pod still holds its room")
	}
	c.Apply(BindFailed{Pod: key("p"), UID: "p-uid", At: birth})
	if j := c.Job(jobID("g")); j.Count(cluster.Pending) != 0 || !j.NotBefore.IsZero() {
		t.Error("the refused binding of a pod that is gone has an effect")
	}
	sound(t, c)
}

func TestAPodMadeAgainIsOfTheGangItNamesNow(t *testing.T) {
	c := newCluster(Set{group("g", "")}, Set{group("h", "")}, Set{pod("p", in("g"), on("n"))}, Set{pod("p", in("h"), uid("later"))})
	if have := c.Task(key("p")).Job.ID; have != jobID("h") {
		t.Errorf("the pod is in %s", have)
	}
	if have := len(c.Job(jobID("g")).Tasks()); have != 0 {
		t.Errorf("its first gang has %d tasks", have)
	}
	if c.Node("n") != nil {
		t.Error("the node of the first pod, which nobody else names, is still known")
	}
	sound(t, c)
}

func TestAPodThatChangesGangIsCountedInTheNewOne(t *testing.T) {
	c := newCluster(Set{group("g", "q")}, Set{group("h", "r")}, Set{queue("q", "")}, Set{queue("r", "")}, Set{pod("p", in("g"), on("n"))})
	c.Apply(Set{pod("p", in("h"), on("n"))})
	c.Settle()
	amounts(t, c, "allocated to the queue it left", c.Queue("q").Own.Allocated, "")
	amounts(t, c, "allocated to the queue it joined", c.Queue("r").Own.Allocated, "cpu=1 pods=1")
	sound(t, c)
	c.Apply(Set{pod("p", on("n"))})
	if c.Task(key("p")).Job != nil || !c.Queue("r").Own.Allocated.IsZero() {
		t.Error("a pod that names no gang any more is still counted in one")
	}
	sound(t, c)
}

func TestTakeBackFreesWhatWasDecidedAndNeverHandedOut(t *testing.T) {
	c := assumed()
	c.Apply(Set{pod("q", in("g"))})
	c.Settle()
	c.bind("q", "n")
	c.Apply(Set{pod("q", in("g"), on("n"))})
	c.TakeBack([]decision.Bind{{Pod: key("p"), UID: "p-uid"}, {Pod: key("q"), UID: "q-uid"}, {Pod: key("gone")}}, birth)
	status(t, c, "p", cluster.Pending, "")
	status(t, c, "q", cluster.Bound, "n")
	if j := c.Job(jobID("g")); !j.NotBefore.IsZero() {
		t.Error("the job backs off, though nobody refused it")
	}
	sound(t, c)
}

// The plan that promised the node may be over by then: it ends when the pod is to be bound.
func TestAPodThatIsNotBoundLosesWhatIsWrittenOfItsPromise(t *testing.T) {
	nominated := func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" }
	for name, fails := range map[string]func(c *Cache){
		"refused":    func(c *Cache) { c.Apply(BindFailed{Pod: key("p"), UID: "p-uid", At: birth}) },
		"taken back": func(c *Cache) { c.TakeBack([]decision.Bind{{Pod: key("p"), UID: "p-uid"}}, birth) },
	} {
		t.Run(name, func(t *testing.T) {
			c := assumed()
			fails(c)
			if ended := c.Plans().TakeCancelled(); len(ended) > 0 {
				t.Errorf("nothing was written, and %d plans end", len(ended))
			}
			c = assumed()
			c.Apply(Set{pod("p", in("g"), nominated)})
			fails(c)
			ended := c.Plans().TakeCancelled()
			if len(ended) != 1 || ended[0].Job != c.Job(jobID("g")) || len(ended[0].Unpromised) != 1 || ended[0].Unpromised[0] != c.Task(key("p")) {
				t.Errorf("plans that end: %v", ended)
			}
			status(t, c, "p", cluster.Pending, "")
			sound(t, c)
		})
	}
}

func TestAnUpdateOfAPodThatDecidesNothingWakesNoJob(t *testing.T) {
	first := func(p *corev1.Pod) { p.Generation = 1 }
	condition := func(p *corev1.Pod) { p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled}} }
	running := phase(corev1.PodRunning)
	for name, test := range map[string]struct {
		before, after       *corev1.Pod
		nodeHears, jobHears bool
	}{
		"a condition of one that waits":  {pod("p", in("g"), first), pod("p", in("g"), first, condition), false, false},
		"a condition of one that runs":   {pod("p", in("g"), on("n"), running, first), pod("p", in("g"), on("n"), running, first, condition), false, false},
		"it is bound and starts":         {pod("p", in("g"), on("n"), first), pod("p", in("g"), on("n"), running, first), false, true},
		"it holds more than it asks for": {pod("p", in("g"), on("n"), first), pod("p", in("g"), on("n"), first, holds("main", "cpu=3", "cpu=3")), true, true},
		"its labels change":              {pod("p", in("g"), on("n"), first), pod("p", in("g"), on("n"), first, labelled("a", "b")), true, true},
		"its gang changes":               {pod("p", on("n"), first), pod("p", in("g"), on("n"), first), true, true},
		"it is bound by somebody else":   {pod("p", in("g"), first), pod("p", in("g"), on("n"), first), true, true},
		"it is on its way out":           {pod("p", in("g"), on("n"), first), pod("p", in("g"), on("n"), first, deleting), true, true},
		"it has finished":                {pod("p", in("g"), on("n"), first), pod("p", in("g"), on("n"), first, phase(corev1.PodFailed)), true, true},
		"its spec changes":               {pod("p", in("g"), on("n"), first), pod("p", in("g"), on("n"), func(p *corev1.Pod) { p.Generation = 2 }), true, true},
		"nobody counts its generations":  {pod("p", in("g"), on("n")), pod("p", in("g"), on("n"), condition), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Set{node("n", "cpu=4")}, Set{group("g", "")}, Set{test.before})
			_, since, _ := c.Changes(0)
			version := c.Job(jobID("g")).Internal.Version
			c.Apply(Set{test.after})
			slots, _, _ := c.Changes(since)
			if (len(slots) > 0) != test.nodeHears || (c.Job(jobID("g")).Internal.Version != version) != test.jobHears {
				t.Errorf("the node changes: %t, the job: %t", len(slots) > 0, c.Job(jobID("g")).Internal.Version != version)
			}
			if !equality.Semantic.DeepEqual(c.Task(key("p")).Pod.Object(), pods.New(test.after).Object()) {
				t.Error("the pod is not the last one seen")
			}
			sound(t, c)
		})
	}
}

func TestABindingThatIsConfirmedChangesNoNode(t *testing.T) {
	first := func(p *corev1.Pod) { p.Generation = 1 }
	c := newCluster(Set{node("n", "cpu=4")}, Set{group("g", "")}, Set{pod("p", in("g"), first)}, Set{pod("q", in("g"), first)})
	c.refuse("q", birth)
	c.bind("p", "n")
	_, since, _ := c.Changes(0)
	c.Apply(Set{pod("p", in("g"), on("n"), first)})
	status(t, c, "p", cluster.Bound, "n")
	if slots, _, _ := c.Changes(since); len(slots) != 0 {
		t.Error("all that was worked out of the node is thrown away, though it holds what it held")
	}
	if c.Job(jobID("g")).Internal.Failures != 0 {
		t.Error("a success does not end a row of refusals")
	}
	sound(t, c)
}

func TestATaskReadsItsRoleIndexAndPriorityFromItsPod(t *testing.T) {
	important := func(p *corev1.Pod) { value := int32(7); p.Spec.Priority = &value }
	for name, test := range map[string]struct {
		pod      *corev1.Pod
		role     string
		index    int
		priority int32
	}{
		"given":                        {pod("p", role("worker"), annotated("volcano.sh/task-index", "3"), annotated("volcano.sh/task-priority", "9")), "worker", 3, 9},
		"absent":                       {pod("p"), "default", -1, 0},
		"unreadable":                   {pod("p", annotated("volcano.sh/task-index", "x"), annotated("volcano.sh/task-priority", "high"), important), "default", -1, 7},
		"negative":                     {pod("p", annotated("volcano.sh/task-index", "-4"), annotated("volcano.sh/task-priority", "-4")), "default", -1, -4},
		"larger than an int32":         {pod("p", annotated("volcano.sh/task-priority", "4294967296"), important), "default", -1, 7},
		"the pod's priority otherwise": {pod("p", important), "default", -1, 7},
	} {
		t.Run(name, func(t *testing.T) {
			task := newCluster(Set{test.pod}).Task(key("p"))
			if task.Role != test.role || task.Index != test.index || task.Priority != test.priority {
				t.Errorf("have %q, %d, %d, want %q, %d, %d", task.Role, task.Index, task.Priority, test.role, test.index, test.priority)
			}
		})
	}
}

func TestTasksAreOrderedByIndexThenAge(t *testing.T) {
	const index = "volcano.sh/task-index"
	later := birth.Add(time.Minute)
	c := newCluster(Set{pod("a", annotated(index, "1"))}, Set{pod("b", annotated(index, "0"), born(later))},
		Set{pod("c", born(later))}, Set{pod("d")}, Set{pod("e")}, Set{pod("f", annotated(index, "0"))})
	order := []string{"f", "b", "a", "d", "e", "c"}
	for i, first := range order {
		for _, second := range order[i+1:] {
			a, b := c.Task(key(first)), c.Task(key(second))
			if cluster.CompareTasks(a, b) >= 0 || cluster.CompareTasks(b, a) <= 0 {
				t.Errorf("%s does not come before %s", first, second)
			}
		}
	}
}
