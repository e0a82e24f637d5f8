package pages

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/test/apitest"
	"hekla.sh/hekla/test/blocks"
)

// patience bounds what one block does. Only a failure reaches it.
const patience = 4 * time.Minute

// typed is how a block of commands of a page is typed. The block itself is the page's.
type typed struct {
	before string   // commands that make what the page takes for granted
	in     []string // pairs: words of the block, and what the reader has in their place
	after  string   // commands that look at what the block has done
	says   []string // what is said, in this order; the last command is typed again until it is
}

// clean removes what a page has made. What a Job makes goes with it; pods that have ended go with their PodGroups.
const clean = `
kubectl delete jobflows,jobtemplates,cronjobs.batch.volcano.sh,jobs.batch.volcano.sh,jobs.batch,deployments --all
kubectl delete localqueues,clusterqueues,resourceflavors --all
kubectl delete podgroups.scheduling.volcano.sh --all
kubectl delete queues --field-selector=metadata.name!=root,metadata.name!=default
kubectl delete priorityclasses --field-selector=metadata.name!=system-node-critical,metadata.name!=system-cluster-critical
kubectl delete pods --all
kubectl delete node why-1 --ignore-not-found
kubectl apply -f installer/configuration.yaml
kubectl uncordon --selector=kubernetes.io/hostname`

// gangShort is what the pages quote of the first example on two nodes.
const gangShort = "2 of the 3 pods that must start together have a place; 0/2 nodes are available: 2 Insufficient cpu (such as node-1): " +
	"cpu: needs 5, has 3, short by 2"

// Files and commands that several pages take for granted.
const (
	// edits is an editor that adds an action to the configuration.
	edits = "export KUBE_EDITOR=\"sed -i 's/allocate, backfill/allocate, preempt, backfill/'\"\n" +
		"kubectl -n volcano-system delete configmap volcano-scheduler-configmap"
	edited = `actions: "enqueue, admit, allocate, preempt, backfill"`
	// aGangWaits returns when the scheduler knows the pods of the first example.
	aGangWaits = "kubectl apply -f example/01-gang-job.yaml\n" +
		"kubectl wait vcjob gang --for=jsonpath='{.status.state.reason}'=GangShort --timeout=60s"
	clusterFile   = "kubectl get nodes,pods,queues,podgroups,vcjob,priorityclasses,namespaces -A -o yaml > cluster.yaml"
	otherFile     = "sed 's/allocate, backfill/allocate, preempt, backfill/' installer/configuration.yaml > new.yaml"
	schedulerConf = "kubectl -n volcano-system get configmap volcano-scheduler-configmap -o jsonpath='{.data.volcano-scheduler\\.conf}' > my-scheduler.conf"
	// aRayCluster waits, for more than the cluster has.
	aRayCluster = `kubectl apply -f - <<'END'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rayclusters.ray.io}
spec:
  group: ray.io
  scope: Namespaced
  names: {kind: RayCluster, plural: rayclusters, singular: raycluster}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
END
kubectl wait crd rayclusters.ray.io --for=condition=Established --timeout=60s
kubectl apply -f - <<'END'
{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: big, namespace: default}}
END
kubectl apply -f - <<END
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata:
  name: ray-big-pg
  namespace: default
  ownerReferences: [{apiVersion: ray.io/v1, kind: RayCluster, name: big, uid: "$(kubectl get raycluster big -o jsonpath={.metadata.uid})", controller: true}]
spec: {minMember: 1, minResources: {cpu: "64"}, queue: research}
END
kubectl wait podgroup ray-big-pg --for=jsonpath='{.status.phase}'=Pending --timeout=60s`
	// volumes are there for the claims of an example, because no provisioner makes them.
	volumes = `kubectl apply -f - <<'END'
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: standard}, provisioner: kubernetes.io/no-provisioner, volumeBindingMode: WaitForFirstConsumer}
END
for name in one two three four; do kubectl apply -f - <<END
apiVersion: v1
kind: PersistentVolume
metadata: {name: $name}
spec:
  storageClassName: standard
  accessModes: [ReadWriteOnce, ReadWriteMany]
  capacity: {storage: 1Gi}
  hostPath: {path: /volumes/$name}
END
done`
	// leftPod is a pod that was queued by itself, as Hekla leaves it where its controllers do not run any more.
	leftPod = `kubectl apply -f - <<'END'
apiVersion: v1
kind: Pod
metadata: {name: held, namespace: default, finalizers: [example.com/keep, kueue.x-k8s.io/managed]}
spec: {schedulerName: none, containers: [{name: main, image: busybox:1.37}]}
END`
)

// page has the blocks of a page that are typed, in their order.
type page struct {
	name   string
	blocks []typed
}

// onTwoNodes are the pages that are typed on a cluster of two nodes.
var onTwoNodes = []page{
	{"README.md", []typed{
		{says: []string{"job.batch.volcano.sh/gang created", "NAME", gangShort}},
		{before: edits, after: "hekla diag", says: []string{"volcano-scheduler-configmap created", "volcano-scheduler-configmap edited", edited}},
	}},
	{"docs/audit.md", []typed{
		{in: []string{"1h", "2s"}, says: []string{" 0 violations"}},
	}},
	{"docs/cli.md", []typed{
		{says: []string{"run job train successfully", "\ntrain ", "Name:          train", "Scheduling:", "\ndefault ", "cpu=4"}},
		{before: "mkdir own\ncp bin/hekla own\nPATH=$PWD/own:$PATH", after: "vjobs train\nvcctl job list\nkubectl hekla version --client",
			says: []string{"Name:          train", "\ntrain ", "Version: "}},
		{before: aRayCluster, says: []string{"\ndefault ", "RayCluster/big", "Pending", "TooLargeForQueue", "Job default/ray-big-pg cannot start as things are: TooLargeForQueue",
			"Job default/ray-big-pg-again would wait for admission"}},
		{after: "complete -p hekla", says: []string{"__start_hekla hekla"}},
	}},
	{"docs/configuration.md", []typed{
		{before: edits, after: "hekla diag", says: []string{"volcano-scheduler-configmap created", "volcano-scheduler-configmap edited", edited}},
		{before: schedulerConf + "\n" + clusterFile, says: []string{edited, "predicates", "\nAfter ", "at rest"}},
	}},
	{"docs/cronjob.md", []typed{
		{after: "kubectl patch cronvj nightly --type=merge -p '{\"spec\":{\"schedule\":\"@every 10s\"}}'\nkubectl get vcjob",
			says: []string{"cronjob.batch.volcano.sh/nightly created", "30 2 * * *", "Atlantic/Reykjavik", "nightly patched", "\nnightly-"}},
	}},
	{"docs/install.md", []typed{
		{before: "kubectl apply -f example/quotas/01-one-queue.yaml", in: []string{"QUEUE", "cluster-queue"}, says: []string{`"kind":"PendingWorkloadsSummary"`}},
	}},
	{"docs/job-plugins.md", []typed{
		{after: "kubectl get vcjob -o custom-columns=:metadata.name,:status.state.phase --no-headers | xargs", says: []string{
			"pytorch-ddp created", "tensorflow-ps created", "mpi created", "ray created", "mpi Running pytorch-ddp Running ray Running tensorflow-ps Running"}},
	}},
	{"docs/jobflow.md", []typed{
		{says: []string{"jobflow.flow.volcano.sh/nightly created", "nightly", "nightly-prepare", "nightly-report", "nightly-train", "nightly-watch"}},
	}},
	{"docs/preemption.md", []typed{
		{before: "kubectl apply -f example/preemption/configuration.yaml -f example/preemption/before.yaml\n" +
			"kubectl wait vcjob --all --for=jsonpath='{.status.state.phase}'=Running --timeout=60s\n" +
			"kubectl apply -f example/preemption/between-queues.yaml", says: []string{"pod/regression-worker-", "Preempted by job default/release"}},
		{in: []string{"podgroup NAME", "podgroup $(kubectl get podgroups -o name | sed -n 's|.*/\\(regression-.*\\)|\\1|p')"}, says: []string{"Preempted by job default/release"}},
		{in: []string{"NAME", "regression"}, says: []string{" pod regression-worker-", "Preempted by job default/release"}},
		{before: "kubectl apply -f example/preemption/no-victim-left.yaml", in: []string{"NAME", "late"}, says: []string{"16 pods cannot be evicted for it: "}},
	}},
	{"docs/simulate.md", []typed{
		{before: schedulerConf, says: []string{"default/gang waits: GangShort: " + gangShort, "After 2 cycles, at rest"}},
		{before: aGangWaits + "\n" + clusterFile, says: []string{`"job": "default/gang`, `"code": "GangShort"`}},
	}},
	{"docs/volumes.md", []typed{
		{before: volumes, after: "kubectl get vcjob volumes",
			says: []string{"job.batch.volcano.sh/volumes created", "Running   3"}},
	}},
	{"docs/web.md", []typed{
		{before: "kubectl create namespace team-a\nkubectl -n team-a create serviceaccount viewer", says: []string{"eyJ"}},
	}},
	{"docs/why-pending.md", []typed{
		{before: aGangWaits, in: []string{"NAME", "gang"}, says: []string{"GangShort: " + gangShort}},
	}},
	{"docs/why/diag.md", []typed{
		{says: []string{"leads for", "Health: 2 of 2 nodes", " 0 gangs of 4 pods could start now", " 0 gangs of 16 pods could start now"}},
	}},
	{"docs/why/replay.md", []typed{
		{before: otherFile, says: []string{"0 decisions in ", "Nothing differs: the same 0 decisions", "0 decisions of the cluster are those of the replay, 0 are not"}},
	}},
	{"docs/why/README.md", []typed{
		{before: aGangWaits + "\nkubectl apply -f example/quotas/01-one-queue.yaml\nuntil kubectl get workloads | grep sample; do sleep 0.1; done",
			in: []string{"job NAME", "job gang", "pod NAME", "pod gang-worker-0", "queue NAME", "queue default",
				"workload NAME", "workload $(kubectl get workloads -o name | sed 's|.*/||')", "node NAME", "node node-1"},
			says: []string{"Job default/gang waits: GangShort", "gang-worker-0", "Queue default is Open", "Workload default/job-sample-job", "Node node-1: ready true"}},
		{before: "sed 's/name: gang$/name: second/' example/01-gang-job.yaml > job.yaml", says: []string{"Job default/second would wait"}},
		{before: otherFile + "\nkubectl get queue default -o yaml | sed 's/weight: 1/weight: 2/' > queue.yaml",
			says: []string{"Nothing differs: the same", "Nothing differs: the same"}},
		{before: clean, says: []string{"Job default/stuck cannot start as things are: NodeTaints"}},
	}},
	{"docs/workloads.md", []typed{
		{says: []string{"deployment.apps/web created", "podgroup-", "Running   4           4"}},
	}},
}

// withoutHekla are those for a cluster where no program of Hekla runs.
var withoutHekla = []page{
	{"docs/migrate-from-kueue.md", []typed{
		{before: leftPod, after: "kubectl get pod held -o jsonpath='{.metadata.finalizers}'\n" +
			"kubectl patch pod held --type=json -p '[{\"op\":\"remove\",\"path\":\"/metadata/finalizers\"}]'",
			says: []string{"pod/held patched", `["example.com/keep"]`, "pod/held patched"}},
	}},
}

// newTypist is a reader who may leave out bin/, as the pages for those who have installed hekla do.
func newTypist(t *testing.T) Reader {
	t.Helper()
	r := newReader(t)
	path := []string{filepath.Join(r.Dir, "bin"), r.Programs, os.Getenv("PATH")}
	r.Environment = append(r.Environment, "PATH="+strings.Join(path, string(os.PathListSeparator)))
	return r
}

// reads types the blocks of a page for which the page names the test. There are as many as the test knows.
func (r Reader) reads(t *testing.T, p page) {
	t.Helper()
	all, err := blocks.All(root)
	if err != nil {
		t.Fatal(err)
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	all = slices.DeleteFunc(all, func(b blocks.Block) bool { return b.Page != p.name || b.RunBy != test })
	if len(all) != len(p.blocks) {
		t.Fatalf("%s names this test for %d blocks, and it knows %d", p.name, len(all), len(p.blocks))
	}
	for i, b := range all {
		r.types(t, b, p.blocks[i])
	}
}

// The blocks of pages that do not show what is said, as a reader pastes them.
func TestTheBlocksOfCommandsWorkAsTheyAreTyped(t *testing.T) {
	for _, cluster := range []struct {
		up    string
		pages []page
	}{
		{"hekla up --nodes 2", onTwoNodes},
		{"hekla up --nodes 1 --components=", withoutHekla},
	} {
		r := newTypist(t)
		r.Follow(t, Step{Commands: cluster.up})
		for _, page := range cluster.pages {
			t.Run(page.name, func(t *testing.T) {
				t.Cleanup(func() {
					if output, err := r.Type(context.Background(), clean); err != nil {
						t.Errorf("%v\n%s", err, output)
					}
				})
				r.reads(t, page)
			})
		}
		r.Follow(t, Step{Commands: "hekla down"})
	}
}

// The page begins without a cluster, and ends without one.
func TestTheLocalClusterComesGrowsAndGoesAsTyped(t *testing.T) {
	module, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(t)
	for _, variable := range []string{"GOCACHE", "GOMODCACHE"} { // the reader has built Hekla before
		folder, err := exec.CommandContext(t.Context(), "go", "env", variable).Output()
		if err != nil {
			t.Fatal(err)
		}
		r.Environment = append(r.Environment, variable+"="+strings.TrimSpace(string(folder)))
	}
	r.reads(t, page{"docs/local-cluster.md", []typed{
		{in: []string{"make build", "rm bin; make --no-print-directory -C " + module + " build BIN=$PWD/bin"},
			says: []string{"hekla-controllers ...", "Ready after ", "Nodes       3 ", "hekla-scheduler (", "Web page    http://127.0.0.1:", "Stop it     bin/hekla down"}},
		{says: []string{"job.batch.volcano.sh/gang created", "Nodes       5 ", "runs already", "Nodes       5 "}},
	}})
}

// The log is that of an API server which has the policy of the page.
func TestTheAuditOfALogWorksAsTyped(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{WithoutKwok: true, WithoutControllers: true, AuditLog: log, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	if _, err := cluster.AddNodes(t.Context(), 1, localcluster.NodeTemplate{}); err != nil {
		t.Fatal(err)
	}
	r := newTypist(t)
	r.reads(t, page{"docs/audit.md", []typed{
		{in: []string{"/var/log/kubernetes/audit.log", log}, after: "cmp audit-policy.yaml " + filepath.Join(cluster.Dir(), "audit-policy.yaml") + " && echo the same policy",
			says: []string{" 0 violations", "the same policy"}},
	}})
}

// The images run nowhere: kwok plays that the pods of the Deployments run, once a kube-scheduler has bound them.
func TestTheInstallationWorksAsTyped(t *testing.T) {
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{Nodes: 2, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheduler := filepath.Join(t.TempDir(), "kube-scheduler")
	if err := apitest.BuildPackage(t.Context(), scheduler, "k8s.io/kubernetes/cmd/kube-scheduler"); err != nil {
		t.Fatal(err)
	}
	_, err = cluster.Run(t.Context(), localcluster.Program{Name: "kube-scheduler", Path: scheduler,
		Args: []string{"--kubeconfig=" + cluster.KubeconfigPath(), "--leader-elect=false", "--secure-port=0"}})
	if err != nil {
		t.Fatal(err)
	}
	r := Reader{Dir: Checkout(t, programs), Programs: kubernetes.Dir, Kubeconfig: cluster.KubeconfigPath()}
	image := "kubectl -n volcano-system get deployment volcano-scheduler -o jsonpath='{.spec.template.spec.containers[0].image}'"
	r.reads(t, page{"README.md", []typed{
		{after: image, says: []string{"deployment.apps/volcano-scheduler created", "registry.example.com/hekla:v1"}},
	}})
	// An API server that has only just begun to serve a definition may put its deletion off for minutes.
	const read = "for name in $(kubectl get crds -o jsonpath='{.items[*].metadata.name}'); do kubectl get $name -A; done"
	may := "kubectl auth can-i %s --as=%s"
	r.reads(t, page{"docs/install.md", []typed{
		{says: []string{"No resources found"}},
		{says: []string{"deployment.apps/volcano-scheduler unchanged", "successfully rolled out", "job.batch.volcano.sh/gang created", "NAME"}},
		{after: fmt.Sprintf(may, "list queues.scheduling.volcano.sh", "someone --as-group=system:authenticated"), says: []string{"created", "created", "yes"}},
		{before: "kubectl create clusterrole volcano-metrics-reader --verb=get --non-resource-url=/metrics # as the chart does with metrics.authenticated",
			after: fmt.Sprintf(may, "get /metrics", "system:serviceaccount:monitoring:prometheus"), says: []string{"created", "yes"}},
		{after: fmt.Sprintf(may, "update leases/second -n volcano-system", "system:serviceaccount:volcano-system:volcano-scheduler"), says: []string{"created", "created", "yes"}},
		{before: "kubectl create -f example/quotas/01-one-queue.yaml\n" + read, after: "kubectl get crds -o name | wc -l; kubectl get namespace volcano-system --ignore-not-found -o name | wc -l",
			says: []string{`"sample-job" deleted`, `"cluster-queue" deleted`, `"volcano-system" deleted`, "0\n0\n"}},
	}})
}

// types types a block, between what goes before it and what comes after, into one shell.
func (r Reader) types(t *testing.T, b blocks.Block, as typed) {
	t.Helper()
	at := fmt.Sprintf("%s:%d", b.Page, b.Line)
	if len(as.says) == 0 {
		t.Fatalf("%s: nothing is known of what it says", at)
	}
	commands := b.Commands
	for i := 0; i < len(as.in); i += 2 {
		if !strings.Contains(commands, as.in[i]) {
			t.Fatalf("%s: there is no %q in\n%s", at, as.in[i], commands)
		}
		commands = strings.Replace(commands, as.in[i], as.in[i+1], 1)
	}
	commands = strings.TrimSpace(commands + as.after)
	script := commands
	if as.before != "" {
		script = "{ " + as.before + "\n} > before.log 2>&1 || { cat before.log; exit 1; }\n" + commands
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	first, err := r.Type(ctx, script)
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", at, err, script, first)
	}
	if unsaid(first, as.says) == "" {
		return
	}
	last := commands[strings.LastIndex(commands, "\n")+1:]
	apitest.Eventually(t, func(ctx context.Context) error {
		again, err := r.Type(ctx, last)
		if unsaid := unsaid(first+again, as.says); err != nil || unsaid != "" {
			return fmt.Errorf("%s: no %q, in its place, in\n%s\nnor, typed again (%v),\n%s", at, unsaid, first, err, again)
		}
		return nil
	})
}

// unsaid is the first of several words that a text does not have after those before it, "" if it has all.
func unsaid(text string, words []string) string {
	for _, word := range words {
		_, after, isThere := strings.Cut(text, word)
		if !isThere {
			return word
		}
		text = after
	}
	return ""
}
