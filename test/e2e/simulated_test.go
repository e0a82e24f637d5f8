package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/simulator/manifests"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/apitest"
)

// outcome is what becomes of the jobs of a manifest, by their names: how many of their pods have a node, and why those
// wait that do.
type outcome struct {
	Placed map[string]int
	Waits  map[string]string
}

// simulatedKinds are those of the cluster that the simulation is told of.
const simulatedKinds = "nodes,namespaces,pods,podgroups,queues,jobs.batch.volcano.sh,jobs.batch,priorityclasses,limitranges," +
	"storageclasses,persistentvolumes,persistentvolumeclaims,deviceclasses,resourceslices,resourceclaims,resourceclaimtemplates"

// TestASimulationDecidesAsTheCluster creates manifests on the cluster, and simulates them on what kubectl shows of it.
func TestASimulationDecidesAsTheCluster(t *testing.T) {
	haveNodes(t, 2)
	tidyUp(t)
	t.Cleanup(func() {
		ctx := context.Background()
		for _, kinds := range []string{"pods,persistentvolumeclaims,limitranges,resourceclaims,resourceclaimtemplates,jobs.batch", "persistentvolumes", "storageclasses,resourceslices,deviceclasses"} {
			if _, err := system.Kubectl(ctx, "delete", kinds, "--all", "--wait=false"); err != nil {
				t.Error(err)
			}
		}
	})
	files, err := filepath.Glob("testdata/simulated/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before := filepath.Join(t.TempDir(), "cluster.yaml")
		if err := os.WriteFile(before, []byte(kubectl(t, "get", simulatedKinds, "-n", metav1.NamespaceDefault, "-o", "yaml")), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, namesOf(string(text))...)
		want := simulated(t, names, before, file)
		t.Logf("%s: %+v", file, want)
		if len(want.Placed) < 3 || len(want.Waits) < 2 {
			t.Errorf("%s shows little: %+v", file, want)
		}
		// All of it is there at the first cycle, as in the simulation.
		if err := schedulerProcess(t).Kill(); err != nil {
			t.Fatal(err)
		}
		kubectl(t, "create", "-f", file)
		runScheduler(t)
		same := func(ctx context.Context) error {
			got, err := placedOnCluster(ctx, names)
			if diff := cmp.Diff(want, got); err == nil && diff != "" {
				err = fmt.Errorf("the cluster decides otherwise (-simulation +cluster):\n%s", diff)
			}
			return err
		}
		apitest.Eventually(t, same)
		time.Sleep(time.Second) // and that is where it stays
		if err := same(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// namesOf are the names of the jobs and pods of a manifest, without the dash of a generateName.
func namesOf(text string) (names []string) {
	for _, document := range strings.Split(text, "---\n") {
		for _, line := range strings.Split(document, "\n") {
			isJob := strings.Contains(document, "kind: Job\n") || strings.Contains(document, "kind: Pod\n")
			if _, rest, is := strings.Cut(line, "ame: "); is && isJob && strings.HasPrefix(line, "metadata:") {
				names = append(names, strings.TrimSuffix(strings.FieldsFunc(rest, func(r rune) bool { return r == ',' || r == '}' })[0], "-"))
			}
		}
	}
	return names
}

// nameIn returns that of the names to which a pod or job belongs.
func nameIn(names []string, of string) string {
	for _, name := range names {
		if of == name || strings.HasPrefix(of, name+"-") {
			return name
		}
	}
	return of
}

// simulated returns what a simulation decides.
func simulated(t *testing.T, names []string, files ...string) outcome {
	t.Helper()
	input, err := manifests.Read(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	registry := scheduler.NewRegistry()
	policy, err := registry.Build(conf.Default(registry.Catalogue()))
	if err != nil {
		t.Fatal(err)
	}
	report, err := simulator.Run(input, policy, simulator.Options{SchedulerNames: []string{"volcano"}, UntilStable: true, MaxCycles: 50})
	if err != nil {
		t.Fatal(err)
	}
	decided := outcome{map[string]int{}, map[string]string{}}
	for _, pod := range input.Pods {
		if pod.Spec.NodeName != "" {
			decided.Placed[nameIn(names, pod.Name)]++
		}
	}
	for _, b := range report.Binds {
		decided.Placed[nameIn(names, strings.TrimPrefix(b.Pod, "default/"))]++
	}
	for _, j := range report.Jobs {
		if j.Reason != "" {
			decided.Waits[nameIn(names, strings.TrimPrefix(j.Job, "default/"))] = j.Reason
		}
	}
	if foreign := "Pod default/foreign"; !slices.ContainsFunc(report.LeftOut, func(l simulator.LeftOut) bool { return l.Object == foreign }) {
		t.Errorf("%s is not among what is left out: %v", foreign, report.LeftOut)
	}
	return decided
}

// placedOnCluster returns what the cluster has decided.
func placedOnCluster(ctx context.Context, names []string) (outcome, error) {
	decided := outcome{map[string]int{}, map[string]string{}}
	pods, err := core.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return decided, err
	}
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName != "" {
			decided.Placed[nameIn(names, pods.Items[i].Name)]++
		}
	}
	groups, err := batch.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return decided, err
	}
	for i := range groups.Items {
		g := &groups.Items[i]
		name := g.Name
		if owner := metav1.GetControllerOfNoCopy(g); owner != nil {
			name = owner.Name
		}
		for _, c := range g.Status.Conditions {
			if c.Type == schedulingv1beta1.PodGroupUnschedulableType && c.Status == "True" {
				decided.Waits[nameIn(names, name)] = c.Reason
			}
		}
	}
	return decided, nil
}
