package installer

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla"
	"hekla.sh/hekla/internal/localcluster"
)

// contents returns the objects by what they are called.
func contents(objects []*unstructured.Unstructured) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, object := range objects {
		all[object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName()] = object.Object
	}
	return all
}

func TestTheOneFileIsTheChartAndItsNamespace(t *testing.T) {
	file, err := localcluster.ReadManifests(hekla.Installer)
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := os.ReadFile(root + "/installer/namespace.yaml")
	if err != nil {
		t.Fatal(err)
	}
	made := append(parse(t, string(namespace)), render(t, "")...)
	if difference := cmp.Diff(contents(made), contents(file)); difference != "" {
		t.Errorf("installer/hekla.yaml is stale, make generate: the chart (-), the file (+):\n%s", difference)
	}
}

func TestHelmFindsNothingWrongWithTheChart(t *testing.T) {
	if output := helm(t, "lint", "--strict", "--namespace="+system, chart); !strings.Contains(output, "0 chart(s) failed") {
		t.Error(output)
	}
}

// Were one not marked, removing the chart would remove every object of that kind in the cluster.
func TestHelmKeepsTheDefinitions(t *testing.T) {
	files, err := os.ReadDir(root + "/installer/crds")
	if err != nil {
		t.Fatal(err)
	}
	definitions := 0
	for _, object := range render(t, "") {
		policy := object.GetAnnotations()["helm.sh/resource-policy"]
		isDefinition := object.GetKind() == "CustomResourceDefinition"
		if isDefinition {
			definitions++
		}
		if isDefinition != (policy == "keep") {
			t.Errorf("%s %s has the policy %q", object.GetKind(), object.GetName(), policy)
		}
	}
	if definitions != len(files) {
		t.Errorf("the chart has %d definitions, installer/crds %d", definitions, len(files))
	}
}

func TestTheDefinitionsOfKueueCanBeLeftToKueue(t *testing.T) {
	count := 0
	for _, object := range render(t, "crds: {kueue: false}") {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if count++; strings.HasSuffix(object.GetName(), ".kueue.x-k8s.io") {
			t.Errorf("%s is installed", object.GetName())
		}
	}
	if count != 8 {
		t.Errorf("%d definitions of our own are installed, want 8", count)
	}
}

// pod returns the pod that a program's Deployment asks for, and its first container.
func pod(t *testing.T, in *manifests, name string) (*appsv1.Deployment, *corev1.Container) {
	t.Helper()
	i := slices.IndexFunc(in.deployments, func(d appsv1.Deployment) bool { return d.Name == name })
	if i < 0 {
		t.Fatalf("there is no Deployment %s", name)
	}
	return &in.deployments[i], &in.deployments[i].Spec.Template.Spec.Containers[0]
}

func TestValuesReachTheObjects(t *testing.T) {
	programs := []string{"scheduler", "controllers", "admission"}
	for name, test := range map[string]struct {
		values string
		check  func(t *testing.T, in *manifests)
	}{
		"the image": {`
image: {repository: "registry.example.com:5000/a/hekla", tag: v7, pullPolicy: Always, pullSecrets: [key]}`, func(t *testing.T, in *manifests) {
			for _, program := range programs {
				d, c := pod(t, in, "volcano-"+program)
				if c.Image != "registry.example.com:5000/a/hekla:v7" || c.ImagePullPolicy != corev1.PullAlways {
					t.Errorf("%s runs %s, pulled %s", program, c.Image, c.ImagePullPolicy)
				}
				if secrets := d.Spec.Template.Spec.ImagePullSecrets; len(secrets) != 1 || secrets[0].Name != "key" {
					t.Errorf("%s pulls with %v", program, secrets)
				}
			}
		}},
		"replicas": {`
scheduler: {replicas: 1}
controllers: {replicas: 5}`, func(t *testing.T, in *manifests) {
			s, _ := pod(t, in, "volcano-scheduler")
			c, _ := pod(t, in, "volcano-controllers")
			if *s.Spec.Replicas != 1 || *c.Spec.Replicas != 5 {
				t.Errorf("%d schedulers and %d controllers, want 1 and 5", *s.Spec.Replicas, *c.Spec.Replicas)
			}
		}},
		"flags come after those of the chart": {`
scheduler: {extraArgs: ["--schedule-period=5s", "--scheduler-name=a b"]}
controllers: {extraArgs: ["--v=3"]}`, func(t *testing.T, in *manifests) {
			_, s := pod(t, in, "volcano-scheduler")
			_, c := pod(t, in, "volcano-controllers")
			if last := s.Args[len(s.Args)-2:]; !slices.Equal(last, []string{"--schedule-period=5s", "--scheduler-name=a b"}) {
				t.Errorf("the scheduler's last flags are %q", last)
			}
			if last := c.Args[len(c.Args)-1]; last != "--v=3" || !slices.Contains(c.Args, "--leader-elect=true") {
				t.Errorf("the controllers' flags are %q", c.Args)
			}
		}},
		"the configuration": {`
scheduler:
  configuration: |
    actions: "allocate" # nothing else
    tiers: []`, func(t *testing.T, in *manifests) {
			if got := in.configMap(t, "volcano-scheduler-configmap").Data["volcano-scheduler.conf"]; !strings.HasPrefix(got, "actions: \"allocate\" # nothing else\n") {
				t.Errorf("the configuration is %q", got)
			}
		}},
		"the resource groups": {`
admission:
  configuration: |
    resourceGroups: [] # none: "yet"
`, func(t *testing.T, in *manifests) {
			if got := in.configMap(t, "volcano-admission-configmap").Data["volcano-admission.conf"]; got != "resourceGroups: [] # none: \"yet\"\n" {
				t.Errorf("the configuration is %q", got)
			}
		}},
		"no webhooks": {`admission: {enabled: false}`, func(t *testing.T, in *manifests) {
			if len(in.deployments) != 2 || len(in.secrets)+len(in.mutating)+len(in.validating) > 0 || len(in.accounts) != 2 || len(in.policies) == 0 {
				t.Errorf("%d Deployments, %d ServiceAccounts, %d Secrets, %d policies", len(in.deployments), len(in.accounts), len(in.secrets), len(in.policies))
			}
		}},
		"where the pods run": {`
scheduler: &where
  priorityClassName: important
  nodeSelector: {kubernetes.io/os: null, pool: system}
  tolerations: [{key: system, operator: Exists}]
  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone}]}}
  podAnnotations: {example.com/team: batch}
  resources: {requests: {cpu: 2}, limits: {memory: 4Gi}}
controllers: *where
admission: *where`, func(t *testing.T, in *manifests) {
			for _, program := range programs {
				d, c := pod(t, in, "volcano-"+program)
				spec := d.Spec.Template.Spec
				if spec.PriorityClassName != "important" || len(spec.NodeSelector) != 1 || spec.NodeSelector["pool"] != "system" ||
					len(spec.Tolerations) != 1 || spec.Tolerations[0].Key != "system" ||
					spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey != "zone" {
					t.Errorf("%s: %+v", program, spec)
				}
				if d.Spec.Template.Annotations["example.com/team"] != "batch" {
					t.Errorf("%s is annotated with %v", program, d.Spec.Template.Annotations)
				}
				if r := c.Resources; r.Requests.Cpu().Value() != 2 || r.Requests.Memory().IsZero() || r.Limits.Memory().String() != "4Gi" {
					t.Errorf("%s asks for %+v", program, r)
				}
			}
		}},
		"what is empty is left out": {`
scheduler: &empty {priorityClassName: "", nodeSelector: null, resources: null}
controllers: *empty
admission: *empty`, func(t *testing.T, in *manifests) {
			for _, program := range programs {
				d, c := pod(t, in, "volcano-"+program)
				if spec := d.Spec.Template.Spec; spec.PriorityClassName != "" || spec.NodeSelector != nil || len(c.Resources.Requests) > 0 {
					t.Errorf("%s: %+v", program, spec)
				}
			}
		}},
		"security contexts go over the defaults": {`
scheduler: {podSecurityContext: {runAsUser: 7}, securityContext: {readOnlyRootFilesystem: false}}`, func(t *testing.T, in *manifests) {
			d, c := pod(t, in, "volcano-scheduler")
			if security := d.Spec.Template.Spec.SecurityContext; *security.RunAsUser != 7 || !*security.RunAsNonRoot {
				t.Errorf("of the pod: %+v", security)
			}
			if security := c.SecurityContext; *security.ReadOnlyRootFilesystem || *security.AllowPrivilegeEscalation {
				t.Errorf("of the container: %+v", security)
			}
		}},
		"network policies": {`
networkPolicy: {enabled: true, metricsFrom: [{namespaceSelector: {matchLabels: {name: monitoring}}}]}`, func(t *testing.T, in *manifests) {
			if len(in.networkPolicies) != len(programs) {
				t.Fatalf("there are %d", len(in.networkPolicies))
			}
			for _, p := range in.networkPolicies {
				d, c := pod(t, in, p.Name)
				if !maps.Equal(p.Spec.PodSelector.MatchLabels, d.Spec.Selector.MatchLabels) || p.Spec.Ingress[0].From[0].NamespaceSelector.MatchLabels["name"] != "monitoring" {
					t.Errorf("%s: %+v", p.Name, p.Spec)
				}
				for _, rule := range p.Spec.Ingress {
					if !slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.Name == rule.Ports[0].Port.String() }) {
						t.Errorf("%s has no port %s", p.Name, rule.Ports[0].Port)
					}
				}
				if isCalled := p.Name == admissionServer || p.Name == "volcano-scheduler"; len(p.Spec.Ingress) == 2 != isCalled {
					t.Errorf("%s: that the API server may call it is %t", p.Name, !isCalled)
				}
			}
		}},
		"metrics for whom the API server permits": {`metrics: {authenticated: true}`, func(t *testing.T, in *manifests) {
			for _, program := range programs {
				_, c := pod(t, in, "volcano-"+program)
				if !slices.Contains(c.Args, "--authenticate-metrics=true") {
					t.Errorf("%s is started with %q", program, c.Args)
				}
				if !slices.ContainsFunc(in.clusterRoleBindings, func(b rbacv1.ClusterRoleBinding) bool {
					return b.RoleRef.Name == "system:auth-delegator" && b.Subjects[0].Name == "volcano-"+program
				}) {
					t.Errorf("%s may not ask who somebody is", program)
				}
			}
		}},
		"gates of queue admission": {`queueAdmissionGates: true`, func(t *testing.T, in *manifests) {
			for program, wanted := range map[string]bool{"scheduler": true, "controllers": false, "admission": true} {
				if _, c := pod(t, in, "volcano-"+program); slices.Contains(c.Args, "--feature-gates=SchedulingGatesQueueAdmission=true") != wanted {
					t.Errorf("%s is started with %q", program, c.Args)
				}
			}
			if !slices.ContainsFunc(in.clusterRoles, func(r rbacv1.ClusterRole) bool { return r.Name == "volcano-scheduler-gates" }) {
				t.Error("the scheduler may not take gates off")
			}
		}},
		"labels of YuniKorn": {`yunikorn: {labels: true}`, func(t *testing.T, in *manifests) {
			for program, wanted := range map[string]bool{"scheduler": false, "controllers": true, "admission": false} {
				if _, c := pod(t, in, "volcano-"+program); slices.Contains(c.Args, "--yunikorn-labels=true") != wanted {
					t.Errorf("%s is started with %q", program, c.Args)
				}
			}
		}},
		"what Helm hands to a chart below another": {`global: {imageRegistry: elsewhere.example.com}`, func(t *testing.T, in *manifests) {
			if _, c := pod(t, in, "volcano-scheduler"); c.Image != "hekla:latest" {
				t.Errorf("the image is %s", c.Image)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, sortByKind(t, render(t, test.values))) })
	}
}

// samples are values of another form than text, numbers and switches, by the last word of their name.
var samples = map[string]any{
	"pullSecrets": []any{"a"}, "namespaces": []any{"a"}, "extraArgs": []any{"--a=b"}, "tolerations": []any{map[string]any{"key": "a"}}, "affinity": map[string]any{"nodeAffinity": map[string]any{}},
	"podSecurityContext": map[string]any{"fsGroup": 7}, "securityContext": map[string]any{"runAsUser": 7},
	"resources": map[string]any{"requests": map[string]any{"cpu": 7}}, "metricsFrom": []any{map[string]any{"podSelector": map[string]any{}}},
	"pullPolicy": "Always",
}

// changed returns every value of the chart, each by its name and made another than it is.
func changed(t *testing.T, prefix string, values map[string]any) map[string]any {
	t.Helper()
	all := map[string]any{}
	for key, value := range values {
		name := strings.TrimPrefix(prefix+"."+key, ".")
		sample, isSample := samples[key]
		switch value := value.(type) {
		case bool:
			all[name] = !value
		case float64:
			all[name] = value + 1
		case map[string]any:
			switch {
			case isSample:
				all[name] = sample
			case len(value) == 0 || key == "nodeSelector":
				all[name] = map[string]any{"example.com/a": "b"}
			default:
				maps.Copy(all, changed(t, name, value))
			}
		default:
			if all[name] = "another"; isSample {
				all[name] = sample
			} else if _, isText := value.(string); !isText {
				t.Errorf("there is no sample for the value %s", name)
			}
		}
	}
	return all
}

func TestEveryValueHasAnEffectAndIsInTheSchema(t *testing.T) {
	content, err := os.ReadFile(chart + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(content, &values); err != nil {
		t.Fatal(err)
	}
	base := []string{"template", "hekla", chart, "--namespace=" + system}
	switches := []string{"networkPolicy.enabled", "monitoring.dashboards", "monitoring.alerts", "monitoring.scrape"} // others matter only with these
	for _, name := range switches {
		base = append(base, "--set-json="+name+"=true")
	}
	before := helm(t, base...)
	for name, value := range changed(t, "", values) {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(switches, name) {
			text = []byte("false")
		}
		if after := helm(t, append(base, "--set-json="+name+"="+string(text))...); after == before {
			t.Errorf("%s=%s changes nothing", name, text)
		}
	}
	var schema struct {
		Properties map[string]struct{ Properties map[string]any }
	}
	if content, err = os.ReadFile(chart + "/values.schema.json"); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &schema); err != nil {
		t.Fatal(err)
	}
	for name, property := range schema.Properties {
		parent, isThere := values[name]
		if !isThere && name != "global" {
			t.Errorf("the schema knows %s, values.yaml does not", name)
		}
		for child := range property.Properties {
			if _, isThere := parent.(map[string]any)[child]; !isThere {
				t.Errorf("the schema knows %s.%s, values.yaml does not", name, child)
			}
		}
	}
}

func TestCommonLabelsAreOnEveryObjectAndPodAndInNoSelector(t *testing.T) {
	objects := render(t, `
commonLabels: {example.com/team: batch, cost: "7"}
metrics: {authenticated: true}
networkPolicy: {enabled: true}
monitoring: {dashboards: true, alerts: true, scrape: true}
queueAdmissionGates: true
scheduler: {configuration: "actions: allocate"}
admission: {configuration: "resourceGroups: []"}`)
	for _, object := range objects {
		if labels := object.GetLabels(); labels["example.com/team"] != "batch" || labels["cost"] != "7" {
			t.Errorf("%s %s has the labels %v", object.GetKind(), object.GetName(), labels)
		}
	}
	in := sortByKind(t, objects)
	for _, d := range in.deployments {
		if d.Spec.Template.Labels["cost"] != "7" || len(d.Spec.Selector.MatchLabels) != 1 {
			t.Errorf("%s: pods have %v and are selected by %v", d.Name, d.Spec.Template.Labels, d.Spec.Selector.MatchLabels)
		}
	}
}

func TestTheChartBringsWhatWatchesHekla(t *testing.T) {
	objects := render(t, `
monitoring: {dashboards: true, dashboardLabels: {grafana_dashboard: null, dashboards: all}, alerts: true, scrape: true, prometheusLabels: {release: stack}}
metrics: {authenticated: true}`)
	files, err := filepath.Glob(root + "/installer/monitoring/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("the dashboards are %v: %v", files, err)
	}
	in := sortByKind(t, objects)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		got := in.configMap(t, "hekla-dashboard-"+strings.TrimSuffix(name, ".json"))
		if got.Data["hekla-"+name] != string(text) || got.Labels["dashboards"] != "all" || len(got.Labels) != 2 {
			t.Errorf("%s is %q with the labels %v", got.Name, got.Data, got.Labels)
		}
	}
	text, err := os.ReadFile(root + "/installer/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var alerts map[string]any
	if err := yaml.Unmarshal(text, &alerts); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, object := range objects {
		switch object.GetKind() {
		case "PrometheusRule":
			if difference := cmp.Diff(alerts, object.Object["spec"]); difference != "" {
				t.Errorf("the alerts are others: %s", difference)
			}
		case "ServiceMonitor":
			endpoints, _, _ := unstructured.NestedSlice(object.Object, "spec", "endpoints")
			if len(endpoints) != 1 || endpoints[0].(map[string]any)["port"] != "metrics" || endpoints[0].(map[string]any)["scheme"] != "https" {
				t.Errorf("the metrics are read from %v", endpoints)
			}
		default:
			continue
		}
		if found++; object.GetLabels()["release"] != "stack" || object.GetNamespace() != system {
			t.Errorf("%s is in %s with the labels %v", object.GetKind(), object.GetNamespace(), object.GetLabels())
		}
	}
	if found != 2 {
		t.Errorf("%d objects of the Prometheus Operator, want 2", found)
	}
	for _, service := range in.services {
		if slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == "metrics" }) && service.Labels["app.kubernetes.io/part-of"] != "hekla" {
			t.Errorf("the ServiceMonitor does not select Service %s", service.Name)
		}
	}
}

// Kueue registers APIServices of the same names, so a cluster with Kueue must not get them unasked.
func TestTheAPIForPlacesComesWhereItIsAskedForOnly(t *testing.T) {
	text, err := os.ReadFile(root + "/installer/visibility.yaml")
	if err != nil {
		t.Fatal(err)
	}
	without, with, file := contents(render(t, "")), contents(render(t, "visibility: {enabled: true}")), contents(parse(t, string(text)))
	for name, object := range file {
		if _, isThere := without[name]; isThere {
			t.Errorf("%s comes unasked", name)
		}
		if difference := cmp.Diff(object, with[name]); difference != "" {
			t.Errorf("%s of the file (-), of the chart (+): %s", name, difference)
		}
	}
	if len(with) != len(without)+len(file) {
		t.Errorf("%d objects, %d more than without", len(with), len(with)-len(without))
	}
	if _, err := runHelm(t, "template", "hekla", chart, valuesFile(t, "{answers: {enabled: false}, visibility: {enabled: true}}")); err == nil || !strings.Contains(err.Error(), "visibility.enabled") {
		t.Errorf("without answers: %v", err)
	}
	for _, object := range parse(t, helm(t, "template", "hekla", chart, "--namespace=elsewhere", "--set=visibility.enabled=true")) {
		if object.GetKind() == "APIService" {
			if namespace, _, _ := unstructured.NestedString(object.Object, "spec", "service", "namespace"); namespace != "elsewhere" {
				t.Errorf("%s leads to namespace %q", object.GetName(), namespace)
			}
		}
	}
}

func TestTheDefinitionsCanBeLeftOut(t *testing.T) {
	for _, object := range render(t, "crds: {install: false}") {
		if object.GetKind() == "CustomResourceDefinition" {
			t.Errorf("there is %s", object.GetName())
		}
	}
}

func TestNothingStaysBehindWhenTheNamespaceIsAnother(t *testing.T) {
	output := helm(t, "template", "hekla", chart, "--namespace=elsewhere")
	for line := range strings.Lines(output) {
		if text, _, _ := strings.Cut(line, "#"); strings.Contains(text, system) {
			t.Errorf("the chart says %s", line)
		}
	}
	for _, object := range parse(t, output) {
		if namespace := object.GetNamespace(); namespace != "" && namespace != "elsewhere" &&
			!(namespace == "kube-system" && object.GetKind() == "RoleBinding" && object.GetName() == answers) { // to a Role of Kubernetes there
			t.Errorf("%s %s is in %s", object.GetKind(), object.GetName(), namespace)
		}
	}
	// The quota would count the critical pods of Kubernetes itself.
	for _, object := range parse(t, helm(t, "template", "hekla", chart, "--namespace=kube-system")) {
		if object.GetKind() == "ResourceQuota" {
			t.Error("kube-system gets a quota")
		}
	}
}

func TestValuesOfAnotherFormAreRefusedByName(t *testing.T) {
	for values, want := range map[string]string{
		`replicas: 3`:                               "replicas",
		`schedulre: {replicas: 3}`:                  "schedulre",
		`scheduler: {replicas: -1}`:                 "/scheduler/replicas",
		`scheduler: {replicas: "3"}`:                "/scheduler/replicas",
		`scheduler: {replica: 3}`:                   "replica",
		`scheduler: {configuration: {actions: ""}}`: "/scheduler/configuration",
		`scheduler: {extraArgs: "--v=3"}`:           "/scheduler/extraArgs",
		`controllers: {extraArgs: [v=3]}`:           "/controllers/extraArgs/0",
		`controllers: {configuration: ""}`:          "configuration",
		`controllers: {nodeSelector: {pool: 1}}`:    "/controllers/nodeSelector/pool",
		`controllers: {resources: {request: {}}}`:   "request",
		`admission: {enabled: 1}`:                   "/admission/enabled",
		`image: {pullPolicy: Sometimes}`:            "/image/pullPolicy",
		`image: {repository: ""}`:                   "/image/repository",
		`image: {tag: "a b"}`:                       "/image/tag",
		`crds: {install: "no"}`:                     "/crds/install",
		`yunikorn: {labels: "yes"}`:                 "/yunikorn/labels",
		`yunikorn: {label: true}`:                   "label",
	} {
		_, err := runHelm(t, "template", "hekla", chart, valuesFile(t, values))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "schema") {
			t.Errorf("%s: the error is %v, want one that names %s", values, err, want)
		}
	}
}
