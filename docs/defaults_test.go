package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/pkg/conf"
)

// The first configuration on its page is the one that is in force without a ConfigMap.
func TestTheConfigurationPageBeginsWithTheDefault(t *testing.T) {
	if diff := cmp.Diff(conf.DefaultYAML, blocks(t, "configuration.md", "yaml")[0]); diff != "" {
		t.Errorf("the page does not begin with the default (-default +page):\n%s", diff)
	}
}

// The page of the installation names all definitions, and says how many there are, and how many are of Kueue's kinds.
func TestTheInstallPageCountsTheDefinitions(t *testing.T) {
	files, err := filepath.Glob("../installer/crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := page(t, "install.md")
	row := regexp.MustCompile(`(?m)^\| \d+ CustomResourceDefinitions \|.*$`).FindString(text)
	ofKueue := 0
	for _, file := range files {
		group, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "_")
		if group == "kueue.x-k8s.io" {
			ofKueue++
		}
		if !strings.Contains(row, plural) || !strings.Contains(row, group) {
			t.Errorf("the page does not name %s.%s", plural, group)
		}
	}
	of := func(count int) string { return strconv.Itoa(count) + " of " }
	for _, want := range []string{"| " + strconv.Itoa(len(files)) + " CustomResource", of(len(files)-ofKueue) + "Volcano's", of(ofKueue) + "Kueue's"} {
		if !strings.Contains(row, want) {
			t.Errorf("the page does not say %q of the definitions; it says %s", want, row)
		}
	}
	// Who has Kueue has to know before the first command that applies them.
	warning, apply := strings.Index(text, "Does Kueue run"), strings.Index(text, "kubectl apply -f -")
	if warning < 0 || warning > apply {
		t.Error("what happens beside Kueue is not said before kubectl apply")
	}
	if said := strconv.Itoa(len(files)) + " CustomResourceDefinitions, " + strconv.Itoa(ofKueue) + " of which"; !strings.Contains(text[warning:apply], said) {
		t.Errorf("the warning does not say %q", said)
	}
	if installed, err := os.ReadFile("../installer/hekla.yaml"); err != nil || strings.Count(string(installed), "\nkind: CustomResourceDefinition\n") != len(files) {
		t.Errorf("hekla.yaml has another number of definitions: %v", err)
	}
}
