package conf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestWhatIsInForceIsPrintedInFull(t *testing.T) {
	c := parse(t, `{metrics: {address: here}, actions: "allocate,gangreclaim", tiers: [{plugins: [
  {name: sla, enableHierarchy: true, arguments: {sla-waiting-time: 90m}}, {arguments: {thresholds: {}}, name: usage}, {name: overcommit, arguments: {overcommit-factor: "2"}}]}]}`)
	var switches strings.Builder
	for s := Switch(1); s <= lastSwitch; s++ {
		fmt.Fprintf(&switches, "        %v: %v\n", s, s.Default())
	}
	want := `actions: "allocate, reclaim"
tiers:
  - plugins:
      - name: sla
` + strings.Replace(switches.String(), "enableHierarchy: false", "enableHierarchy: true", 1) + `        arguments:
          sla-waiting-time: "1h30m0s"
      - name: usage
` + switches.String() + `        arguments:
          thresholds: {}
          usage.weight: 5
      - name: overcommit
` + switches.String() + `        arguments:
          overcommit-factor: 2.0
configurations:
  - name: reclaim
    arguments:
      allowWholeGang: true
      maxDomains: 8
metrics:
  address: "here"
compatibility:
  preemptableByDefault: false
  queuePriority: strict
  victimVote: strict
`
	if diff := cmp.Diff(want, string(c.YAML())); diff != "" {
		t.Error(diff)
	}
}

func TestLogsDoNotShowThePassword(t *testing.T) {
	c := parse(t, metricsYAML)
	if text := c.String(); strings.Contains(text, "opensesame") || !strings.Contains(text, `password: "(not shown)"`) {
		t.Errorf("shows\n%s", text)
	}
	if !bytes.Contains(c.YAML(), []byte("opensesame")) || c.Metrics["elasticsearch.password"] != "opensesame" {
		t.Error("the password is lost")
	}
}

func TestEqualMeansTheSameInForce(t *testing.T) {
	c := parse(t, metricsYAML)
	if !c.Equal(parse(t, "# a comment\n"+metricsYAML)) {
		t.Error("a comment makes another configuration")
	}
	if !parse(t, helmYAML).Equal(parse(t, strings.Replace(helmYAML, "name: binpack", "name: binpack\n    enableJobOrder: true", 1))) {
		t.Error("a switch that is set to its default makes another configuration")
	}
	for _, change := range [][2]string{{"5\n", "6\n"}, {"enqueue, allocate", "allocate, enqueue"}, {"enablePredicate", "enableNodeOrder"},
		{"opensesame", "opensalami"}, {"70.5", "71"}, {"victimVote: upstream", "victimVote: strict"}} {
		changed := strings.Replace(metricsYAML, change[0], change[1], 1)
		if changed == metricsYAML {
			t.Fatalf("there is no %q", change[0])
		}
		if c.Equal(parse(t, changed)) {
			t.Errorf("%q instead of %q makes no difference", change[1], change[0])
		}
	}
	if c.Equal(nil) || !(*Configuration)(nil).Equal(nil) {
		t.Error("no configuration equals only no configuration")
	}
}

// comesBack holds invariant 4, field by field.
func comesBack(t interface {
	Helper()
	Fatalf(string, ...any)
}, c *Configuration) {
	t.Helper()
	printed := c.YAML()
	again, err := Parse(printed, volcano())
	if err != nil {
		t.Fatalf("what is printed is refused:\n%v\n%s", err, printed)
	}
	diff := cmp.Diff(*c, *again, cmpopts.IgnoreFields(Plugin{}, "Line"), cmpopts.IgnoreFields(Configuration{}, "Notices"),
		cmp.AllowUnexported(Switches{}, Arguments{}), cmpopts.IgnoreFields(Arguments{}, "schema"))
	if diff != "" {
		t.Fatalf("what is printed means something else:\n%s\n%s", diff, printed)
	}
	if len(ofMore(again.Notices)) > 0 {
		t.Fatalf("something is printed that is not in force: %v\n%s", again.Notices, printed)
	}
	if !bytes.Equal(printed, again.YAML()) {
		t.Fatalf("it prints differently the second time:\n%s\n%s", printed, again.YAML())
	}
}

// ofMore are the notices but those of plugins that do nothing until there is a metrics block, or are not asked.
func ofMore(notices []Notice) []Notice {
	return slices.DeleteFunc(slices.Clone(notices), func(n Notice) bool {
		return strings.HasSuffix(n.Text, nothingMeasured) || strings.HasSuffix(n.Text, notAsked)
	})
}

func TestWhatIsPrintedComesBackForKnownConfigurations(t *testing.T) {
	for name, text := range accepted {
		t.Run(name, func(t *testing.T) { comesBack(t, parse(t, text)) })
	}
}

func TestWhatIsPrintedComesBackForAnyConfiguration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyFile(t)
		c, err := Parse(text, volcano())
		if err != nil {
			t.Fatalf("refused:\n%v\n%s", err, text)
		}
		comesBack(t, c)
	})
}

// anyFile draws a file that is right: any actions, any plugins in any tiers, with any switches and arguments.
func anyFile(t *rapid.T) []byte {
	catalogue := volcano()
	file := map[string]any{}
	actions := rapid.Permutation([]string{"enqueue", "allocate", "backfill", "preempt", "gangreclaim", "shuffle"}).Draw(t, "actions")
	file["actions"] = strings.Join(actions[:rapid.IntRange(1, len(actions)).Draw(t, "number of actions")], ", ")
	var configurations, tiers []any
	for _, action := range []string{"preempt", "allocate"} {
		configurations = append(configurations, map[string]any{"name": action, "arguments": anyArguments(t, catalogue.Actions[action].Arguments)})
	}
	file["configurations"] = configurations
	var plugins []any
	for _, name := range rapid.Permutation([]string{"gang", "drf", "capacity", "overcommit", "sla", "predicates", "nodeorder",
		"binpack", "usage", "resource-strategy-fit", "network-topology-aware", "extender", "rescheduling", "nodegroup"}).Draw(t, "plugins") {
		plugin := map[string]any{"name": name, "arguments": anyArguments(t, catalogue.Plugins[name].Arguments)}
		for s := Switch(1); s <= lastSwitch; s++ {
			if rapid.Bool().Draw(t, "mention") {
				plugin[s.String()] = rapid.Bool().Draw(t, "on")
			}
		}
		plugins = append(plugins, plugin)
		if rapid.Bool().Draw(t, "next tier") {
			tiers, plugins = append(tiers, map[string]any{"plugins": plugins}), nil
		}
	}
	file["tiers"] = append([]any{}, tiers...)
	file["metrics"] = map[string]any{"address": "http://" + rapid.String().Draw(t, "address"), "tls.insecureSkipVerify": rapid.Bool().Draw(t, "verify")}
	file["compatibility"] = map[string]any{"preemptableByDefault": rapid.Bool().Draw(t, "preemptable"),
		"queuePriority": rapid.SampledFrom([]string{"strict", "order"}).Draw(t, "queuePriority")}
	return asYAML(t, file)
}

// asYAML writes JSON, which is YAML once all but ASCII is escaped. The YAML library does not read all that it writes.
func asYAML(t *rapid.T, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var escaped []byte
	for _, character := range string(text) {
		if character < 0x7f {
			escaped = append(escaped, byte(character))
		} else {
			escaped = fmt.Appendf(escaped, "\\U%08x", character)
		}
	}
	return escaped
}

func anyArguments(t *rapid.T, schema []Argument) map[string]any {
	arguments := map[string]any{}
	for _, argument := range schema {
		if argument.AliasOf != "" || argument.Unsupported != "" || rapid.Bool().Draw(t, "leave out") {
			continue
		}
		name := argument.Name
		if prefix, suffix, isFamily := argument.family(); isFamily {
			name = prefix + rapid.StringN(1, 20, -1).Draw(t, "member") + suffix
		}
		arguments[name] = anyValue(t, argument)
	}
	return arguments
}

func anyValue(t *rapid.T, argument Argument) any {
	switch argument.Kind {
	case Bool:
		return rapid.Bool().Draw(t, "bool")
	case Int:
		return rapid.IntMin(0).Draw(t, "int")
	case Float:
		return rapid.Float64Range(1, 1e300).Draw(t, "float")
	case Duration:
		return rapid.SampledFrom([]string{"1h", "-5ms", "0", "1.5h3ns"}).Draw(t, "duration")
	case StringMap:
		return rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "map")
	case Any:
		return rapid.MapOf(rapid.String(), rapid.OneOf(rapid.Int().AsAny(), rapid.Float64().AsAny(), rapid.String().AsAny(),
			rapid.SliceOf(rapid.Bool()).AsAny(), rapid.MapOf(rapid.String(), rapid.SliceOf(rapid.String())).AsAny(),
			rapid.Just[any](nil))).Draw(t, "any")
	}
	return rapid.String().Draw(t, "text")
}

// FuzzParse holds that no file brings the parser down, that a refusal says where, and that what is accepted can be
// printed and read again.
func FuzzParse(f *testing.F) {
	for _, text := range accepted {
		f.Add([]byte(text))
	}
	for _, text := range []string{"", "- a", "actions: a: b", "actions: allocate\n---\n", "&a [*a]", "? [a]\n: b", "\xff\xfea\x00", "actions: !!binary x\ntiers: []",
		"actions: allocate\ntiers: [{plugins: [{name: rescheduling, arguments: {strategies: {\"\\0\": -0.0, ? \"\\u2028\" : [~, .5, \"\\x85 \"]}}}]}]"} {
		f.Add([]byte(text))
	}
	catalogue := volcano()
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text, catalogue)
		if err == nil {
			comesBack(t, c)
			return
		}
		problems, ok := err.(Problems)
		if !ok || len(problems) == 0 {
			t.Fatalf("refused without a problem: %v", err)
		}
		lines := 1 + len(regexp.MustCompile("[\n\r\u0085\u2028\u2029]").FindAll(text, -1))
		for _, problem := range problems {
			if problem.Line < 0 || problem.Line > lines {
				t.Fatalf("there is no line %d: %v", problem.Line, problem)
			}
		}
	})
}
