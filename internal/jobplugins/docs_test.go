package jobplugins

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// sections returns the parts of the page of job plugins by their titles.
func sections(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile("../../docs/job-plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, part := range strings.Split(string(content), "\n## ")[1:] {
		title, text, _ := strings.Cut(part, "\n")
		found[title] = text
	}
	return found
}

func TestThePageTellsEveryArgumentAndItsDefault(t *testing.T) {
	job := &batch.Job{ObjectMeta: metav1.ObjectMeta{Name: "sim"}}
	for _, task := range []string{"master", "worker", "head"} {
		job.Spec.Tasks = append(job.Spec.Tasks, batch.TaskSpec{Name: task, Replicas: 2})
	}
	view, told := jobView{Job: job, podName: podName, ignored: new([]string)}, sections(t)
	row := regexp.MustCompile("(?m)^\\| `--([a-zA-Z-]+)` \\| (?:`([^`]*)`)? ?\\|")
	for _, entry := range catalogue() {
		t.Run(entry.name, func(t *testing.T) {
			var names, defaults []string
			for _, match := range row.FindAllStringSubmatch(told[entry.name], -1) {
				names = append(names, "--"+match[1])
				defaults = append(defaults, "--"+match[1]+"="+match[2])
			}
			slices.Sort(names)
			_, err := entry.value(view, []string{"--help"})
			_, known, _ := strings.Cut(err.Error(), "the arguments are ")
			if got := strings.Join(names, ", "); got != known {
				t.Errorf("the page tells of %q, there are %q", got, known)
			}
			without, err := entry.value(view, nil)
			if err != nil {
				t.Fatal(err)
			}
			with, err := entry.value(view, defaults)
			if err != nil {
				t.Fatal(err)
			}
			everything := cmp.Exporter(func(reflect.Type) bool { return true })
			if diff := cmp.Diff(without, with, everything, cmpopts.IgnoreTypes(jobView{})); diff != "" {
				t.Errorf("the defaults on the page are others (-real +page):\n%s", diff)
			}
		})
	}
}

func TestThePageKeepsTheOrderInWhichPluginsAct(t *testing.T) {
	content, err := os.ReadFile("../../docs/job-plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for _, entry := range catalogue() {
		at := strings.Index(string(content), "\n## "+entry.name+"\n")
		if at <= last {
			t.Errorf("%s stands at %d, after %d", entry.name, at, last)
		}
		last = at
	}
}
