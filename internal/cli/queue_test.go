package cli_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func TestQueuesAreCreatedOperatedAndDeleted(t *testing.T) {
	mustSay(t, "vcctl queue create", "create queue test successfully")
	mustSay(t, "vcctl queue create -n plain -w 3", "create queue plain successfully")
	mustSay(t, "hekla queue create rich --priority 7 --parent root --deserved cpu=4 --guarantee cpu=2 --capability cpu=8 --reclaimable=false",
		"create queue rich successfully")
	mustSay(t, "vcctl queue create -n shut -S Closed", "create queue shut successfully")
	mustSay(t, "hekla queue create ajar -S Closed --dry-run=server", "create queue ajar successfully (server dry run)")
	mustFail(t, "hekla queue create", "needs a name")
	mustFail(t, "hekla queue create x -S Ajar", "Open or Closed")
	mustFail(t, "hekla queue create x -n y", "both name a queue")
	mustFail(t, "hekla queue create rich", `"rich" already exists`, "another name")
	mustFail(t, "hekla queue create odd --deserved cpu=4 --capability cpu=2", "deserved")

	mustSay(t, "vcctl queue operate -n plain -a update -w 5", "update queue plain successfully")
	mustFail(t, "vcctl queue operate -n plain -a update", "--weight")
	mustFail(t, "vcctl queue operate -n plain -a close -w 5", "--action=update only")
	mustFail(t, "vcctl queue operate -n plain", "open, close or update")
	mustFail(t, "vcctl queue operate -n nobody -a open", `there is no queue "nobody"; "vcctl queue list"`)
	var plain, rich scheduling.Queue
	get(t, "", "plain", &plain)
	get(t, "", "rich", &rich)
	if plain.Spec.Weight != 5 {
		t.Errorf("the weight is %d", plain.Spec.Weight)
	}
	four, eight := resource.MustParse("4"), resource.MustParse("8")
	if rich.Spec.Priority != 7 || *rich.Spec.Reclaimable || !rich.Spec.Deserved.Cpu().Equal(four) || !rich.Spec.Capability.Cpu().Equal(eight) {
		t.Errorf("the queue is %+v", rich.Spec)
	}

	mustSay(t, "vcctl queue operate -n rich -a close", "close queue rich successfully")
	mustSay(t, "vcctl queue operate -n rich -a open", "open queue rich successfully")
	var commands bus.CommandList
	if err := api.List(t.Context(), &commands, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	issued := map[string]bool{}
	for _, c := range commands.Items {
		issued[c.TargetObject.Kind+" "+c.TargetObject.Name+" "+c.Action] = true
	}
	for _, want := range []string{"Queue rich CloseQueue", "Queue rich OpenQueue", "Queue shut CloseQueue"} {
		if !issued[want] {
			t.Errorf("%s was not issued; there are %v", want, issued)
		}
	}

	mustSay(t, "vcctl queue delete -n plain --dry-run=client", "delete queue plain successfully (dry run)")
	mustSay(t, "hekla queue delete plain rich shut test", `
delete queue plain successfully
delete queue rich successfully
delete queue shut successfully
delete queue test successfully`)
	if err := api.Get(t.Context(), client.ObjectKey{Name: "plain"}, &plain); !apierrors.IsNotFound(err) {
		t.Errorf("the queue is still there: %v", err)
	}
}

func resources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{"memory": resource.MustParse(memory), "cpu": resource.MustParse(cpu)}
}

func TestQueuesAreListedWithTheirShares(t *testing.T) {
	no := false
	queue := &scheduling.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: "research", Labels: map[string]string{"list": "shares"}},
		Spec: scheduling.QueueSpec{Weight: 2, Parent: "root", Priority: 10, Deserved: resources("8", "32Gi"), Reclaimable: &no,
			Guarantee: scheduling.Guarantee{Resource: resources("1", "1Gi")}, Capability: resources("16", "64Gi")},
	}
	bare := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: "bare", Labels: map[string]string{"list": "shares"}}}
	create(t, queue, bare)
	queue.Status = scheduling.QueueStatus{State: scheduling.QueueStateOpen, Inqueue: 1, Pending: 2, Running: 3, Unknown: 4, Completed: 5,
		Allocated: resources("10", "8Gi")}
	updateStatus(t, queue)
	const titles = "Name Weight State Parent Inqueue Pending Running Unknown Completed Priority Share Allocated Deserved"
	const research = "\nresearch 2 Open root 1 2 3 4 5 10 125% cpu=10,memory=8Gi cpu=8,memory=32Gi"
	const plain = "\nbare 1 - - 0 0 0 0 0 0 - - -"
	for line, want := range map[string]string{
		"vcctl queue list -l list=shares":                          titles + plain + research,
		"vcctl queue get -n research":                              titles + research,
		"vqueues -n research":                                      titles + research,
		"hekla queue get bare --no-headers":                        plain,
		"hekla queue list -l list=shares -o name":                  "queue.scheduling.volcano.sh/bare\nqueue.scheduling.volcano.sh/research",
		"hekla queue get bare -o name":                             "queue.scheduling.volcano.sh/bare",
		"hekla queue list -l list=none":                            "No queues found",
		"vqueues research -o jsonpath={.kind}":                     "Queue",
		"hekla queue get research -o go-template={{.spec.weight}}": "2",
		"hekla queue list -l list=shares -o wide": titles + " Guarantee Capability Reclaimable Age" + plain + " - - true AGE" + research +
			" cpu=1,memory=1Gi cpu=16,memory=64Gi false AGE",
	} {
		t.Run(line, func(t *testing.T) { mustSay(t, line, want) })
	}
	mustFail(t, "vcctl queue get -n nobody", `there is no queue "nobody"`)
	mustFail(t, "vcctl queue get", "which queue?")
}

func TestGuaranteesAreShownWhereTheyAreEnforced(t *testing.T) {
	tenant := &scheduling.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: "tenant", Labels: map[string]string{"list": "guarantees"}, Annotations: map[string]string{"hekla.sh/preemption.policy": "fence"}},
		Spec:       scheduling.QueueSpec{Weight: 1, Guarantee: scheduling.Guarantee{Resource: resources("8", "16Gi")}},
	}
	team := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{"list": "guarantees"}},
		Spec: scheduling.QueueSpec{Weight: 1, Parent: "tenant"}}
	create(t, tenant, team)
	for _, q := range []*scheduling.Queue{tenant, team} {
		q.Status = scheduling.QueueStatus{State: scheduling.QueueStateOpen, Allocated: resources("5", "20Gi")}
		updateStatus(t, q)
	}
	n := namespace(t)
	create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n, Name: "on"}, Data: map[string]string{"volcano-scheduler.conf": "actions: allocate, reclaim\ntiers:\n" +
		"- plugins: [{name: gang}, {name: predicates}, {name: guaranteed-shares, arguments: {preemptionDelay: 20s}}]\n"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n, Name: "bad"}, Data: map[string]string{"volcano-scheduler.conf": "actions: dance"}})
	const plain = "Name Weight State Parent Inqueue Pending Running Unknown Completed Priority Share Allocated Deserved"
	const titles, row = plain + " Guaranteed Remaining", "team 1 Open tenant 0 0 0 0 0 0 - cpu=5,memory=20Gi -"
	mustSay(t, "hekla queue list -l list=guarantees --scheduler-configmap "+n+"/on",
		titles+"\n"+row+" cpu=8,memory=16Gi cpu=3,memory=0\ntenant 1 Open - 0 0 0 0 0 0 - cpu=5,memory=20Gi - cpu=8,memory=16Gi cpu=3,memory=0")
	mustSay(t, "hekla queue get team --scheduler-configmap "+n+"/on", titles+"\n"+row+" cpu=8,memory=16Gi cpu=3,memory=0"+`

Resource Guaranteed To Held Remaining Preemptable
cpu 8 tenant 5 3 0
memory 16Gi tenant 20Gi 0 4Gi

Setting Value From
takes room below queue tenant only queue tenant (fence)
gives room above its guarantee default
preemption delay 20s configuration of the scheduler
priority of jobs as they have default`)
	mustSay(t, "hekla queue get team --scheduler-configmap "+n+"/none", plain+"\n"+row)
	mustSay(t, "vcctl queue get -n team --scheduler-configmap "+n+"/on", plain+"\n"+row)
	mustFail(t, "hekla queue list --scheduler-configmap on", "NAMESPACE/NAME")
	mustSay(t, "hekla queue get team -o name --scheduler-configmap "+n+"/bad", "queue.scheduling.volcano.sh/team")
}

func TestAWatchGoesOnWithWhatChanges(t *testing.T) {
	n := namespace(t)
	runningJob(t, n, "first", "research")
	list := start(t, "hekla job list -w -q research -n "+n)
	list.await(t, "first DATE Running Batch 4 2 1 2")
	job := runningJob(t, n, "second", "research")
	job.Status.Running = 77
	updateStatus(t, job)
	list.await(t, "second DATE Running Batch 4 2 1 77")
	runningJob(t, n, "hidden", "elsewhere")
	runningJob(t, n, "third", "research")
	list.await(t, "third DATE Running")
	list.end(t)
	if text := list.said(); strings.Contains(text, "hidden") || strings.Count(text, "Name Creation") != 1 {
		t.Errorf("too much is shown:\n%s", text)
	}
}
