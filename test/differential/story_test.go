package differential

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/internal/simulator/manifests"
	"hekla.sh/hekla/pkg/apis"
	"hekla.sh/hekla/pkg/verdict"
)

// tell tells a run for finding out what went wrong.
func (l *run) tell() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", l.failure, l.configuration.yaml())
	for _, o := range l.scenario.objects {
		b.WriteString(told(o) + "\n")
	}
	b.WriteString("\n" + strings.Join(l.story, "\n") + "\n\nin the end\n")
	begun := b.String()
	for _, o := range l.led.Objects() {
		if text := told(o); !strings.Contains(begun, text+"\n") && !strings.Contains(text, " default ") && !strings.Contains(text, " root ") {
			b.WriteString(text + "\n")
		}
	}
	for _, j := range l.led.Scheduler().Cluster().Jobs() {
		if j.Verdict != nil {
			fmt.Fprintf(&b, "%s waits: %s %s (%s)\n", j.ID.Name, j.Verdict.Code, j.Verdict.Sentence(), helps(j.Verdict.Help))
		}
	}
	return b.String()
}

func helps(h verdict.Help) string { return fmt.Sprintf("%06b", h) }

// told is an object in one line, without what goes without saying.
func told(o runtime.Object) string {
	o = o.DeepCopyObject()
	m := o.(metav1.Object)
	name := m.GetName()
	labels, annotations := m.GetLabels(), m.GetAnnotations()
	m.SetUID("")
	m.SetCreationTimestamp(metav1.Time{})
	m.SetResourceVersion("")
	m.SetGeneration(0)
	m.SetNamespace("")
	m.SetName("")
	delete(labels, corev1.LabelHostname)
	delete(annotations, "volcano.sh/task-index")
	if n, ok := o.(*corev1.Node); ok {
		return fmt.Sprintf("*v1.Node %s %v %v %v cordoned=%t %v", name, n.Status.Allocatable.Cpu(), n.Status.Allocatable.Pods(), labels, n.Spec.Unschedulable, n.Spec.Taints)
	}
	if p, ok := o.(*corev1.Pod); ok {
		p.Spec.SchedulerName = strings.TrimPrefix(p.Spec.SchedulerName, "volcano")
		p.Spec.TerminationGracePeriodSeconds = nil
		p.Status.StartTime = nil
		p.OwnerReferences = nil
		for i := range p.Status.Conditions {
			p.Status.Conditions[i].Message = ""
			p.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
	}
	text, err := yaml.Marshal(o)
	if err != nil {
		panic(err)
	}
	json, err := yaml.YAMLToJSON(text)
	if err != nil {
		panic(err)
	}
	short := strings.NewReplacer(`"`, "", "metadata:", "", "creationTimestamp:null", "", "null", "", "status:{}", "", "spec:{}", "", "guarantee:{},", "", "reservation:{},", "", "volcano.sh/", "", "lastProbeTime:,lastTransitionTime:,", "", "scheduling.k8s.io/", "", "image:busybox,name:main,", "").Replace(string(json))
	return fmt.Sprintf("%T %s %s", o, name, short)
}

// write writes the scenario as a folder of package scenarios. What is expected is for a person to say.
func (l *run) write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	configuration := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "volcano-system", Name: "volcano-scheduler-configmap"},
		Data: map[string]string{manifests.ConfigurationKey: l.scenario.configuration.yaml()}}
	if err := writeObjects(filepath.Join(folder, "cluster.yaml"), append([]runtime.Object{configuration}, l.scenario.objects...)); err != nil {
		return err
	}
	text := "source: own, package differential\nrules: [S2]\nnote: " + strconv.Quote(l.failure) + "\n"
	text += fmt.Sprintf("cycles: %d\nargs: [--grace, --now=%s]\n", l.cycles+5, beginning.Format(time.RFC3339))
	if len(l.happened) > 0 {
		text += "changes:\n"
	}
	for i, h := range l.happened {
		text += fmt.Sprintf("- before: %d\n", h.before)
		if len(h.set) > 0 {
			file := fmt.Sprintf("change-%d.yaml", i+1)
			text += "  file: " + file + "\n"
			if err := writeObjects(filepath.Join(folder, file), h.set); err != nil {
				return err
			}
		}
		if len(h.deleted) > 0 {
			text += "  delete: [" + strings.Join(h.deleted, ", ") + "]\n"
		}
	}
	text += "expect: {}\n"
	if err := os.WriteFile(filepath.Join(folder, "expect.yaml"), []byte(text), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "story.txt"), []byte(l.tell()), 0o644)
}

var scheme = func() *runtime.Scheme {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, policyv1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme,
		resourcev1.AddToScheme, apis.AddToScheme} {
		if err := add(all); err != nil {
			panic(err)
		}
	}
	return all
}()

func writeObjects(file string, objects []runtime.Object) error {
	var b strings.Builder
	for i, o := range objects {
		o = o.DeepCopyObject()
		kinds, _, err := scheme.ObjectKinds(o)
		if err != nil {
			return err
		}
		o.GetObjectKind().SetGroupVersionKind(kinds[0])
		text, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteString("---\n")
		}
		b.Write(text)
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}
