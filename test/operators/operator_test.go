package operators

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hekla.sh/hekla/internal/keypair"
	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/test/apitest"
	"hekla.sh/hekla/test/installed"
)

// operator is a program of another system, outside the cluster.
type operator struct {
	// module has the files, and program is the import path of the program.
	module, program string
	// path is where the program has been built.
	path string
	// definitions are the files of its kinds in the module.
	definitions []string
	// webhooks is the file of its webhooks in the module; "" if it runs without. Those of pods are for pods with a
	// label.
	webhooks, podLabel string
	// configuration is its configuration file, if it reads one. PORT is the port of its webhooks, CERTIFICATES the
	// folder of their certificates, HEALTH the address of its probes.
	configuration string
	// arguments are those of its command line, in which HEALTH, CONFIG and KUBECONFIG stand for what the test gives it.
	arguments []string
}

var operators = map[string]*operator{
	"jobset": {
		module: "sigs.k8s.io/jobset", program: "sigs.k8s.io/jobset",
		definitions: []string{"config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"}, webhooks: "config/components/webhook/manifests.yaml",
		podLabel: "jobset.sigs.k8s.io/jobset-name",
		configuration: `
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
webhook: {port: PORT, host: 127.0.0.1}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "HEALTH"}
`,
		arguments: []string{"--config=CONFIG", "--kubeconfig=KUBECONFIG"},
	},
	"leaderworkerset": {
		module: "sigs.k8s.io/lws", program: "sigs.k8s.io/lws/cmd",
		definitions: []string{"config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml"}, webhooks: "config/webhook/manifests.yaml",
		podLabel: "leaderworkerset.sigs.k8s.io/name",
		configuration: `
apiVersion: config.lws.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
webhook: {port: PORT, host: 127.0.0.1, certDir: CERTIFICATES}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "HEALTH"}
gangSchedulingManagement: {schedulerProvider: volcano}
`,
		arguments: []string{"--config=CONFIG", "--kubeconfig=KUBECONFIG"},
	},
	"trainer": {
		module: "github.com/kubeflow/trainer/v2", program: "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
		definitions: []string{"manifests/base/crds/trainer.kubeflow.org_clustertrainingruntimes.yaml", "manifests/base/crds/trainer.kubeflow.org_trainingruntimes.yaml",
			"manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml"},
		configuration: `
apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
certManagement: {enable: false}
webhook: {port: PORT, host: 127.0.0.1}
metrics: {bindAddress: "127.0.0.1:0", secureServing: false}
health: {healthProbeBindAddress: "HEALTH"}
`,
		arguments: []string{"--config=CONFIG", "--kubeconfig=KUBECONFIG"},
	},
	"mpi": {
		module: "github.com/kubeflow/mpi-operator", program: "hekla.sh/hekla/test/operators/programs/mpi", definitions: []string{"manifests/base/kubeflow.org_mpijobs.yaml"},
		arguments: []string{"--kubeconfig=KUBECONFIG"},
	},
	"training": {
		module: "github.com/kubeflow/training-operator", program: "hekla.sh/hekla/test/operators/programs/training",
		definitions: []string{"manifests/base/crds/kubeflow.org_pytorchjobs.yaml"},
		arguments:   []string{"--kubeconfig=KUBECONFIG", "--health-probe-bind-address=HEALTH"},
	},
	"ray": {
		module: "github.com/ray-project/kuberay/ray-operator", program: "github.com/ray-project/kuberay/ray-operator",
		definitions: []string{"config/crd/bases/ray.io_rayclusters.yaml", "config/crd/bases/ray.io_rayjobs.yaml", "config/crd/bases/ray.io_rayservices.yaml"},
		arguments: []string{"--kubeconfig=KUBECONFIG", "--batch-scheduler=volcano", "--enable-leader-election=false", "--metrics-addr=0",
			"--health-probe-bind-address=HEALTH"},
	},
}

// started are the operators that run, with the program that starts them again.
var started = map[string]localcluster.Program{}

// haveOperators runs operators, which then run for all tests.
func haveOperators(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if name == "spark" {
			haveSpark(t)
			continue
		}
		if _, runs := started[name]; !runs {
			started[name] = operators[name].start(t, name)
		}
	}
}

// restart stops an operator in order, and starts it again.
func restart(t *testing.T, name string) {
	t.Helper()
	if name == "spark" {
		spark.restart()
		return
	}
	if err := processOf(t, name).Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Run(t.Context(), started[name]); err != nil {
		t.Fatal(err)
	}
}

func (o *operator) start(t *testing.T, name string) localcluster.Program {
	t.Helper()
	folder := moduleFolder(t, o.module)
	for _, file := range o.definitions {
		applyFile(t, filepath.Join(folder, file), nil)
	}
	health, err := installed.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	port, err := localcluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	temporary, err := os.MkdirTemp(programs, name+"-") // where controller-runtime looks for certificates
	if err != nil {
		t.Fatal(err)
	}
	certificates := filepath.Join(temporary, "k8s-webhook-server", "serving-certs")
	authority := writeCertificate(t, certificates)
	replace := strings.NewReplacer("CERTIFICATES", certificates, "KUBECONFIG", cluster.KubeconfigPath(), "CONFIG", filepath.Join(temporary, "config.yaml"), "HEALTH", health, "PORT", fmt.Sprint(port))
	if err := os.WriteFile(filepath.Join(temporary, "config.yaml"), []byte(replace.Replace(o.configuration)), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"TMPDIR=" + temporary, o.path}
	for _, argument := range o.arguments {
		arguments = append(arguments, replace.Replace(argument))
	}
	program := localcluster.Program{Name: name, Path: "/usr/bin/env", Args: arguments}
	if name != "mpi" { // it does not say when it is ready
		program.ReadyURL = "http://" + health + "/readyz"
	}
	if _, err := cluster.Run(context.WithoutCancel(t.Context()), program); err != nil {
		t.Fatal(err)
	}
	if o.webhooks != "" {
		o.register(t, name, filepath.Join(folder, o.webhooks), port, authority)
	}
	return program
}

// writeCertificate writes the certificate of a server on the loopback interface to where controller-runtime reads it,
// and returns what to trust.
func writeCertificate(t *testing.T, folder string) []byte {
	t.Helper()
	pair, err := keypair.Serving(time.Now(), time.Hour, "operators", []string{"127.0.0.1"}, keypair.Pair{})
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, err := pair.PEM()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(folder, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate
}

// register makes the API server call the operator's webhooks on the loopback interface, and waits until they answer.
func (o *operator) register(t *testing.T, name, file string, port int, authority []byte) {
	t.Helper()
	applyFile(t, file, func(object *unstructured.Unstructured) {
		hooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
		if err != nil {
			t.Fatal(err)
		}
		for _, hook := range hooks {
			h, _ := hook.(map[string]any)
			path, _, _ := unstructured.NestedString(h, "clientConfig", "service", "path")
			h["clientConfig"] = map[string]any{"url": fmt.Sprintf("https://127.0.0.1:%d%s", port, path), "caBundle": base64.StdEncoding.EncodeToString(authority)}
			if strings.HasSuffix(path, "-pod") {
				h["objectSelector"] = map[string]any{"matchExpressions": []any{map[string]any{"key": o.podLabel, "operator": "Exists"}}}
			}
		}
		object.Object["webhooks"] = hooks
		object.SetName(name)
	})
	apitest.Eventually(t, func(context.Context) error {
		connection, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)), time.Second)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// applyFile applies the objects of a file after an edit, and waits until the kinds that they define are served.
func applyFile(t *testing.T, file string, edit func(*unstructured.Unstructured)) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, document := range strings.Split(string(text), "\n---\n") {
		object := apitest.Object(t, "", document)
		if edit != nil {
			edit(object)
		}
		objects = append(objects, object)
	}
	if err := cluster.Apply(context.WithoutCancel(t.Context()), objects); err != nil {
		t.Fatal(err)
	}
}
