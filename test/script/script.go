package script

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// Script is a file.
type Script struct {
	// About is the text at its top.
	About         string
	Source, Rules string
	Args          []string
	Fates         map[string]Fate // by pod, "NAMESPACE/NAME"
	Steps         []Step

	lines []string
}

// Fate is what becomes of the evictions of a pod.
type Fate struct {
	Refused, Overdue string
	Late             bool
}

// Step is some cycles, and what happens before them.
type Step struct {
	Objects []Object
	Deletes []string // "Pod work/a"
	Cycles  int
	Rest    bool     // until two cycles in a row decide nothing
	Decided []string // what is expected, without the >

	line, end int // of the command, and behind the last line of Decided
}

// Object is one of a cluster.
type Object interface {
	runtime.Object
	metav1.Object
}

// Start is when the first cycle of every script begins.
var Start = time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)

// Parse reads a script.
func Parse(text string) (*Script, error) {
	p := &parser{script: &Script{Fates: map[string]Fate{}}, configuration: &configuration{}, born: Start.Add(-time.Hour)}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.number++
		p.script.lines = append(p.script.lines, lines.Text())
		if err := p.read(lines.Text()); err != nil {
			return nil, fmt.Errorf("line %d: %w", p.number, err)
		}
	}
	if err := p.endObject(); err != nil {
		return nil, fmt.Errorf("line %d: %w", p.number, err)
	}
	if len(p.step.Objects) > 0 || len(p.step.Deletes) > 0 {
		return nil, fmt.Errorf("line %d: nothing runs after the last objects: add a cycle, or rest", p.number)
	}
	s := p.script
	switch {
	case s.Source == "" || s.Rules == "":
		return nil, fmt.Errorf("source and rules must be given")
	case len(s.Steps) == 0:
		return nil, fmt.Errorf("it runs no cycle")
	}
	s.Steps[0].Objects = append(s.Steps[0].Objects, p.configuration.object())
	return s, lines.Err()
}

// Manifests are the objects that the first cycle finds, as YAML.
func (s *Script) Manifests() (string, error) {
	var documents []string
	for _, o := range s.Steps[0].Objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return "", err
		}
		documents = append(documents, string(text))
	}
	return strings.Join(documents, "---\n"), nil
}

// Rewrite is the text of the script with other decisions, those of each step.
func (s *Script) Rewrite(decided [][]string) string {
	var out []string
	from := 0
	for i := range s.Steps {
		out = append(out, s.lines[from:s.Steps[i].line]...)
		for _, line := range decided[i] {
			out = append(out, strings.TrimRight("> "+line, " "))
		}
		from = s.Steps[i].end
	}
	return strings.Join(append(out, s.lines[from:]...), "\n") + "\n"
}

// parser reads one line after the other.
type parser struct {
	script        *Script
	step          Step // that is being read
	configuration *configuration
	number        int
	born          time.Time

	gang *gang    // whose pods may follow
	raw  []string // lines of a manifest
	isIn bool     // a manifest
}

func (p *parser) read(line string) error {
	text := strings.TrimSpace(line)
	isIndented := line != "" && (line[0] == ' ' || line[0] == '\t')
	if p.isIn && (isIndented || text == "") {
		p.raw = append(p.raw, line)
		return nil
	}
	switch {
	case text == "":
		return nil
	case strings.HasPrefix(text, "#"):
		if p.script.Source == "" {
			p.script.About += strings.TrimSpace(text[1:]) + "\n"
		}
		return nil
	case strings.HasPrefix(text, ">"):
		return p.decided(strings.TrimSpace(text[1:]))
	case isIndented && p.gang != nil:
		return p.member(text)
	case isIndented:
		return fmt.Errorf("%q is indented, and no gang stands before it", text)
	}
	if err := p.endObject(); err != nil {
		return err
	}
	if key, value, ok := strings.Cut(text, ": "); ok && !strings.Contains(key, " ") {
		return p.setting(key, strings.TrimSpace(value))
	}
	words := strings.Fields(text)
	return p.command(words[0], words[1:])
}

func (p *parser) decided(text string) error {
	if len(p.script.Steps) == 0 || len(p.step.Objects) > 0 || len(p.step.Deletes) > 0 {
		return fmt.Errorf("a decision stands under cycle or rest")
	}
	last := &p.script.Steps[len(p.script.Steps)-1]
	last.Decided = append(last.Decided, text)
	last.end = p.number
	return nil
}

func (p *parser) setting(key, value string) error {
	s := p.script
	switch key {
	case "source":
		s.Source = value
	case "rules":
		s.Rules = value
	case "args":
		s.Args = strings.Fields(value)
	case "actions":
		p.configuration.actions = value
	case "plugins":
		p.configuration.plugins = value
	case "configuration":
		p.configuration.further = append(p.configuration.further, value)
	default:
		return fmt.Errorf("there is no setting %q", key)
	}
	return nil
}

func (p *parser) command(name string, words []string) error {
	switch name {
	case "cycle", "rest":
		return p.run(name, words)
	case "delete":
		if len(words) != 2 {
			return fmt.Errorf("delete takes a kind and a name")
		}
		p.step.Deletes = append(p.step.Deletes, words[0]+" "+words[1])
		return nil
	case "fate":
		return p.fate(words)
	case "yaml":
		p.isIn = true
		return nil
	}
	read, ok := objects[name]
	if !ok {
		return fmt.Errorf("there is no command %q", name)
	}
	if len(words) == 0 {
		return fmt.Errorf("%s has no name", name)
	}
	return read(p, words)
}

func (p *parser) run(name string, words []string) error {
	if n := len(p.script.Steps); n > 0 && p.script.Steps[n-1].Rest {
		return fmt.Errorf("nothing follows rest")
	}
	step := p.step
	step.line, step.end, step.Rest, step.Cycles = p.number, p.number, name == "rest", 1
	if len(words) > 0 {
		n, err := strconv.Atoi(words[0])
		if err != nil || n < 1 || len(words) > 1 || step.Rest {
			return fmt.Errorf("%q is no number of cycles", strings.Join(words, " "))
		}
		step.Cycles = n
	}
	p.script.Steps = append(p.script.Steps, step)
	p.step = Step{}
	ran := 0
	for _, s := range p.script.Steps {
		ran += s.Cycles
	}
	p.born = Start.Add(time.Duration(ran-1) * time.Second)
	return nil
}

func (p *parser) fate(words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("fate names no pod")
	}
	said, reason, _ := strings.Cut(strings.Join(words, " ")+" ", " refused=")
	f := Fate{Refused: strings.TrimSpace(reason)}
	for _, word := range strings.Fields(said)[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "late":
			f.Late = true
		case "overdue":
			f.Overdue = value
		default:
			return fmt.Errorf("a fate is not %q", word)
		}
	}
	p.script.Fates[words[0]] = f
	return nil
}

// add takes up an object.
func (p *parser) add(o Object, kind string) {
	if at := o.GetCreationTimestamp(); at.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(p.born))
	}
	o.SetUID(types.UID(strings.ToLower(kind) + "-" + o.GetName()))
	if pod, ok := o.(*corev1.Pod); ok && pod.Status.Phase == corev1.PodRunning {
		pod.Status.StartTime = new(pod.CreationTimestamp)
	}
	if len(p.script.Steps) == 0 {
		p.born = p.born.Add(time.Second) // the next is younger
	}
	p.step.Objects = append(p.step.Objects, o)
}

// endObject ends what may go on over several lines.
func (p *parser) endObject() error {
	p.gang = nil
	if !p.isIn {
		return nil
	}
	p.isIn = false
	o, err := manifest(strings.Join(p.raw, "\n"))
	p.raw = nil
	if err != nil {
		return err
	}
	p.add(o, o.GetObjectKind().GroupVersionKind().Kind)
	return nil
}
