package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"hekla.sh/hekla/cmd/scheduler/app"
	"hekla.sh/hekla/internal/admission"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
)

// page returns the text of a page.
func page(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// rows returns the rows of a page's tables whose first cell is one word in code, by that word. A word may stand in
// several tables.
func rows(text string) map[string][]string {
	result := map[string][]string{}
	row := regexp.MustCompile("(?m)^\\| `([^`|]+)`(?:, `[^`|]+`)* \\|.*$")
	for _, match := range row.FindAllStringSubmatch(text, -1) {
		result[match[1]] = append(result[match[1]], match[0])
	}
	return result
}

// constants returns the texts of the constants of a file that are of a type, or, if there is no type, whose name begins
// so.
func constants(t *testing.T, path, typeName, prefix string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, isValue := n.(*ast.ValueSpec)
		if !isValue || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		if named, isNamed := spec.Type.(*ast.Ident); typeName != "" && (!isNamed || named.Name != typeName) {
			return true
		}
		if literal, isLiteral := spec.Values[0].(*ast.BasicLit); isLiteral && literal.Kind == token.STRING {
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	if len(values) == 0 {
		t.Fatalf("%s has no such constants; this test looks in the wrong place", path)
	}
	return values
}

func TestEveryReasonToWaitIsExplained(t *testing.T) {
	explained := rows(page(t, "why-pending.md"))
	known := append(constants(t, "../pkg/verdict/verdict.go", "Code", ""), constants(t, "../pkg/verdict/reason.go", "Code", "")...)
	for file, prefix := range map[string]string{
		"../internal/controllers/job/lifecycle/phase.go": "Reason", "../internal/controllers/podgroup/reconciler.go": "Reason",
		"../internal/controllers/queue/reconciler.go": "Reason", "../pkg/apis/batch/v1alpha1/status.go": "PodGroupPendingReason",
		"../pkg/cluster/podreason.go": "Reason",
	} {
		known = append(known, constants(t, file, "", prefix)...)
	}
	for _, reason := range known {
		if len(explained[reason]) == 0 {
			t.Errorf("why-pending.md does not explain %s", reason)
		}
	}
	for reason := range explained {
		if !slices.Contains(known, reason) {
			t.Errorf("why-pending.md explains %s, which no code says", reason)
		}
	}
}

func TestEveryEventOfACronJobIsExplained(t *testing.T) {
	_, text, _ := strings.Cut(page(t, "cronjob.md"), "## Events")
	text, _, _ = strings.Cut(text, "\n## ")
	explained, known := rows(text), constants(t, "../internal/controllers/cronjob/reconciler.go", "", "Reason")
	for _, reason := range known {
		if len(explained[reason]) != 1 {
			t.Errorf("cronjob.md explains %s in %d rows", reason, len(explained[reason]))
		}
	}
	if len(explained) != len(known) {
		t.Errorf("cronjob.md explains %d reasons, and there are %d", len(explained), len(known))
	}
}

func TestEveryEventOfTheDiscoveryIsExplained(t *testing.T) {
	explained := rows(page(t, "network-topology.md"))
	for _, reason := range constants(t, "../internal/controllers/hypernode/discovery/reconciler.go", "", "Reason") {
		if len(explained[reason]) != 1 {
			t.Errorf("network-topology.md explains %s in %d rows", reason, len(explained[reason]))
		}
	}
}

func TestEveryPhaseAndReasonOfAFlowIsExplained(t *testing.T) {
	text := page(t, "jobflow.md")
	explained := rows(text)
	for _, word := range constants(t, "../pkg/apis/flow/v1alpha1/status.go", "", "") {
		isEventOnly := word == flowapi.CreatedReason || word == flowapi.FailedDeleteReason
		if len(explained[word]) == 0 && !isEventOnly || !strings.Contains(text, "`"+word+"`") {
			t.Errorf("jobflow.md does not explain %s", word)
		}
	}
}

func TestReasonsStandInTheirOrder(t *testing.T) {
	text, last := page(t, "why-pending.md"), 0
	for _, code := range constants(t, "../pkg/verdict/verdict.go", "Code", "") {
		at := strings.Index(text, "| `"+code+"` |")
		if at < last {
			t.Errorf("%s stands too early", code)
		}
		last = at
	}
}

func TestEveryActionPluginAndArgumentIsDescribed(t *testing.T) {
	text := page(t, "configuration.md")
	described, words := rows(text), strings.Fields(strings.NewReplacer("`", " ", ",", " ", "|", " ", ".\n", " ").Replace(text))
	catalogue := scheduler.NewRegistry().Catalogue()
	for noun, specs := range map[string]map[string]conf.Spec{"action": catalogue.Actions, "plugin": catalogue.Plugins} {
		for name, spec := range specs {
			isOurs := spec.NoEffect == "" && spec.Unsupported == "" && spec.AliasOf == ""
			if isOurs && len(described[name]) == 0 {
				t.Errorf("configuration.md does not describe the %s %s", noun, name)
			}
			if !slices.Contains(words, name) {
				t.Errorf("configuration.md does not name the %s %s", noun, name)
			}
			for _, argument := range spec.Arguments {
				if !slices.Contains(words, argument.Name) {
					t.Errorf("configuration.md does not name the argument %s of the %s %s", argument.Name, noun, name)
				}
				given := ""
				if argument.Default != nil {
					given = strings.TrimSpace(fmt.Sprint(argument.Default))
				}
				row := fmt.Sprintf("| `%s` | %s |", argument.Name, given)
				row = strings.Replace(row, "|  |", "| |", 1)
				if isOurs && argument.NoEffect == "" && argument.AliasOf == "" && !strings.Contains(text, row) {
					t.Errorf("configuration.md has no row with %q", row)
				}
			}
		}
	}
}

// saysIn tells by interface which plugins a switch concerns.
var saysIn = map[conf.Switch]func(framework.Plugin) bool{
	conf.EnableJobOrder:     implements[framework.JobOrderer],
	conf.EnableTaskOrder:    implements[framework.TaskOrderer],
	conf.EnableQueueOrder:   implements[framework.QueueOrderer],
	conf.EnableJobEnqueued:  implements[framework.JobEnqueuer],
	conf.EnabledOverused:    implements[framework.QueueOveruseChecker],
	conf.EnabledAllocatable: implements[framework.AllocationGuard],
	conf.EnableJobReady:     implements[framework.JobReadyChecker],
	conf.EnablePredicate: func(p framework.Plugin) bool {
		return implements[framework.NodeFilter](p) || implements[framework.NodeVetoer](p) || implements[framework.KubeFilterer](p)
	},
	conf.EnableNodeOrder: func(p framework.Plugin) bool {
		return implements[framework.NodeScorer](p) || implements[framework.KubeScorer](p)
	},
	conf.EnabledHyperNodeGradient: implements[framework.HyperNodeGrader],
	conf.EnabledHyperNodeOrder:    implements[framework.HyperNodeScorer],
}

func implements[T any](p framework.Plugin) bool {
	_, ok := p.(T)
	return ok
}

func TestSwitchesNameThePluginsTheyConcern(t *testing.T) {
	text := page(t, "configuration.md")
	described := rows(text)
	var factories []framework.PluginFactory
	scheduler.NewRegistry(func(_ *[]framework.ActionFactory, plugins *[]framework.PluginFactory) { factories = *plugins })
	for which, says := range saysIn {
		if len(described[which.String()]) != 1 {
			t.Errorf("configuration.md has %d rows for the switch %s", len(described[which.String()]), which)
			continue
		}
		row := described[which.String()][0]
		for _, factory := range factories {
			if factory.Spec.NoEffect != "" {
				continue
			}
			hasSay := false
			for _, on := range []conf.Switches{{}, conf.Switches{}.With(conf.EnableHierarchy, true)} {
				plugin, err := factory.New(on, factory.Spec.Defaults())
				if err != nil {
					t.Fatal(err)
				}
				hasSay = hasSay || says(plugin)
			}
			if isNamed := strings.Contains(row, "`"+factory.Name+"`"); isNamed != hasSay {
				t.Errorf("%s concerns the plugin %s: %t; the page says %t", which, factory.Name, hasSay, isNamed)
			}
		}
	}
	for _, name := range switches(t) {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("configuration.md does not name the switch %s", name)
		}
	}
}

// switches returns every switch there is, as the printed form of a configuration names them.
func switches(t *testing.T) []string {
	t.Helper()
	var names []string
	for s := conf.Switch(1); s.String() != conf.Switch(0).String(); s++ {
		names = append(names, s.String())
	}
	if len(names) < 20 {
		t.Fatalf("only %d switches; this test looks in the wrong place", len(names))
	}
	return names
}

func TestEveryWebhookIsDescribed(t *testing.T) {
	described := rows(page(t, "admission.md"))
	for _, path := range admission.Paths() {
		if len(described[path]) != 1 {
			t.Errorf("admission.md does not describe %s", path)
		}
	}
	for path := range described {
		if strings.HasPrefix(path, "/") && !slices.Contains(admission.Paths(), path) {
			t.Errorf("admission.md describes %s, which nobody serves", path)
		}
	}
}

func TestEveryFlagIsDescribed(t *testing.T) {
	text := page(t, "configuration.md")
	ofScheduler, ofControllers, isThere := strings.Cut(text, "## Flags of hekla-controllers")
	if !isThere {
		t.Fatal("configuration.md has no flags of hekla-controllers")
	}
	known := map[string]bool{}
	app.NewCommand().Flags().VisitAll(func(flag *pflag.Flag) {
		known[flag.Name] = true
		if !flag.Hidden && len(rows(ofScheduler)["--"+flag.Name]) != 1 {
			t.Errorf("configuration.md does not describe --%s of the scheduler", flag.Name)
		}
		if flag.Hidden && !strings.Contains(ofScheduler, "`--"+flag.Name+"`") {
			t.Errorf("configuration.md does not name --%s of the scheduler", flag.Name)
		}
	})
	for flag := range rows(ofScheduler) {
		if name, isFlag := strings.CutPrefix(flag, "--"); isFlag && !known[name] {
			t.Errorf("configuration.md describes --%s, which the scheduler does not have", name)
		}
	}
	// The commands of the controllers and of the webhook server also have flags of Volcano without effect, so the
	// source is read.
	for file, described := range map[string]string{"options.go": ofControllers, "admission.go": page(t, "admission.md")} {
		declared := regexp.MustCompile(`flags\.\w+\(&o\.\w+, "([a-z-]+)"`).FindAllStringSubmatch(page(t, "../cmd/controllers/app/"+file), -1)
		if len(declared) < 10 {
			t.Fatalf("%d flags found in %s; this test looks in the wrong place", len(declared), file)
		}
		for _, match := range declared {
			if len(rows(described)["--"+match[1]]) != 1 && !strings.Contains(described, ", `--"+match[1]+"` |") {
				t.Errorf("no page describes --%s of %s", match[1], file)
			}
		}
	}
}

// pages are all that a user reads.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(found, "../README.md", "../CONTRIBUTING.md", "../SECURITY.md", "../CHANGELOG.md")
}

func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)]+)\)`)
	for _, path := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(page(t, path), -1) {
			if strings.HasPrefix(match[1], "https://") {
				continue
			}
			target, _, _ := strings.Cut(match[1], "#")
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), target)); err != nil {
				t.Errorf("%s links to %s: %v", path, match[1], err)
			}
		}
	}
}

func TestFilesThatArePointedToExist(t *testing.T) {
	file := regexp.MustCompile(`(?:example|installer|docs)/[\w.-]+\.(?:yaml|md)`)
	for _, path := range pages(t) {
		for _, name := range file.FindAllString(page(t, path), -1) {
			if _, err := os.Stat(filepath.Join("..", name)); err != nil {
				t.Errorf("%s points to %s: %v", path, name, err)
			}
		}
	}
}

func TestConfigurationsOnThePagesCanBeUsed(t *testing.T) {
	block := regexp.MustCompile("(?s)```yaml\n(actions:.*?)```")
	found := 0
	for _, path := range pages(t) {
		for _, match := range block.FindAllStringSubmatch(page(t, path), -1) {
			found++
			configuration, err := conf.Parse([]byte(match[1]), scheduler.NewRegistry().Catalogue())
			if err != nil {
				t.Errorf("%s: %v", path, err)
			} else if len(configuration.Notices) > 0 {
				t.Errorf("%s: %v", path, configuration.Notices)
			}
		}
	}
	if found == 0 {
		t.Error("no page shows a configuration")
	}
}
