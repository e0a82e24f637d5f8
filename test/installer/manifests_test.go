package installer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"hekla.sh/hekla"
	"hekla.sh/hekla/cmd/scheduler/app"
	"hekla.sh/hekla/internal/admission"
	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
)

// manifests are the objects of the installer that these tests look at.
type manifests struct {
	namespaces          []corev1.Namespace
	accounts            []metav1.ObjectMeta
	clusterRoles        []rbacv1.ClusterRole
	clusterRoleBindings []rbacv1.ClusterRoleBinding
	roles               []rbacv1.Role
	roleBindings        []rbacv1.RoleBinding
	configMaps          []corev1.ConfigMap
	deployments         []appsv1.Deployment
	budgets             []policyv1.PodDisruptionBudget
	services            []corev1.Service
	secrets             []corev1.Secret
	mutating            []admissionregistrationv1.MutatingWebhookConfiguration
	validating          []admissionregistrationv1.ValidatingWebhookConfiguration
	policies            []admissionregistrationv1.ValidatingAdmissionPolicy
	networkPolicies     []networkingv1.NetworkPolicy
	policyBindings      []admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// admissionServer is the program of which all replicas work.
const admissionServer = "volcano-admission"

// configMap returns the ConfigMap of a name.
func (m *manifests) configMap(t *testing.T, name string) corev1.ConfigMap {
	t.Helper()
	for _, c := range m.configMaps {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no ConfigMap %s", name)
	return corev1.ConfigMap{}
}

func read(t *testing.T) *manifests {
	t.Helper()
	objects, err := localcluster.ReadManifests(hekla.Installer)
	if err != nil {
		t.Fatal(err)
	}
	m := sortByKind(t, objects)
	if len(m.deployments) != 3 || len(m.namespaces) != 1 {
		t.Fatalf("%d Deployments and %d Namespaces, want 3 and 1", len(m.deployments), len(m.namespaces))
	}
	return m
}

// sortByKind gives each object its type.
func sortByKind(t *testing.T, objects []*unstructured.Unstructured) *manifests {
	t.Helper()
	m := new(manifests)
	for _, object := range objects {
		switch object.GetKind() {
		case "Namespace":
			keep(t, object, &m.namespaces)
		case "ServiceAccount":
			m.accounts = append(m.accounts, metav1.ObjectMeta{Name: object.GetName(), Namespace: object.GetNamespace()})
		case "ClusterRole":
			keep(t, object, &m.clusterRoles)
		case "ClusterRoleBinding":
			keep(t, object, &m.clusterRoleBindings)
		case "Role":
			keep(t, object, &m.roles)
		case "RoleBinding":
			keep(t, object, &m.roleBindings)
		case "ConfigMap":
			keep(t, object, &m.configMaps)
		case "Deployment":
			keep(t, object, &m.deployments)
		case "PodDisruptionBudget":
			keep(t, object, &m.budgets)
		case "Service":
			keep(t, object, &m.services)
		case "Secret":
			keep(t, object, &m.secrets)
		case "MutatingWebhookConfiguration":
			keep(t, object, &m.mutating)
		case "ValidatingWebhookConfiguration":
			keep(t, object, &m.validating)
		case "ValidatingAdmissionPolicy":
			keep(t, object, &m.policies)
		case "ValidatingAdmissionPolicyBinding":
			keep(t, object, &m.policyBindings)
		case "NetworkPolicy":
			keep(t, object, &m.networkPolicies)
		case "CustomResourceDefinition", "ResourceQuota", "APIService", "EndpointSlice", "PrometheusRule", "ServiceMonitor":
		default:
			t.Errorf("%s %s: no test looks at objects of this kind", object.GetKind(), object.GetName())
		}
	}
	return m
}

// keep appends the object as its type has it. A field that the type does not know is an error.
func keep[T any](t *testing.T, object *unstructured.Unstructured, to *[]T) {
	t.Helper()
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	*to = append(*to, *typed)
}

func TestPodsKeepToTheRestrictedStandard(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	in := read(t)
	for _, d := range in.deployments {
		pod := d.Spec.Template
		result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
		if !result.Allowed {
			t.Errorf("Deployment %s: %s", d.Name, result.ForbiddenDetail())
		}
		// That the evaluator sees anything at all: the same pod with one of its confinements taken off.
		pod.Spec.SecurityContext.RunAsNonRoot = nil
		if policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec)).Allowed {
			t.Errorf("Deployment %s passes as root, too", d.Name)
		}
	}
	if got := in.namespaces[0].Labels["pod-security.kubernetes.io/enforce"]; got != "restricted" {
		t.Errorf("the namespace enforces %q, want restricted", got)
	}
}

func TestProgramsSurviveTheLossOfANode(t *testing.T) {
	in := read(t)
	for _, d := range in.deployments {
		spec := d.Spec.Template.Spec
		if d.Spec.Replicas == nil || *d.Spec.Replicas < 2 {
			t.Errorf("%s has one replica", d.Name)
		}
		if spec.PriorityClassName != "system-cluster-critical" {
			t.Errorf("%s has the priority class %q", d.Name, spec.PriorityClassName)
		}
		selected := labels.Set(d.Spec.Template.Labels)
		if len(spec.TopologySpreadConstraints) != 1 || spec.TopologySpreadConstraints[0].TopologyKey != corev1.LabelHostname {
			t.Errorf("the replicas of %s need not be on different nodes", d.Name)
		} else if selector, err := metav1.LabelSelectorAsSelector(spec.TopologySpreadConstraints[0].LabelSelector); err != nil || !selector.Matches(selected) {
			t.Errorf("%s spreads other pods than its own (%v)", d.Name, err)
		}
		budgets := 0
		for _, b := range in.budgets {
			if selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && selector.Matches(selected) {
				budgets++
			}
		}
		if budgets != 1 {
			t.Errorf("%s has %d PodDisruptionBudgets, want 1", d.Name, budgets)
		}
		container := spec.Containers[0]
		if elects := strings.Contains(strings.Join(container.Args, " "), "--leader-elect=true"); elects != (d.Name != admissionServer) {
			t.Errorf("%s has several replicas; that they elect a leader is %t", d.Name, elects)
		}
		for probe, is := range map[string]bool{"liveness": container.LivenessProbe != nil, "readiness": container.ReadinessProbe != nil} {
			if !is {
				t.Errorf("%s has no %s probe", d.Name, probe)
			}
		}
		if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() {
			t.Errorf("%s requests no CPU or no memory", d.Name)
		}
		if security := container.SecurityContext; security == nil || security.ReadOnlyRootFilesystem == nil || !*security.ReadOnlyRootFilesystem {
			t.Errorf("%s can write to its root file system", d.Name)
		}
	}
}

func TestMetricsCanBeReached(t *testing.T) {
	in := read(t)
	for _, d := range in.deployments {
		found := false
		for _, s := range in.services {
			if !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels)) {
				continue
			}
			for _, port := range d.Spec.Template.Spec.Containers[0].Ports {
				found = found || port.Name == "metrics" && s.Spec.Ports[0].TargetPort.String() == port.Name && port.ContainerPort == s.Spec.Ports[0].Port
			}
		}
		if !found {
			t.Errorf("no Service leads to the metrics of %s", d.Name)
		}
	}
}

func TestTheSchedulerUnderstandsItsFlagsAndItsConfiguration(t *testing.T) {
	in := read(t)
	files, err := localcluster.ReadManifests(hekla.Configuration)
	if err != nil {
		t.Fatal(err)
	}
	c := sortByKind(t, files).configMap(t, "volcano-scheduler-configmap")
	catalogue := scheduler.NewRegistry().Catalogue()
	configuration, err := conf.Parse([]byte(c.Data["volcano-scheduler.conf"]), catalogue)
	if err != nil {
		t.Fatal(err)
	}
	if !configuration.Equal(conf.Default(catalogue)) {
		t.Errorf("the file to start from is not the default:\n%s", configuration)
	}
	if len(configuration.Notices) > 0 {
		t.Errorf("the configuration says something to no effect: %v", configuration.Notices)
	}
	for _, d := range in.deployments {
		if d.Name != "volcano-scheduler" {
			continue
		}
		command := app.NewCommand()
		if err := command.ParseFlags(d.Spec.Template.Spec.Containers[0].Args); err != nil {
			t.Fatal(err)
		}
		if got, want := command.Flag("scheduler-configmap").Value.String(), c.Namespace+"/"+c.Name; got != want {
			t.Errorf("the scheduler reads the ConfigMap %s, the installer has %s", got, want)
		}
	}
}

// What is applied overwrites what is there, so what users edit is not among it. A ConfigMap without data keeps that of
// the one that is there.
func TestNothingThatUsersEditIsInstalled(t *testing.T) {
	for _, c := range read(t).configMaps {
		if len(c.Data)+len(c.BinaryData) > 0 {
			t.Errorf("the installer overwrites the ConfigMap %s", c.Name)
		}
	}
	for _, d := range read(t).deployments {
		for _, volume := range d.Spec.Template.Spec.Volumes {
			if volume.ConfigMap != nil && (volume.ConfigMap.Optional == nil || !*volume.ConfigMap.Optional) {
				t.Errorf("%s does not start without the ConfigMap %s", d.Name, volume.ConfigMap.Name)
			}
		}
	}
}

// The objects that the webhook server fills in are installed empty. So the server needs no right to create them, they
// are removed with the rest, and the API server asks no webhook before one can answer.
func TestTheServerOfWebhooksFindsWhatItFillsIn(t *testing.T) {
	in := read(t)
	if len(in.secrets) != 1 || in.secrets[0].Name != "volcano-admission-secret" || len(in.secrets[0].Data)+len(in.secrets[0].StringData) > 0 {
		t.Errorf("the Secrets are %v", in.secrets)
	}
	if len(in.mutating) != 1 || in.mutating[0].Name != admission.ConfigurationName || len(in.mutating[0].Webhooks) > 0 {
		t.Errorf("the configurations of mutating webhooks are %v", in.mutating)
	}
	if len(in.validating) != 1 || in.validating[0].Name != admission.ConfigurationName || len(in.validating[0].Webhooks) > 0 {
		t.Errorf("the configurations of validating webhooks are %v", in.validating)
	}
	_, container := pod(t, in, admissionServer)
	for _, service := range in.services {
		if !slices.Contains(container.Args, "--webhook-service-name="+service.Name) {
			continue
		}
		for _, port := range service.Spec.Ports {
			if port.Port == 443 && slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool {
				return p.Name == port.TargetPort.String() && slices.Contains(container.Args, fmt.Sprintf("--port=%d", p.ContainerPort))
			}) {
				return
			}
		}
	}
	t.Errorf("no Service leads from port 443 to where the server listens: %v", container.Args)
}

// What is not ours goes on when a policy cannot be evaluated, as when the definitions are removed before the policies.
func TestEveryPolicyIsBoundAndHoldsUpOurKindsAlone(t *testing.T) {
	in := read(t)
	if len(in.policies) == 0 || len(in.policies) != len(in.policyBindings) {
		t.Errorf("%d policies have %d bindings", len(in.policies), len(in.policyBindings))
	}
	for _, policy := range in.policies {
		does := admissionregistrationv1.Deny
		if policy.Name == "volcano-unmanaged-kinds" { // it is about all kinds
			does = admissionregistrationv1.Warn
		}
		if !slices.ContainsFunc(in.policyBindings, func(b admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
			return b.Spec.PolicyName == policy.Name && slices.Equal(b.Spec.ValidationActions, []admissionregistrationv1.ValidationAction{does})
		}) {
			t.Errorf("policy %s does not %s", policy.Name, does)
		}
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			for _, group := range rule.APIGroups {
				if !strings.HasSuffix(group, ".volcano.sh") && (policy.Spec.FailurePolicy == nil || *policy.Spec.FailurePolicy != admissionregistrationv1.Ignore) {
					t.Errorf("policy %s is about the group %q, and refuses what it cannot judge", policy.Name, group)
				}
			}
		}
	}
}

// An API server that has just started finds the kinds of definitions half a minute late. A policy with parameters of
// such a kind must not refuse meanwhile what it does not guard, which a policy that fails closed would.
func TestNoPolicyRefusesForParametersThatAreNotKnownYet(t *testing.T) {
	found := false
	for _, policy := range read(t).policies {
		kind := policy.Spec.ParamKind
		if kind == nil || !strings.Contains(strings.Split(kind.APIVersion, "/")[0], ".") {
			continue // it has none, or one that every API server knows from its start
		}
		found = true
		if fails := policy.Spec.FailurePolicy; fails == nil || *fails != admissionregistrationv1.Ignore {
			t.Errorf("%s refuses all requests while an API server does not know %s", policy.Name, kind.Kind)
		}
	}
	if !found {
		t.Error("no policy has parameters of a kind of a definition")
	}
}
