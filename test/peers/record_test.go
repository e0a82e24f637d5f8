package peers

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/test/apitest"
)

// The modules whose programs are recorded.
const volcanoModule, kueueModule = "volcano.sh/volcano@v1.10.0", "sigs.k8s.io/kueue@v0.17.0"

// recorder is a cluster on which programs of another scheduler run while its audit log is written.
type recorder struct {
	t        *testing.T
	cluster  *localcluster.Cluster
	client   client.Client
	core     kubernetes.Interface
	programs string // the folder in which they are
	log      string
}

// newRecorder starts a cluster with the definitions of a module. Without the programs the test is skipped.
func newRecorder(t *testing.T, module string, definitions ...string) *recorder {
	t.Helper()
	programs := os.Getenv("HEKLA_PEERS_PROGRAMS")
	if programs == "" {
		t.Skip("records only if HEKLA_PEERS_PROGRAMS names the folder of the programs")
	}
	downloaded := struct{ Dir string }{}
	answer, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	if err := json.Unmarshal(answer, &downloaded); err != nil {
		t.Fatal(err)
	}
	r := &recorder{t: t, programs: programs, log: filepath.Join(t.TempDir(), "audit.log")}
	r.cluster = startCluster(t, 3, r.log)
	for _, folder := range definitions {
		objects, err := localcluster.ReadManifests(os.DirFS(filepath.Join(downloaded.Dir, folder)))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.cluster.Apply(t.Context(), objects); err != nil {
			t.Fatal(err)
		}
	}
	if r.client, err = apitest.Client(r.cluster.Config()); err != nil {
		t.Fatal(err)
	}
	r.core = kubernetes.NewForConfigOrDie(r.cluster.Config())
	if err := r.cluster.CreateNamespace(t.Context(), "peers"); err != nil {
		t.Fatal(err)
	}
	r.create("", `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: low}, value: 1}`)
	r.create("", `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 100}`)
	return r
}

// account makes a user of its own for a program, so that the log tells who did what.
func (r *recorder) account(name string) (kubeconfig string) {
	r.t.Helper()
	r.create("peers", fmt.Sprintf(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: %s}}`, name))
	r.create("", fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: peers-%[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: peers, name: %[1]s}]`, name))
	kubeconfig, _, err := r.cluster.ServiceAccountKubeconfig(r.t.Context(), "peers", name)
	if err != nil {
		r.t.Fatal(err)
	}
	return kubeconfig
}

func (r *recorder) run(name string, args ...string) {
	r.t.Helper()
	run(r.t, r.cluster, name, filepath.Join(r.programs, name), args...)
}

// file writes a file for a program.
func (r *recorder) file(name, content string) string {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

func (r *recorder) create(namespace, text string) {
	r.t.Helper()
	if err := r.client.Create(r.t.Context(), apitest.Object(r.t, namespace, text)); err != nil {
		r.t.Fatal(err)
	}
}

// remove deletes a job of a kind, with what it owns.
func (r *recorder) remove(version, kind, name string) {
	r.t.Helper()
	o := apitest.Object(r.t, "default", fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s}}", version, kind, name))
	if err := r.client.Delete(r.t.Context(), o, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		r.t.Fatal(err)
	}
}

// state awaits what a path of fields in the status of a job says.
func (r *recorder) state(version, kind, name, want string, path ...string) {
	r.t.Helper()
	apitest.Eventually(r.t, func(ctx context.Context) error {
		o := apitest.Object(r.t, "default", fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s}}", version, kind, name))
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		var is any = o.Object["status"]
		for _, field := range path {
			fields, _ := is.(map[string]any)
			is = fields[field]
		}
		if fmt.Sprint(is) != want {
			return fmt.Errorf("%s of %s is %v, want %s", strings.Join(path, "."), name, is, want)
		}
		return nil
	})
}

func (r *recorder) running(name string, want int) {
	r.t.Helper()
	running(r.t, r.core, name, want)
}

// pass lets the schedulers do what they do unasked.
func (r *recorder) pass(d time.Duration) {
	select {
	case <-r.t.Context().Done():
	case <-time.After(d):
	}
}

// keep writes the log to testdata, cut to what the auditor reads of it.
func (r *recorder) keep(name string) {
	r.t.Helper()
	content, err := os.ReadFile(r.log)
	if err != nil {
		r.t.Fatal(err)
	}
	var cut bytes.Buffer
	packed, err := gzip.NewWriterLevel(&cut, gzip.BestCompression)
	if err != nil {
		r.t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		line := map[string]any{}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			r.t.Fatal(err)
		}
		verb, _ := line["verb"].(string)
		_, isShown := line["responseObject"]
		if !isShown || slices.Contains([]string{"get", "list", "watch"}, verb) {
			continue
		}
		for field := range line {
			if !slices.Contains([]string{"stage", "verb", "requestURI", "user", "objectRef", "responseStatus", "requestObject", "responseObject", "requestReceivedTimestamp", "stageTimestamp"}, field) {
				delete(line, field)
			}
		}
		if user, isUser := line["user"].(map[string]any); isUser {
			line["user"] = map[string]any{"username": user["username"]}
		}
		kept, err := json.Marshal(line)
		if err != nil {
			r.t.Fatal(err)
		}
		_, _ = packed.Write(append(kept, '\n')) // to memory
	}
	if err := lines.Err(); err != nil {
		r.t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		r.t.Fatal(err)
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil && !os.IsExist(err) {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", name), cut.Bytes(), fs.FileMode(0o644)); err != nil {
		r.t.Fatal(err)
	}
}

// volcanoJob is one of pods with a CPU each, of which least are a gang. Pods that have a time to run end by themselves.
func volcanoJob(name, queue, class string, pods, least int, runFor string) string {
	return fmt.Sprintf(`
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: %[1]s}
spec:
  schedulerName: volcano
  queue: %[2]s
  priorityClassName: %[3]s
  minAvailable: %[5]d
  maxRetry: 3
  tasks:
  - name: main
    replicas: %[4]d
    minAvailable: %[5]d
    template:
      metadata: {labels: {app: %[1]s}, annotations: {%[6]s}}
      spec:
        restartPolicy: Never
        priorityClassName: %[3]s
        terminationGracePeriodSeconds: 1
        containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]
`, name, queue, class, pods, least, annotation(runFor))
}

func annotation(runFor string) string {
	if runFor == "" {
		return ""
	}
	return "hekla.sh/run-for: " + runFor
}

// volcanoConfiguration lets jobs wait for room that is used: what does not fit when it comes is not even tried
// otherwise, and nothing is preempted for it.
const volcanoConfiguration = `
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
    enableJobEnqueued: false
  - name: nodeorder
  - name: binpack
`

// TestRecordVolcano has gangs contend, preempt and reclaim.
func TestRecordVolcano(t *testing.T) {
	r := newRecorder(t, volcanoModule, "config/crd/volcano/bases", "config/crd/jobflow/bases")
	const version, kind = "batch.volcano.sh/v1alpha1", "Job"
	r.run("vc-controller-manager", "--kubeconfig="+r.account("volcano-controllers"), "--leader-elect=false", "--healthz-address=127.0.0.1:"+freePort(t), "--logtostderr")
	r.run("vc-scheduler", "--kubeconfig="+r.account("volcano-scheduler"), "--leader-elect=false", "--listen-address=127.0.0.1:"+freePort(t),
		"--healthz-address=127.0.0.1:"+freePort(t), "--cache-dumper=false", "--scheduler-conf="+r.file("volcano.conf", volcanoConfiguration), "--logtostderr")
	for _, queue := range []string{"blue", "red"} {
		r.create("", fmt.Sprintf(`{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: %s}, spec: {weight: 1, reclaimable: true}}`, queue))
	}
	r.create("", `{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: fixed}, spec: {weight: 1, reclaimable: false, capability: {cpu: 2}}}`)
	r.pass(12 * time.Second) // nodes that have just come excuse an eviction in vain

	// Two gangs of which one has room.
	for _, name := range []string{"left", "right"} {
		r.create("default", volcanoJob(name, "default", "low", 8, 8, "10s"))
	}
	for _, name := range []string{"left", "right"} {
		r.state(version, kind, name, "Completed", "state", "phase")
		r.remove(version, kind, name)
	}

	// A gang of high priority among pods of low priority that a budget protects.
	r.create("default", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: low}, spec: {minAvailable: 12, selector: {matchLabels: {app: low}}}}`)
	r.create("default", volcanoJob("low", "default", "low", 12, 1, ""))
	r.running("low", 12)
	r.pass(12 * time.Second)
	r.create("default", volcanoJob("high", "default", "high", 4, 4, ""))
	r.running("high", 4)
	r.running("low", 8)
	r.pass(5 * time.Second)
	r.remove(version, kind, "high")
	r.running("low", 12)
	r.remove(version, kind, "low")
	r.running("low", 0)

	// A queue takes back what another one holds beyond its share.
	r.create("default", volcanoJob("fixed", "fixed", "low", 2, 2, ""))
	r.running("fixed", 2)
	r.create("default", volcanoJob("blue", "blue", "low", 10, 1, ""))
	r.running("blue", 10)
	r.pass(12 * time.Second)
	r.create("default", volcanoJob("red", "red", "low", 4, 4, ""))
	r.running("red", 4)
	r.pass(5 * time.Second)
	for _, name := range []string{"fixed", "blue", "red"} {
		r.remove(version, kind, name)
		r.running(name, 0)
	}
	r.pass(3 * time.Second)
	r.keep("volcano-v1.10.0.log.gz")
}

func kueueJob(name, queue, class string, pods int, runFor string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %[1]s, labels: {kueue.x-k8s.io/queue-name: %[2]s, kueue.x-k8s.io/priority-class: %[3]s}}
spec:
  suspend: true
  parallelism: %[4]d
  completions: %[4]d
  template:
    metadata: {labels: {app: %[1]s}, annotations: {%[5]s}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]
`, name, queue, class, pods, annotation(runFor))
}

// kueueCertificates is where Kueue reads the certificate of its metrics from; no flag names another folder.
const kueueCertificates = "/etc/kueue/metrics/certs"

// TestRecordKueue has Workloads of two queues borrow from one another and take it back.
func TestRecordKueue(t *testing.T) {
	r := newRecorder(t, kueueModule, "config/components/crd/bases")
	if _, err := os.Stat(filepath.Join(kueueCertificates, "tls.crt")); err != nil {
		t.Fatalf("Kueue needs tls.crt and tls.key, of any name and issuer, in %s: %v", kueueCertificates, err)
	}
	const version, kind = "batch/v1", "Job"
	program := apitest.Path(t.TempDir(), "kube-scheduler")
	if err := apitest.BuildPackage(t.Context(), program, "k8s.io/kubernetes/cmd/kube-scheduler"); err != nil {
		t.Fatal(err)
	}
	runKubeScheduler(t, r.cluster, r.account("kube-scheduler"), program)
	r.create("", `{apiVersion: v1, kind: Namespace, metadata: {name: kueue-system}}`)
	r.run("kueue", "--kubeconfig="+r.account("kueue"), "--feature-gates=VisibilityOnDemand=false", "--config="+r.file("kueue.yaml", fmt.Sprintf(`
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health: {healthProbeBindAddress: "127.0.0.1:%s"}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: %s, certDir: %s}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
integrations: {frameworks: [batch/job]}
`, freePort(t), freePort(t), kueueCertificates)))
	r.create("", `{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: any}, spec: {}}`)
	for _, class := range []string{"low: 1", "high: 100"} {
		name, value, _ := strings.Cut(class, ": ")
		r.create("", fmt.Sprintf(`{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: %s}, value: %s}`, name, value))
	}
	for _, queue := range []string{"blue", "red"} {
		r.create("", fmt.Sprintf(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %s}
spec:
  cohortName: all
  namespaceSelector: {}
  queueingStrategy: BestEffortFIFO
  preemption: {reclaimWithinCohort: Any, withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: any, resources: [{name: cpu, nominalQuota: 6, borrowingLimit: 4}]}]`, queue))
		r.create("default", fmt.Sprintf(`{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: %[1]s}, spec: {clusterQueue: %[1]s}}`, queue))
	}
	r.pass(12 * time.Second)

	// A queue borrows, and what it lent is taken back.
	r.create("default", kueueJob("first", "blue", "low", 6, ""))
	r.running("first", 6)
	r.pass(3 * time.Second) // what was admitted later is preempted first, to the second
	r.create("default", kueueJob("second", "blue", "low", 4, ""))
	r.running("second", 4)
	r.pass(3 * time.Second)
	r.create("default", kueueJob("owner", "red", "low", 6, ""))
	r.running("owner", 6)
	r.running("second", 0)

	// One of high priority preempts in its own queue.
	r.create("default", kueueJob("urgent", "blue", "high", 6, ""))
	r.running("urgent", 6)
	r.running("first", 0)
	r.pass(5 * time.Second)
	r.remove(version, kind, "urgent")
	r.pass(5 * time.Second)
	r.remove(version, kind, "owner")
	r.running("first", 6)
	r.running("second", 4)
	r.create("default", kueueJob("short", "red", "low", 2, "5s"))
	r.state(version, kind, "short", "2", "succeeded")
	for _, name := range []string{"first", "second"} {
		r.remove(version, kind, name)
		r.running(name, 0)
	}
	r.pass(3 * time.Second)
	r.keep("kueue-v0.17.0.log.gz")
}
