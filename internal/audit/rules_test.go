package audit_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/audit"
	kueue "hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// TestPreemptionsThatSomethingElseMayExplain has a Workload admitted again that was preempted for another one.
func TestPreemptionsThatSomethingElseMayExplain(t *testing.T) {
	inVain := []string{audit.RuleEvictionInVain + " Workload work/w1"}
	localQueue := &kueue.LocalQueue{TypeMeta: metav1.TypeMeta{Kind: "LocalQueue"}, ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "lq", UID: "lq", Generation: 1}}
	condition := func(of, reason string, status metav1.ConditionStatus) func(*kueue.WorkloadStatus) {
		return func(o *kueue.WorkloadStatus) {
			o.Conditions = append(o.Conditions, metav1.Condition{Type: of, Reason: reason, Status: status})
		}
	}
	for _, c := range []struct {
		what      string
		meanwhile func(s *story)
		want      []string
	}{
		{"nothing happens", func(*story) {}, inVain},
		{"the other is told why it waits", func(s *story) {
			s.tell("w2", condition(kueue.QuotaReserved, kueue.ReasonWaitingForPreemptedWorkloads, metav1.ConditionFalse))
		}, inVain},
		{"a Workload comes", func(s *story) { s.wait("w4") }, inVain},
		{"a third is preempted for the same one", func(s *story) { s.preempt("w3", "w2") }, append(inVain, audit.RuleEvictionInVain+" Workload work/w3")},
		{"a third needs fewer pods", func(s *story) {
			s.tell("w3", func(o *kueue.WorkloadStatus) {
				o.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: 1}}
			})
		}, nil},
		{"a third is stopped", func(s *story) {
			s.tell("w3", func(o *kueue.WorkloadStatus) {
				o.Conditions = []metav1.Condition{{Type: kueue.Evicted, Reason: kueue.ReasonNodeFailures, Status: metav1.ConditionTrue}}
				o.Admission = nil
			})
		}, nil},
		{"the other gets a lower priority", func(s *story) {
			s.edit("w2", func(o *kueue.WorkloadSpec) { low := int32(-1); o.Priority = &low })
		}, nil},
		{"the other gets another queue", func(s *story) { s.edit("w2", func(o *kueue.WorkloadSpec) { o.QueueName = "else" }) }, nil},
		{"the other is deactivated", func(s *story) { s.edit("w2", func(o *kueue.WorkloadSpec) { no := false; o.Active = &no }) }, nil},
		{"the other is being deleted", func(s *story) {
			now := metav1.NewTime(s.now)
			s.workloads["w2"].DeletionTimestamp, s.workloads["w2"].Finalizers = &now, []string{"kueue.x-k8s.io/resource-in-use"}
			s.tell("w2", func(*kueue.WorkloadStatus) {})
		}, nil},
		{"the other is gated", func(s *story) {
			s.workloads["w2"].Annotations = map[string]string{kueue.AdmissionGatedByAnnotation: "example.com/gate"}
			s.tell("w2", func(*kueue.WorkloadStatus) {})
		}, nil},
		{"the other lacks pods", func(s *story) { s.tell("w2", condition(kueue.WaitingForReplacementPods, "", metav1.ConditionTrue)) }, nil},
		{"the other is not to be tried yet", func(s *story) {
			s.tell("w2", condition(kueue.Requeued, kueue.ReasonAdmissionCheck, metav1.ConditionFalse))
		}, nil},
		{"a check refuses the other", func(s *story) {
			s.tell("w2", func(o *kueue.WorkloadStatus) {
				o.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "c", State: kueue.CheckRejected}}
			})
		}, nil},
		{"a LocalQueue is stopped", func(s *story) {
			hold := kueue.Hold
			s.request("update", "kueue.x-k8s.io", "localqueues", "", &kueue.LocalQueue{TypeMeta: metav1.TypeMeta{Kind: "LocalQueue"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "lq", UID: "lq", Generation: 2}, Spec: kueue.LocalQueueSpec{StopPolicy: &hold}}, nil, person)
		}, nil},
		{"the status of a LocalQueue is written", func(s *story) {
			s.request("update", "kueue.x-k8s.io", "localqueues", "status", localQueue, nil, person)
		}, inVain},
		{"a LocalQueue is deleted", func(s *story) {
			s.request("delete", "kueue.x-k8s.io", "localqueues", "", nil, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "lq"}}, person)
		}, nil},
		{"a ClusterQueue is deleted", func(s *story) {
			s.request("delete", "kueue.x-k8s.io", "clusterqueues", "", nil, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "q2"}}, person)
		}, nil},
		{"an AdmissionCheck is not served any more", func(s *story) {
			s.request("update", "kueue.x-k8s.io", "admissionchecks", "status", &kueue.AdmissionCheck{TypeMeta: metav1.TypeMeta{Kind: "AdmissionCheck"},
				ObjectMeta: metav1.ObjectMeta{Name: "c"}}, nil, person)
		}, nil},
		{"a Queue gets another limit", func(s *story) { s.queue("q", "2") }, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := newStory(t)
			s.queue("q", "4")
			s.request("create", "kueue.x-k8s.io", "localqueues", "", localQueue, nil, person)
			s.clusterQueue("q1", "", "4", nil)
			s.clusterQueue("q2", "", "4", nil)
			s.admit("w1", "q1", "3")
			s.admit("w3", "q1", "1")
			s.wait("w2")
			s.pass(time.Minute)
			s.preempt("w1", "w2")
			c.meanwhile(s)
			s.admit("w1", "q1", "3")
			s.pass(time.Hour)
			s.expect(c.want...)
		})
	}
}

// TestRules tells stories. Each rule has some that break it, and some that only look as if they did.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		what  string
		story func(s *story)
		want  []string
	}{
		{"a pod is bound once", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "1")
			s.bind("a", "n1")
			s.end("a")
		}, nil},
		{"a pod is bound twice", func(s *story) {
			s.node("n1", "4")
			s.node("n2", "4")
			s.pod("a", "1")
			s.bind("a", "n1")
			s.bind("a", "n2")
		}, []string{audit.RuleDoubleBind + " Pod work/a"}},
		{"a pod of the same name is bound after it", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "1")
			s.bind("a", "n1")
			s.remove("a", person)
			s.pod("a", "1")
			s.bind("a", "n1")
		}, nil},
		{"a node is filled", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3")
			s.bind("a", "n1")
			s.pod("b", "1")
			s.bind("b", "n1")
		}, nil},
		{"a node is filled beyond", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3")
			s.bind("a", "n1")
			s.pod("b", "2")
			s.bind("b", "n1")
		}, []string{audit.RuleOverCommit + " Node n1"}},
		{"two schedulers fill a node at once", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3")
			s.pod("b", "2")
			s.bind("a", "n1", otherScheduler)
			s.bind("b", "n1")
		}, nil},
		{"a scheduler fills a node that another one has filled", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3")
			s.pod("b", "2")
			s.bind("a", "n1", otherScheduler)
			s.pass(time.Minute)
			s.bind("b", "n1")
		}, []string{audit.RuleOverCommit + " Node n1"}},
		{"a pod was deleted just before another left for it", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3", controlled)
			s.bind("a", "n1")
			s.pod("b", "2", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.remove("b", person)
			s.leave("a")
			s.pass(time.Hour)
		}, nil},
		{"a pod has ended before the next comes", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3")
			s.bind("a", "n1")
			s.end("a")
			s.pod("b", "2")
			s.bind("b", "n1")
		}, nil},
		{"a pod is leaving when the next comes", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3")
			s.bind("a", "n1")
			s.pod("b", "2")
			s.nominate("b", "n1")
			s.evict("a")
			s.bind("b", "n1")
		}, []string{audit.RuleOverCommit + " Node n1"}},
		{"a node has offered less for a moment", func(s *story) {
			s.node("n1", "4")
			s.node("n1", "2")
			s.pod("a", "3")
			s.bind("a", "n1")
		}, nil},
		{"a node has offered less for long", func(s *story) {
			s.node("n1", "4")
			s.node("n1", "2")
			s.pass(time.Minute)
			s.pod("a", "3")
			s.bind("a", "n1")
		}, []string{audit.RuleOverCommit + " Node n1"}},
		{"an answer shows a part of an object", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3")
			s.bind("a", "n1")
			s.request("patch", "", "pods", "", &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata"},
				ObjectMeta: s.pods["a"].ObjectMeta}, nil, person)
			s.pod("b", "2")
			s.bind("b", "n1")
		}, []string{audit.RuleOverCommit + " Node n1"}},
		{"two pods want one port", func(s *story) {
			port := func(p *corev1.Pod) {
				p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, Protocol: "TCP"}}
			}
			s.node("n1", "4")
			s.pod("a", "1", port)
			s.pod("b", "1", port)
			s.bind("a", "n1")
			s.bind("b", "n1")
		}, []string{audit.RuleOverCommit + " Node n1"}},
		{"a gang starts whole", func(s *story) {
			s.node("n1", "4")
			s.group("g", "q", 2)
			s.pod("a", "1", inGroup("g"))
			s.pod("b", "1", inGroup("g"))
			s.bind("a", "n1")
			s.pass(time.Minute)
			s.bind("b", "n1")
			s.pass(time.Hour)
		}, nil},
		{"a gang is evicted of which a pod has just ended", func(s *story) {
			s.node("n1", "8")
			s.group("g", "q", 2)
			for _, name := range []string{"a", "b"} {
				s.pod(name, "1", inGroup("g"))
				s.bind(name, "n1")
			}
			s.evict("a")
			s.end("b")
			s.request("create", "", "pods", "eviction", nil, &metav1Eviction{policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "b"}}}, theScheduler)
			s.remove("a", kubelet)
			s.pass(time.Hour)
		}, nil},
		{"a part of a gang starts", func(s *story) {
			s.node("n1", "4")
			s.group("g", "q", 2)
			s.pod("a", "1", inGroup("g"))
			s.pod("b", "8", inGroup("g"))
			s.bind("a", "n1")
			s.pass(6 * time.Minute)
		}, []string{audit.RulePartialGang + " PodGroup work/g"}},
		{"a part of a gang starts and is taken back", func(s *story) {
			s.node("n1", "4")
			s.group("g", "q", 2)
			s.pod("a", "1", inGroup("g"))
			s.pod("b", "8", inGroup("g"))
			s.bind("a", "n1")
			s.pass(4 * time.Minute)
			s.remove("a", theScheduler)
			s.pass(6 * time.Minute)
		}, nil},
		{"a gang starts without one of its tasks", func(s *story) {
			s.node("n1", "4")
			s.group("g", "q", 2, func(o *scheduling.PodGroup) { o.Spec.MinTaskMember = map[string]int32{"master": 1, "worker": 1} })
			s.pod("a", "1", inGroup("g"), annotated("volcano.sh/task-spec", "worker"))
			s.pod("b", "1", inGroup("g"), annotated("volcano.sh/task-spec", "worker"))
			s.bind("a", "n1")
			s.bind("b", "n1")
			s.pass(6 * time.Minute)
		}, []string{audit.RulePartialGang + " PodGroup work/g"}},
		{"a gang that needs fewer pods than its tasks together", func(s *story) {
			s.node("n1", "4")
			s.group("g", "q", 1, func(o *scheduling.PodGroup) { o.Spec.MinTaskMember = map[string]int32{"master": 1, "worker": 1} })
			s.pod("a", "1", inGroup("g"), annotated("volcano.sh/task-spec", "worker"))
			s.bind("a", "n1")
			s.pass(6 * time.Minute)
		}, nil},
		{"a pod of a gang fails", func(s *story) {
			s.node("n1", "4")
			s.group("g", "q", 2)
			s.pod("a", "1", inGroup("g"))
			s.pod("b", "1", inGroup("g"))
			s.bind("a", "n1")
			s.bind("b", "n1")
			s.remove("b", person)
			s.pass(6 * time.Minute)
		}, nil},
		{"a scheduler evicts a part of a gang", func(s *story) {
			s.node("n1", "4")
			s.group("g", "q", 2)
			s.pod("a", "2", inGroup("g"))
			s.pod("b", "2", inGroup("g"))
			s.bind("a", "n1")
			s.bind("b", "n1")
			s.pod("c", "2", ofPriority(5))
			s.nominate("c", "n1")
			s.leave("b")
			s.bind("c", "n1")
			s.pass(6 * time.Minute)
		}, []string{audit.RulePartialGang + " PodGroup work/g"}},
		{"a pod leaves for one of higher priority", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3")
			s.bind("a", "n1")
			s.pod("b", "2", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.leave("a")
			s.bind("b", "n1")
			s.pass(time.Hour)
		}, nil},
		{"a pod leaves for one of lower priority", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3", ofPriority(5))
			s.bind("a", "n1")
			s.pod("b", "2")
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.leave("a")
			s.bind("b", "n1")
			s.pass(time.Hour)
		}, []string{audit.RuleForbiddenEviction + " Pod work/a"}},
		{"a pod leaves for one that was deleted a moment ago", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3", ofPriority(5), controlled)
			s.bind("a", "n1")
			s.pod("b", "2")
			s.nominate("b", "n1")
			s.pod("c", "2", ofPriority(9))
			s.nominate("c", "n1")
			s.pass(time.Minute)
			s.remove("c", person)
			s.leave("a")
			s.bind("b", "n1")
			s.pass(time.Hour)
		}, nil},
		{"a pod leaves for one that was deleted long ago", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3", ofPriority(5), controlled)
			s.bind("a", "n1")
			s.pod("b", "2")
			s.nominate("b", "n1")
			s.pod("c", "2", ofPriority(9))
			s.nominate("c", "n1")
			s.remove("c", person)
			s.pass(time.Minute)
			s.leave("a")
			s.bind("b", "n1")
			s.pass(time.Hour)
		}, []string{audit.RuleForbiddenEviction + " Pod work/a"}},
		{"a pod leaves that is spared", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3", annotated("volcano.sh/preemptable", "false"))
			s.bind("a", "n1")
			s.pod("b", "2", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.leave("a")
			s.bind("b", "n1")
			s.pass(time.Hour)
		}, []string{audit.RuleForbiddenEviction + " Pod work/a"}},
		{"a pod leaves a queue that is not reclaimable", func(s *story) {
			no := false
			s.node("n1", "4")
			s.queue("own", "", func(o *scheduling.Queue) { o.Spec.Reclaimable = &no })
			s.queue("others", "")
			s.group("g", "own", 1)
			s.group("h", "others", 1)
			s.pod("a", "3", inGroup("g"))
			s.bind("a", "n1")
			s.pod("b", "2", inGroup("h"))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.leave("a")
			s.bind("b", "n1")
			s.pass(time.Hour)
		}, []string{audit.RuleForbiddenEviction + " Pod work/a"}},
		{"a person deletes a pod", func(s *story) {
			s.node("n1", "4")
			s.pod("x", "1")
			s.bind("x", "n1")
			s.pod("a", "3", annotated("volcano.sh/preemptable", "false"))
			s.bind("a", "n1")
			s.remove("a", person)
			s.pass(time.Hour)
		}, nil},
		{"a pod is evicted and comes back", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3", controlled)
			s.bind("a", "n1")
			s.pod("b", "2", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.leave("a")
			s.pod("a2", "3", controlled, ofPriority(5))
			s.change("b", func(p *corev1.Pod) { p.Status.NominatedNodeName = "" })
			s.bind("a2", "n1")
			s.pass(time.Hour)
		}, []string{audit.RuleEvictionInVain + " Pod work/a"}},
		{"two pods are evicted, one comes back, and then the other pod", func(s *story) {
			s.node("n1", "4")
			for _, name := range []string{"a1", "a2"} {
				s.pod(name, "2", controlled)
				s.bind(name, "n1")
			}
			s.pod("b", "2", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.leave("a1")
			s.leave("a2")
			s.pod("a3", "2", controlled)
			s.bind("a3", "n1")
			s.bind("b", "n1")
			s.pass(time.Hour)
		}, []string{audit.RuleEvictionInVain + " Pod work/a1"}},
		{"of two evicted pods one comes back, and waited when the second was evicted", func(s *story) {
			s.node("n1", "4")
			for _, name := range []string{"a1", "a2"} {
				s.pod(name, "2", controlled)
				s.bind(name, "n1")
			}
			s.pod("b", "2", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.leave("a1")
			s.pod("a3", "2", controlled)
			s.pass(time.Second)
			s.leave("a2")
			s.bind("a3", "n1")
			s.bind("b", "n1")
			s.pass(time.Hour)
		}, nil},
		{"a pod is evicted and nobody comes", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3", controlled)
			s.bind("a", "n1")
			s.pod("b", "2", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.leave("a")
			s.pass(time.Hour)
		}, []string{audit.RuleEvictionInVain + " Pod work/a"}},
		{"the pod for which another left is deleted", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3", controlled)
			s.bind("a", "n1")
			s.pod("b", "2", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.leave("a")
			s.remove("b", person)
			s.pass(time.Hour)
		}, nil},
		{"promised room goes to another pod", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3")
			s.bind("a", "n1")
			s.pod("b", "3", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.pass(time.Minute)
			s.leave("a")
			s.pod("c", "2")
			s.bind("c", "n1")
			s.end("c")
			s.bind("b", "n1")
			s.pass(time.Hour)
		}, []string{audit.RulePromisedRoom + " Pod work/c"}},
		{"room next to a promise goes to another pod", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "3")
			s.bind("a", "n1")
			s.pod("b", "3", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.pass(time.Minute)
			s.leave("a")
			s.pod("c", "1")
			s.bind("c", "n1")
			s.bind("b", "n1")
			s.pass(time.Hour)
		}, nil},
		{"a pod is bound next to a promise whose victim is evicted later", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "2")
			s.bind("a", "n1")
			s.pod("b", "1", ofPriority(5))
			s.nominate("b", "n1") // since the scheduler holds room for c, which is to come
			s.pass(time.Minute)
			s.pod("c", "2", ofPriority(5))
			s.bind("c", "n1")
			s.pass(time.Minute)
			s.leave("a")
			s.bind("b", "n1")
			s.pass(time.Hour)
		}, nil},
		{"a pod is bound next to a promise that is kept", func(s *story) {
			s.node("n1", "4")
			s.pod("a", "2")
			s.bind("a", "n1")
			s.pod("b", "2", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.pod("c", "1")
			s.bind("c", "n1")
			s.pass(time.Minute)
			s.end("a")
			s.bind("b", "n1")
			s.pass(time.Hour)
		}, nil},
		{"promised room is not given back", func(s *story) {
			s.node("n1", "4")
			s.pod("b", "3", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.pod("c", "2")
			s.bind("c", "n1")
			s.pass(time.Hour)
		}, []string{audit.RulePromisedRoom + " Pod work/c"}},
		{"promised room is given up after it has gone to another pod", func(s *story) {
			s.node("n1", "4")
			s.node("n2", "4")
			s.pod("b", "3", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.pod("c", "2")
			s.bind("c", "n1")
			s.bind("b", "n2")
			s.pass(time.Hour)
		}, nil},
		{"promised room is promised elsewhere after it has gone to another pod", func(s *story) {
			s.node("n1", "4")
			s.pod("b", "3", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.pod("c", "2")
			s.bind("c", "n1")
			s.nominate("b", "")
			s.pass(time.Hour)
		}, nil},
		{"promised room is given up long after it has gone to another pod", func(s *story) {
			s.node("n1", "4")
			s.node("n2", "4")
			s.pod("b", "3", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.pod("c", "2")
			s.bind("c", "n1")
			s.pass(time.Minute)
			s.bind("b", "n2")
			s.pass(time.Hour)
		}, []string{audit.RulePromisedRoom + " Pod work/c"}},
		{"promised room is given up after another scheduler has taken it", func(s *story) {
			s.node("n1", "4")
			s.node("n2", "4")
			s.pod("b", "3", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.pod("c", "2")
			s.bind("c", "n1", "another-scheduler")
			s.bind("b", "n2")
			s.pass(time.Hour)
		}, []string{audit.RulePromisedRoom + " Pod work/c"}},
		{"promised room goes to another pod, and the other one is deleted", func(s *story) {
			s.node("n1", "4")
			s.pod("b", "3", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.pod("c", "2")
			s.bind("c", "n1")
			s.remove("b", person)
			s.pass(time.Hour)
		}, []string{audit.RulePromisedRoom + " Pod work/c"}},
		{"promised room goes to a pod of higher priority", func(s *story) {
			s.node("n1", "4")
			s.pod("b", "3", ofPriority(5))
			s.nominate("b", "n1")
			s.pass(time.Minute)
			s.pod("c", "2", ofPriority(9))
			s.bind("c", "n1")
		}, nil},
		{"a pod is deleted that a budget protects", deletesProtected(func(*story) {}), []string{audit.RuleBudget + " Pod work/a"}},
		{"the scheduler says first that a pod with a budget is not ready", deletesProtected(func(s *story) {
			s.pods["a"].Status.Conditions[0].Status = corev1.ConditionFalse
			s.request("update", "", "pods", "status", s.pods["a"], nil, theScheduler)
		}), []string{audit.RuleBudget + " Pod work/a"}},
		{"a pod with a budget is not ready any more", deletesProtected(func(s *story) {
			s.change("a", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse })
		}), nil},
		{"the node says so before the scheduler and arrives later", deletesProtected(func(s *story) {
			s.pods["a"].Status.Conditions[0].Status = corev1.ConditionFalse
			s.version++ // that of the node
			s.request("patch", "", "pods", "status", s.pods["a"], nil, theScheduler)
			s.version -= 2
			s.request("patch", "", "pods", "status", s.pods["a"], nil, kubelet)
			s.version++
		}), nil},
		{"a queue holds what it may", func(s *story) {
			s.node("n1", "8")
			s.queue("q", "4")
			s.group("g", "q", 1)
			s.pod("a", "4", inGroup("g"))
			s.bind("a", "n1")
		}, nil},
		{"a queue holds more than it may", func(s *story) {
			s.node("n1", "8")
			s.queue("q", "4")
			s.group("g", "q", 1)
			s.pod("a", "3", inGroup("g"))
			s.pod("b", "2", inGroup("g"))
			s.bind("a", "n1")
			s.bind("b", "n1")
		}, []string{audit.RuleQueueLimit + " Queue q"}},
		{"a pod is bound while another of its queue leaves", func(s *story) {
			s.node("n1", "8")
			s.queue("root", "4")
			s.queue("q", "4", func(q *scheduling.Queue) { q.Spec.Parent = "root" })
			s.group("g", "q", 1)
			s.pod("a", "3", inGroup("g"))
			s.bind("a", "n1")
			s.pod("b", "1", inGroup("g"))
			s.pod("c", "2", inGroup("g"), ofPriority(5))
			s.nominate("c", "n1")
			s.evict("a")
			s.bind("c", "n1")
			s.bind("b", "n1")
		}, nil},
		{"a queue holds more than it may without a pod that leaves", func(s *story) {
			s.node("n1", "8")
			s.queue("q", "4")
			s.group("g", "q", 1)
			s.pod("a", "1", inGroup("g"))
			s.bind("a", "n1")
			s.pod("b", "3", inGroup("g"))
			s.pod("c", "2", inGroup("g"), ofPriority(5))
			s.nominate("c", "n1")
			s.evict("a")
			s.bind("c", "n1")
			s.bind("b", "n1")
		}, []string{audit.RuleQueueLimit + " Queue q"}},
		{"the limit of a queue is lifted, and is set anew", func(s *story) {
			s.node("n1", "8")
			s.queue("q", "1")
			s.group("g", "q", 1)
			for _, name := range []string{"a", "b", "c"} {
				s.pod(name, "1", inGroup("g"))
			}
			s.bind("a", "n1")
			s.pass(time.Minute)
			s.queue("q", "")
			s.bind("b", "n1")
			s.pass(time.Minute)
			s.queue("q", "1")
			s.bind("c", "n1") // by a scheduler that has not seen it
		}, nil},
		{"a queue holds more than one above it may", func(s *story) {
			s.node("n1", "8")
			s.queue("root", "4")
			s.queue("q", "6", func(o *scheduling.Queue) { o.Spec.Parent = "root" })
			s.group("g", "q", 1)
			s.pod("a", "3", inGroup("g"))
			s.pod("b", "2", inGroup("g"))
			s.bind("a", "n1")
			s.bind("b", "n1")
		}, []string{audit.RuleQueueLimit + " Queue root"}},
		{"queues of a cohort share their quota", func(s *story) {
			s.clusterQueue("q1", "c", "4", nil)
			s.clusterQueue("q2", "c", "4", nil)
			s.admit("w1", "q1", "6")
			s.admit("w2", "q2", "2")
		}, nil},
		{"queues of a cohort hold more than they have", func(s *story) {
			s.clusterQueue("q1", "c", "4", nil)
			s.clusterQueue("q2", "c", "4", nil)
			s.admit("w1", "q1", "6")
			s.admit("w2", "q2", "3")
		}, []string{audit.RuleQuota + " Workload work/w2"}},
		{"a Workload holds quota for pods that had not ended before", func(s *story) {
			s.clusterQueue("q1", "c", "4", nil)
			s.wait("w1")
			s.edit("w1", func(o *kueue.WorkloadSpec) { o.PodSets = []kueue.PodSet{{Name: "main", Count: 3}} })
			s.tell("w1", func(o *kueue.WorkloadStatus) { o.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: 2}} })
			s.admit("w1", "q1", "3")
			s.admit("w2", "q1", "2")
		}, []string{audit.RuleQuota + " Workload work/w2"}},
		{"a queue borrows more than it may", func(s *story) {
			one := "1"
			s.clusterQueue("q1", "c", "4", &one)
			s.clusterQueue("q2", "c", "4", nil)
			s.admit("w1", "q1", "6")
		}, []string{audit.RuleQuota + " Workload work/w1"}},
		{"a Workload is preempted for another one", func(s *story) {
			s.clusterQueue("q1", "", "4", nil)
			s.admit("w1", "q1", "4")
			s.wait("w2")
			s.pass(time.Minute)
			s.preempt("w1", "w2")
			s.admit("w2", "q1", "4")
			s.pass(time.Hour)
		}, nil},
		{"a Workload is preempted and admitted again", func(s *story) {
			s.clusterQueue("q1", "", "4", nil)
			s.admit("w1", "q1", "4")
			s.wait("w2")
			s.pass(time.Minute)
			s.preempt("w1", "w2")
			s.admit("w1", "q1", "4")
			s.pass(time.Hour)
		}, []string{audit.RuleEvictionInVain + " Workload work/w1"}},
		{"a Workload is admitted again a moment before the one for which it was preempted", func(s *story) {
			s.clusterQueue("q1", "", "4", nil)
			s.admit("w1", "q1", "2")
			s.wait("w2")
			s.pass(time.Minute)
			s.preempt("w1", "w2")
			s.admit("w1", "q1", "2") // both are decided in one cycle, and the request for the other is slow
			s.now = s.now.Add(time.Second)
			s.admit("w2", "q1", "2")
			s.pass(time.Hour)
		}, nil},
		{"one write says that a Workload is admitted, and preempted", func(s *story) {
			s.clusterQueue("q1", "", "4", nil)
			s.wait("w1")
			s.wait("w2")
			s.pass(time.Minute)
			one := int32(1)
			s.workloads["w1"].Status.Conditions = []metav1.Condition{{Type: kueue.QuotaReserved, Status: metav1.ConditionTrue}}
			s.workloads["w1"].Status.Admission = &kueue.Admission{ClusterQueue: "q1", PodSetAssignments: []kueue.PodSetAssignment{
				{Name: "main", Count: &one, Flavors: map[corev1.ResourceName]string{corev1.ResourceCPU: "f"}, ResourceUsage: list("2")}}}
			s.preempt("w1", "w2")
			s.pass(time.Minute)
			s.admit("w2", "q1", "4")
			s.pass(time.Hour)
		}, nil},
		{"a Job deletes the pods of its Workload that is preempted, and none is admitted", func(s *story) {
			s.node("n1", "4")
			s.clusterQueue("q1", "", "4", nil)
			s.workloadOfJob("w1", "job-j")
			s.admit("w1", "q1", "4")
			s.pod("a", "1", controlled)
			s.bind("a", "n1")
			s.wait("w2")
			s.pass(time.Minute)
			s.preempt("w1", "w2")
			s.remove("a", person)
			s.pass(time.Hour)
		}, []string{audit.RuleEvictionInVain + " Workload work/w1"}},
		{"a group of pods is preempted, is deleted pod by pod, and none is admitted", func(s *story) {
			s.node("n1", "4")
			s.clusterQueue("q1", "", "4", nil)
			s.pod("a", "1", annotated(kueue.WorkloadAnnotation, "w1"))
			s.bind("a", "n1")
			s.admit("w1", "q1", "4")
			s.wait("w2")
			s.pass(time.Minute)
			s.preempt("w1", "w2")
			s.remove("a", person)
			s.pass(time.Hour)
		}, []string{audit.RuleEvictionInVain + " Workload work/w1"}},
		{"a Workload is preempted, and a pod of another Job leaves", func(s *story) {
			s.node("n1", "4")
			s.clusterQueue("q1", "", "4", nil)
			s.workloadOfJob("w1", "job-k")
			s.admit("w1", "q1", "4")
			s.pod("a", "1", controlled)
			s.bind("a", "n1")
			s.wait("w2")
			s.pass(time.Minute)
			s.preempt("w1", "w2")
			s.remove("a", person)
			s.pass(time.Hour)
		}, nil},
		{"a Workload is preempted and none is admitted", func(s *story) {
			s.clusterQueue("q1", "", "4", nil)
			s.admit("w1", "q1", "4")
			s.wait("w2")
			s.pass(time.Minute)
			s.preempt("w1", "w2")
			s.pass(time.Hour)
		}, []string{audit.RuleEvictionInVain + " Workload work/w1"}},
		{"a Workload is preempted and its quota is lowered", func(s *story) {
			s.clusterQueue("q1", "", "4", nil)
			s.admit("w1", "q1", "4")
			s.wait("w2")
			s.pass(time.Minute)
			s.preempt("w1", "w2")
			s.clusterQueue("q1", "", "2", nil)
			s.pass(time.Hour)
		}, nil},
		{"a job is overtaken for long", func(s *story) {
			s.node("n1", "100")
			s.pod("a", "1")
			s.pass(2 * time.Minute)
			for i := range 11 {
				name := string(rune('b' + i))
				s.pod(name, "1")
				s.bind(name, "n1")
			}
		}, []string{audit.RuleOvertaken + " Pod work/a"}},
		{"a job of another shape is passed by", func(s *story) {
			s.node("n1", "100")
			s.pod("a", "90")
			s.pass(2 * time.Minute)
			for i := range 11 {
				name := string(rune('b' + i))
				s.pod(name, "1")
				s.bind(name, "n1")
			}
		}, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := newStory(t)
			c.story(s)
			s.expect(c.want...)
		})
	}
}

// deletesProtected has a scheduler delete a pod that a budget protects, for another pod, after something else.
func deletesProtected(before func(s *story)) func(s *story) {
	return func(s *story) {
		s.node("n1", "4")
		ready := func(p *corev1.Pod) {
			p.Labels = map[string]string{"app": "a"}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		s.pod("a", "3", ready)
		s.request("update", "policy", "poddisruptionbudgets", "status", &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "a"},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}}, nil, person)
		s.bind("a", "n1")
		s.pass(time.Minute)
		s.pod("b", "2", ofPriority(5))
		s.nominate("b", "n1")
		before(s)
		s.remove("a", theScheduler)
		s.bind("b", "n1")
		s.pass(time.Hour)
	}
}
