package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/cli"
)

// blocks returns what stands on a page between lines ```kind and ```.
func blocks(t *testing.T, path, kind string) []string {
	t.Helper()
	var found []string
	var current *strings.Builder
	for line := range strings.Lines(page(t, path)) {
		fence, isFence := strings.CutPrefix(strings.TrimRight(line, "\n"), "```")
		switch {
		case isFence && current != nil:
			found, current = append(found, current.String()), nil
		case isFence && fence == kind:
			current = new(strings.Builder)
		case isFence:
			current = new(strings.Builder)
			current.WriteString(otherKind)
		case current != nil:
			current.WriteString(line)
		}
	}
	found = slices.DeleteFunc(found, func(block string) bool { return strings.HasPrefix(block, otherKind) })
	if len(found) == 0 {
		t.Fatalf("%s has no block of %q", path, kind)
	}
	return found
}

// otherKind marks blocks that were not asked for.
const otherKind = "\x00"

// run runs a command in the root of the module.
func run(t *testing.T, name string, arguments ...string) (output string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = ".."
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	text, err := command.CombinedOutput()
	return string(text), err
}

// build builds a program and returns its path.
func build(t *testing.T, source string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if output, err := run(t, "go", "build", "-o", program, source); err != nil {
		t.Fatalf("build %s: %v\n%s", source, err, output)
	}
	return program
}

// A program with a plugin is built in a module of its own, by the commands of the page.
func TestThePluginsOnTheirPageWorkInAModuleOfTheirOwn(t *testing.T) {
	checkout, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	programs := blocks(t, "adding-a-plugin.md", "go")
	for name, test := range map[string]struct {
		program             string
		configuration, want string
	}{
		"newest": {programs[0], blocks(t, "adding-a-plugin.md", "text")[0], "name: newest"},
		"zones":  {programs[1], "actions: allocate\ntiers:\n- plugins:\n  - name: zones\n    arguments: {zones.points: 7}\n", "zones.points: 7"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range map[string]string{"main.go": test.program, "scheduler.conf": test.configuration} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, command := range [][]string{
				{"bash", "-euc", blocks(t, "adding-a-plugin.md", "sh")[0]},
				{"./my-scheduler", "--print-config", "--scheduler-conf=scheduler.conf"},
			} {
				c := exec.CommandContext(t.Context(), command[0], command[1:]...)
				c.Dir, c.Env = dir, append(os.Environ(), "HEKLA="+checkout, "GOFLAGS=")
				output, err := c.CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %v\n%s", command, err, output)
				}
				if command[0] != "bash" && !strings.Contains(string(output), test.want) {
					t.Errorf("it prints\n%s\nwithout %q", output, test.want)
				}
			}
		})
	}
}

// The pages quote what simulate says of the first example.
func TestTheSimulationOnThePagesSaysWhatItSays(t *testing.T) {
	program, output := build(t, "./cmd/hekla"), ""
	// Of the others the input is the reader's own.
	for sh, quoted := range map[int]int{3: 2, 0: 0} {
		commands := strings.Fields(blocks(t, "simulate.md", "sh")[sh])
		if commands[0] != "bin/hekla" {
			t.Fatalf("command %d on the page is %q", sh, commands[0])
		}
		said, err := run(t, program, commands[1:]...)
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		if want := blocks(t, "simulate.md", "")[quoted]; strings.TrimSpace(said) != strings.TrimSpace(want) {
			t.Errorf("it says\n%s\nthe page quotes\n%s", said, want)
		}
		if sh == 0 {
			output = said
		}
	}
	_, sentence, _ := strings.Cut(strings.TrimSpace(output), "waits: ")
	if !strings.Contains(page(t, "why-pending.md"), sentence) {
		t.Errorf("why-pending.md does not quote %q", sentence)
	}
	_, numbers, _ := strings.Cut(sentence, ": ")
	readme := strings.Join(strings.Fields(page(t, "../README.md")), " ")
	if !strings.Contains(readme, numbers) {
		t.Errorf("the README does not quote %q", numbers)
	}
}

// The page quotes what is said of this file.
func TestTheMistakesOnTheConfigurationPageAreToldSo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scheduler.conf")
	wrong := `actions: "enqueue, alocate, backfill"
tiers:
- plugins:
  - name: gang
    enableJobOrdr: true
  - name: binpack
    arguments:
      binpack.weight: many
`
	if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := run(t, build(t, "./cmd/scheduler"), "--print-config", "--scheduler-conf="+file)
	if err == nil {
		t.Fatal("the mistakes are accepted")
	}
	if want := blocks(t, "configuration.md", "")[0]; !strings.HasSuffix(strings.TrimSpace(output), strings.TrimSpace(want)) {
		t.Errorf("it says\n%s\nthe page quotes\n%s", output, want)
	}
}

// As make build leaves them in bin/: every other name that the page tells of is a link that works.
func TestTheExecutableIsThereUnderItsOtherNames(t *testing.T) {
	bin := t.TempDir()
	if output, err := run(t, "go", "build", "-o", filepath.Join(bin, "hekla"), "./cmd/hekla"); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if output, err := run(t, "make", "links", "BIN="+bin); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if makefile := page(t, "../Makefile"); !strings.Contains(makefile, "\nbuild: links ") {
		t.Error("make build does not make the links")
	}
	text := page(t, "cli.md")
	_, list, _ := strings.Cut(text, "for name in ")
	list, _, _ = strings.Cut(list, ";")
	names := append(slices.Clone(cli.Names), "kubectl-hekla", "kubectl_complete-hekla")
	if told := strings.Fields(list); !slices.Equal(told, names) {
		t.Errorf("cli.md links %v, want %v", told, names)
	}
	if entries, err := os.ReadDir(bin); err != nil || len(entries) != len(names)+1 {
		t.Errorf("there are %d files (%v), want hekla and %d links", len(entries), err, len(names))
	}
	for _, name := range names {
		path := filepath.Join(bin, name)
		if target, err := os.Readlink(path); err != nil || target != "hekla" {
			t.Errorf("%s leads to %q (%v)", name, target, err)
		}
		arguments, want := []string{"--help"}, name
		switch name {
		case "kubectl-hekla":
			want = "kubectl hekla"
		case "kubectl_complete-hekla":
			arguments, want = []string{"job", "ru"}, "run\t"
		}
		if output, err := run(t, path, arguments...); err != nil || !strings.Contains(output, want) {
			t.Errorf("%s %v: %v, and no %q in\n%s", name, arguments, err, want, output)
		}
	}
}

// The first screen shows what test/why compares with a real cluster.
func TestTheReadmeShowsWhatThePagesShow(t *testing.T) {
	shown := ""
	for _, path := range []string{"why/why-is-it-pending.md", "why/what-would-help.md"} {
		shown += strings.Join(blocks(t, path, "text"), "")
	}
	for line := range strings.Lines(blocks(t, "../README.md", "text")[0]) {
		if !strings.HasPrefix(line, "$ ") && line != "GangShort\n" && !strings.Contains(shown, line) {
			t.Errorf("the README shows %q, and no page does", line)
		}
	}
}
