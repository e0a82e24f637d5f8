package gang_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/binpack"
	gangplugin "hekla.sh/hekla/pkg/plugins/gang"
	"hekla.sh/hekla/pkg/plugins/networktopology"
	"hekla.sh/hekla/pkg/plugins/nodeorder"
	"hekla.sh/hekla/pkg/plugins/predicates"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// placing is a model with placement and these plugins in one tier, by default gang, predicates and nodeorder. Arguments
// of a plugin follow its name, as a YAML mapping.
func placing(t harness.TB, plugins ...string) *harness.Model {
	t.Helper()
	if len(plugins) == 0 {
		plugins = []string{"gang", "predicates", "nodeorder"}
	}
	factories := map[string]framework.PluginFactory{}
	for _, f := range []framework.PluginFactory{gangplugin.Factory(), predicates.Factory(), nodeorder.Factory(), binpack.Factory(), networktopology.Factory()} {
		factories[f.Name] = f
	}
	var entries []harness.Entry
	for _, plugin := range plugins {
		name, arguments, _ := strings.Cut(plugin, " ")
		entries = append(entries, harness.Entry{Factory: factories[name], Arguments: arguments})
	}
	return harness.ForPlugins(t, entries...).Placing().Set(fixture.Queue("default"))
}

// gangOf is an admitted PodGroup with size pods, all of which must start.
func gangOf(name string, size int, options ...func(*corev1.Pod)) []runtime.Object {
	return fixture.Gang(name, "default", size, size, append([]func(*corev1.Pod){fixture.Labelled("app", name)}, options...)...)
}

func placeAll(t *testing.T, w *harness.Model, job string) map[string]string {
	t.Helper()
	s := w.Open()
	j := w.JobNamed(job)
	if v := gang.Place(s, j, s.Pending(j)); v != nil {
		t.Fatalf("%s is refused: %s", job, v.Sentence())
	}
	places := map[string]string{}
	for _, task := range j.Tasks() {
		if task.Node != nil {
			places[task.Key().Name] = task.Node.Name
		}
	}
	return places
}

func nameOf(n *cluster.Node) string {
	if n == nil {
		return "none"
	}
	return n.Name
}
