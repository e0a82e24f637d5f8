package localcluster

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"hekla.sh/hekla/internal/audit"
)

// loopback is the only address anything of a local cluster listens on.
const loopback = "127.0.0.1"

// Chosen ports are below the range that the kernel gives to outgoing connections (from 32768 on Linux, 49152
// elsewhere): between choosing a port and listening on it, nothing but another chooser could take it.
const firstPort, lastPort, portAttempts = 20000, 32000, 100

// portPatience bounds the wait for the port of a cluster that is continued, and portPause is how often it is tried.
const portPatience, portPause = killPatience, 50 * time.Millisecond

// controllers are those of kube-controller-manager that a cluster without clouds and disks has work for.
var controllers = [...]string{
	"clusterrole-aggregation-controller", "cronjob-controller", "daemonset-controller", "deployment-controller",
	"disruption-controller", "endpoints-controller", "endpointslice-controller", "ephemeral-volume-controller",
	"garbage-collector-controller", "job-controller", "namespace-controller", "node-lifecycle-controller",
	"persistentvolume-binder-controller", "persistentvolumeclaim-protection-controller",
	"pod-garbage-collector-controller", "replicaset-controller", "replicationcontroller-controller",
	"resourceclaim-controller", "resourcequota-controller", "root-ca-certificate-publisher-controller",
	"serviceaccount-controller", "statefulset-controller", "taint-eviction-controller",
	"ttl-after-finished-controller",
}

//go:embed stages/*.yaml
var stages embed.FS

// kwokOptions are written here and not as flags: kwok has no flag for some of them, and fills in no defaults when it is
// given a configuration. The debugging handlers run commands for any client.
const kwokOptions = `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  cidr: 10.64.0.0/10
  %s
  nodeLeaseDurationSeconds: %d
  nodeLeaseParallelism: 4
  nodePlayStageParallelism: 4
  podPlayStageParallelism: 4
  podsOnNodeSyncParallelism: 4
  enableDebuggingHandlers: false
  serverAddress: %s
`

// controlPlane starts the programs of a cluster.
type controlPlane struct{ *Cluster }

// start starts etcd, kube-apiserver and kube-controller-manager and waits for the API server.
func (c controlPlane) start(ctx context.Context, options Options) error {
	if err := c.choosePorts(options.Port); err != nil {
		return err
	}
	if err := ensurePKI(c.pki()); err != nil {
		return err
	}
	c.state.Kubeconfig = filepath.Join(c.dir, "kubeconfig")
	server := fmt.Sprintf("https://%s:%d", loopback, c.state.Port)
	for identity, path := range map[string]string{
		"admin":                   c.state.Kubeconfig,
		"kube-controller-manager": c.componentKubeconfig("kube-controller-manager"),
		"kwok":                    c.componentKubeconfig("kwok"),
	} {
		if err := writeKubeconfig(path, contextName(c.state.Name), server, c.pki(), identity); err != nil {
			return err
		}
	}
	if err := c.loadConfig(); err != nil {
		return err
	}
	// etcd is not waited for: the API server does that.
	etcd, err := c.launch(c.etcd(options))
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return err
	}
	program, err := c.apiServer(options)
	if err != nil {
		return err
	}
	if _, err := c.run(ctx, program, answersOK(client, server+"/readyz"), etcd); err != nil {
		return err
	}
	if options.WithoutControllers {
		return nil
	}
	_, err = c.launch(c.controllerManager(options))
	return err
}

func (c controlPlane) pki() string { return filepath.Join(c.dir, "pki") }

func (c controlPlane) componentKubeconfig(name string) string {
	return filepath.Join(c.dir, name+".kubeconfig")
}

func (c controlPlane) etcd(options Options) Program {
	client := fmt.Sprintf("https://%s:%d", loopback, c.state.EtcdPort)
	arguments := []string{
		"--name=local",
		"--data-dir=" + filepath.Join(c.dir, "etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		// There is no other member to talk to; a port the kernel chooses keeps two clusters apart.
		"--listen-peer-urls=http://" + loopback + ":0",
		"--cert-file=" + filepath.Join(c.pki(), "server.crt"),
		"--key-file=" + filepath.Join(c.pki(), "server.key"),
		"--trusted-ca-file=" + filepath.Join(c.pki(), "ca.crt"),
		"--client-cert-auth=true",
		// The benchmark writes more than the default of 2 GiB would hold between compactions.
		"--quota-backend-bytes=" + strconv.Itoa(8<<30),
		"--log-level=warn",
	}
	if !options.Fsync {
		arguments = append(arguments, "--unsafe-no-fsync=true")
	}
	return Program{Name: "etcd", Path: c.state.Binaries.Path("etcd"), Args: arguments}
}

func (c controlPlane) apiServer(options Options) (Program, error) {
	// Without TaintNodesByCondition a node that is made Ready is usable at once, rather than after the node-lifecycle
	// controller has come round to it.
	disabled := "TaintNodesByCondition"
	if options.WithoutControllers {
		disabled += ",ServiceAccount"
	}
	serviceAccountKey := filepath.Join(c.pki(), "service-account.key")
	arguments := []string{
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		"--endpoint-reconciler-type=none", // It would publish the loopback address, which validation refuses.
		"--secure-port=" + strconv.Itoa(c.state.Port),
		"--tls-cert-file=" + filepath.Join(c.pki(), "server.crt"),
		"--tls-private-key-file=" + filepath.Join(c.pki(), "server.key"),
		"--client-ca-file=" + filepath.Join(c.pki(), "ca.crt"),
		fmt.Sprintf("--etcd-servers=https://%s:%d", loopback, c.state.EtcdPort),
		"--etcd-cafile=" + filepath.Join(c.pki(), "ca.crt"),
		"--etcd-certfile=" + filepath.Join(c.pki(), "etcd-client.crt"),
		"--etcd-keyfile=" + filepath.Join(c.pki(), "etcd-client.key"),
		"--authorization-mode=RBAC",
		"--disable-admission-plugins=" + disabled,
		"--service-cluster-ip-range=10.48.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + serviceAccountKey,
		"--service-account-signing-key-file=" + serviceAccountKey,
		"--allow-privileged=true",
		"--v=" + strconv.Itoa(options.Verbosity),
	}
	// A folder of an earlier version has no such certificate; its cluster runs on without extensions of the API.
	if _, err := os.Stat(filepath.Join(c.pki(), frontProxy+".crt")); err == nil {
		arguments = append(arguments,
			"--proxy-client-cert-file="+filepath.Join(c.pki(), frontProxy+".crt"),
			"--proxy-client-key-file="+filepath.Join(c.pki(), frontProxy+".key"),
			"--requestheader-client-ca-file="+filepath.Join(c.pki(), "ca.crt"),
			"--requestheader-allowed-names=hekla-front-proxy",
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-uid-headers=X-Remote-Uid",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-")
	}
	arguments = append(arguments, gates(options)...)
	if len(options.FeatureGates) > 0 {
		// Some gates need versions of the API that are not served by default, and the API server does not become ready
		// without them.
		arguments = append(arguments, "--runtime-config=api/beta=true,api/alpha=true")
	}
	for _, version := range options.Serve {
		arguments = append(arguments, "--runtime-config="+version+"=true")
	}
	if options.AuditLog != "" {
		policy := filepath.Join(c.dir, "audit-policy.yaml")
		if err := os.WriteFile(policy, []byte(audit.Policy), 0o600); err != nil {
			return Program{}, fmt.Errorf("write the audit policy: %w", err)
		}
		arguments = append(arguments, "--audit-policy-file="+policy, "--audit-log-path="+options.AuditLog,
			// In megabytes: a log of one file is read as it is, while the default begins another one after 100.
			"--audit-log-maxsize="+strconv.Itoa(1<<20))
	}
	return Program{Name: "kube-apiserver", Path: c.state.Binaries.Path("kube-apiserver"), Args: arguments}, nil
}

func (c controlPlane) controllerManager(options Options) Program {
	return Program{Name: "kube-controller-manager", Path: c.state.Binaries.Path("kube-controller-manager"), Args: append([]string{
		"--kubeconfig=" + c.componentKubeconfig("kube-controller-manager"),
		"--secure-port=0",
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + filepath.Join(c.pki(), "service-account.key"),
		"--root-ca-file=" + filepath.Join(c.pki(), "ca.crt"),
		"--controllers=" + strings.Join(controllers[:], ","),
		// kwok renews a node every few minutes (stages/node-heartbeat.yaml).
		"--node-monitor-grace-period=1h",
		"--node-startup-grace-period=1h",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--v=" + strconv.Itoa(options.Verbosity),
	}, gates(options)...)}
}

// gates are the flags for feature gates, which the programs of Kubernetes have in common.
func gates(options Options) []string {
	if len(options.FeatureGates) == 0 {
		return nil
	}
	return []string{"--feature-gates=" + strings.Join(options.FeatureGates, ",")}
}

// startKwok writes kwok's configuration and starts it.
//
// In a cluster of ours every node with kwok's annotation belongs to kwok, so that users can apply their own. The
// heartbeat in a node's status is enough. In a foreign cluster, which may have a kwok of its own, only the nodes made
// here do. There each node gets a Lease as from a kubelet, since the node-lifecycle controller gives up on a node after
// forty seconds.
func (c controlPlane) startKwok(ctx context.Context, verbosity int) error {
	// kwok counts levels the other way round, and at its default writes a line for every pod.
	level := "WARN"
	if verbosity > 0 {
		level = "INFO"
	}
	leaseSeconds, kubeconfig := 0, c.componentKubeconfig("kwok")
	selector := "manageNodesWithAnnotationSelector: " + nodeAnnotation + "=fake"
	if c.state.IsAttached {
		leaseSeconds, kubeconfig = 40, c.state.Kubeconfig
		selector = "manageNodesWithLabelSelector: " + clusterLabel + "=" + c.state.Name
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	address := net.JoinHostPort(loopback, strconv.Itoa(port))
	documents := [][]byte{fmt.Appendf(nil, kwokOptions, selector, leaseSeconds, address)}
	names, err := fs.Glob(stages, "stages/*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		stage, err := stages.ReadFile(name)
		if err != nil {
			return err
		}
		documents = append(documents, stage)
	}
	configuration := filepath.Join(c.dir, "kwok.yaml")
	if err := os.WriteFile(configuration, bytes.Join(documents, []byte("---\n")), 0o600); err != nil {
		return fmt.Errorf("write the configuration of kwok: %w", err)
	}
	_, err = c.Run(ctx, Program{Name: "kwok", Path: c.state.Binaries.Path("kwok"), Args: []string{
		"--kubeconfig=" + kubeconfig,
		"--config=" + configuration,
		"--v=" + level,
	}, ReadyURL: "http://" + address + "/healthz"})
	return err
}

// choosePorts keeps the ports of a cluster that is continued, since kubeconfigs name them.
func (c controlPlane) choosePorts(wanted int) error {
	switch {
	case wanted != 0:
		if err := TryPort(wanted); err != nil {
			return fmt.Errorf("port %d for the API server is not free: %w; choose another, or 0 for any that is free", wanted, err)
		}
		c.state.Port = wanted
	case c.state.Port != 0:
		// A process of many threads that was killed holds its port until the last of them is gone.
		err := TryPort(c.state.Port)
		for deadline := time.Now().Add(portPatience); err != nil && time.Now().Before(deadline); err = TryPort(c.state.Port) {
			time.Sleep(portPause)
		}
		if err != nil {
			return fmt.Errorf("port %d, on which the API server of this cluster listened before, is not free any more: %w", c.state.Port, err)
		}
	default:
		port, err := FreePort()
		if err != nil {
			return err
		}
		c.state.Port = port
	}
	port, err := FreePort()
	c.state.EtcdPort = port
	return err
}

// FreePort returns a TCP port on the loopback interface that is free.
func FreePort() (int, error) {
	for range portAttempts {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if TryPort(port) == nil {
			return port, nil
		}
	}
	return 0, errors.New("found no free port between " + strconv.Itoa(firstPort) + " and " + strconv.Itoa(lastPort))
}

// TryPort is an error if a port of the loopback interface is taken.
func TryPort(port int) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return listener.Close()
}
