package conf

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVolcanosConfigurationsLoadAsTheyAre(t *testing.T) {
	for name, text := range accepted {
		t.Run(name, func(t *testing.T) { parse(t, text) })
	}
}

func TestTheDefaultIsVolcanosAndAdmitsWorkloads(t *testing.T) {
	c := Default(volcano())
	if want := []string{"enqueue", "admit", "allocate", "backfill"}; !slices.Equal(c.Actions, want) {
		t.Errorf("actions are %v, want %v", c.Actions, want)
	}
	var tiers [][]string
	for _, tier := range c.Tiers {
		var names []string
		for _, plugin := range tier.Plugins {
			names = append(names, plugin.Name)
			if !plugin.Switches.On(EnablePreemptable) || plugin.Switches.On(EnableHierarchy) || plugin.Switches.On(EnabledClusterOrder) {
				t.Errorf("the switches of %s are not Volcano's defaults", plugin.Name)
			}
		}
		tiers = append(tiers, names)
	}
	want := [][]string{{"priority", "gang", "conformance"}, {"overcommit", "resourcequota", "drf", "predicates", "proportion", "nodeorder", "binpack", "cohorts"}}
	if diff := cmp.Diff(want, tiers); diff != "" {
		t.Error(diff)
	}
	if factor := plugin(t, c, "overcommit").Arguments.Float("overcommit-factor"); factor != 1.2 {
		t.Errorf("overcommit-factor is %v, want its default", factor)
	}
	if want := (Compatibility{QueuePriority: QueuePriorityStrict, VictimVote: VictimVoteStrict}); c.Compatibility != want {
		t.Errorf("compatibility is %+v, want the rules: %+v", c.Compatibility, want)
	}
}

func TestADefaultThatDoesNotFitTheCatalogueIsADefectOfTheProgram(t *testing.T) {
	catalogue := volcano()
	delete(catalogue.Plugins, "gang")
	defer func() {
		if message, _ := recover().(string); !strings.Contains(message, `there is no plugin "gang"`) {
			t.Errorf("panics with %q", message)
		}
	}()
	Default(catalogue)
}

func TestEveryPartOfAFileIsRead(t *testing.T) {
	c := parse(t, metricsYAML)
	if gang := plugin(t, c, "gang"); gang.Line != 4 || gang.Switches.On(EnablePreemptable) || !gang.Switches.On(EnableReclaimable) {
		t.Errorf("gang is %+v", gang)
	}
	want := map[string]string{"type": "elasticsearch", "address": "http://prometheus:9090", "interval": "30s",
		"tls.insecureSkipVerify": "false", "elasticsearch.username": "reader", "elasticsearch.password": "opensesame"}
	if diff := cmp.Diff(want, c.Metrics); diff != "" {
		t.Errorf("metrics:\n%s", diff)
	}
	if want := (Compatibility{true, QueuePriorityOrder, VictimVoteUpstream}); c.Compatibility != want {
		t.Errorf("compatibility is %+v, want %+v", c.Compatibility, want)
	}
}

func TestAnAliasIsItsAction(t *testing.T) {
	c := parse(t, gangEvictionYAML)
	if want := []string{"allocate", "backfill", "reclaim", "preempt"}; !slices.Equal(c.Actions, want) {
		t.Errorf("actions are %v, want %v", c.Actions, want)
	}
	preempt := c.ActionArguments["preempt"]
	if preempt.Int("maxDomains") != 4 || preempt.Bool("allowWholeGang") {
		t.Errorf("what is written for gangpreempt is not what preempt gets: %v", preempt.values)
	}
	if reclaim := c.ActionArguments["reclaim"]; reclaim.Int("maxDomains") != 8 || !reclaim.Bool("allowWholeGang") {
		t.Errorf("reclaim does not have its defaults: %v", reclaim.values)
	}
}

func TestWhatHasNoEffectLeavesANotice(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"an argument that Hekla has no use for": {ciYAML,
			"line 15: plugin predicates: argument predicate.DynamicResourceAllocationEnable has no effect: it is on with the cluster's feature gate"},
		"the configuration of an action that does not run": {"actions: allocate\ntiers: []\nconfigurations:\n- name: preempt\n",
			"line 4: action preempt is configured, but actions does not name it"},
		"a configuration of what is no action": {"actions: allocate\ntiers: []\nconfigurations:\n- name: init-params\n  arguments: {vnpu: true}\n",
			`line 4: configurations: "init-params" has no effect: there is no such action`},
		"metrics that nobody reads": {"actions: allocate\ntiers: []\nmetrics:\n  type: prometheus\n",
			"line 3: metrics has no effect: no plugin of the tiers reads it"},
		"a plugin that looks at what nobody measures": {"actions: allocate\ntiers:\n- plugins:\n  - name: usage\n",
			"line 4: plugin usage has no effect: how busy nodes are is not measured, since there is no metrics block to say by whom"},
		"a plugin twice in a tier": {"actions: allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: gang\n    enableJobOrder: false\n",
			"line 5: plugin gang is passed over: it stands on line 4 already, and a plugin stands in one place"},
		"a plugin in two tiers": {"actions: allocate\ntiers:\n- plugins:\n  - name: gang\n- plugins:\n  - name: gang\n",
			"line 6: plugin gang is passed over: it stands on line 4 already, and a plugin stands in one place"},
		"protection that is not asked for": {"actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    enablePreemptable: false\n- plugins:\n  - name: pdb\n",
			"line 7: plugin pdb does not protect pods with budgets: plugins of an earlier tier decide enableReclaimable (gang), " +
				"so it is not asked; put it into the first tier"},
		"or of which nothing is said": {"actions: allocate\ntiers:\n- plugins:\n  - name: rescheduling\nmetrics: {}\n",
			"line 4: plugin rescheduling has no effect: how busy nodes are is not measured, since there is no metrics block to say by whom"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := parse(t, test.text)
			if len(c.Notices) != 1 || c.Notices[0].String() != test.want {
				t.Errorf("notices are %v\nwant %s", c.Notices, test.want)
			}
			if reparsed := parse(t, string(c.YAML())); len(ofMore(reparsed.Notices)) > 0 || !reparsed.Equal(c) {
				t.Errorf("what is printed is not only what is in force: %v", reparsed.Notices)
			}
		})
	}
}

// inTier is a configuration of one plugin, whose name stands on line 4.
func inTier(plugin string) string {
	return "actions: allocate\ntiers:\n- plugins:\n  - " + plugin + "\n"
}

func TestWhatIsNotUnderstoodIsRefusedWithItsLine(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"an empty file":            {"# nothing\n", "the configuration is empty; expected at least actions and tiers"},
		"no mapping":               {"- a\n", "line 1: the configuration is a list: expected a mapping"},
		"no YAML":                  {"actions: a: b\n", "line 1: not valid YAML: mapping values are not allowed in this context"},
		"two documents":            {"actions: allocate\ntiers: []\n---\nactions: allocate\n", "line 3: a second YAML document begins; expected one"},
		"an unknown top-level key": {"actions: allocate\ntiers: []\ntires: 7\n", `line 3: the key "tires" (7) is not known; did you mean "tiers"?`},
		"a key like no other": {"actions: allocate\ntiers: []\napiVersion: v1\n",
			`line 3: the key "apiVersion" ("v1") is not known; known are actions, compatibility, configurations, metrics, tiers`},
		"a key that stands twice": {"actions: allocate\ntiers: []\nactions: enqueue\n", `line 3: the key "actions" stands here and on line 1; keep the one you mean`},
		"a reference":             {"actions: &a allocate\ntiers: *a\n", "line 2: *a refers to a value elsewhere in the file; write the value out"},
		"a merge":                 {"actions: allocate\ntiers: []\n<<: {}\n", "line 3: << merges another mapping into this one; write its keys out"},
		"a tag":                   {"actions: !!binary abc\ntiers: []\n", "line 1: the tag !!binary has no meaning here; leave it out"},
		"a key that is a list":    {"actions: allocate\ntiers: []\n? [a]\n: b\n", "line 3: a list cannot be a key"},

		"no actions":             {"tiers: []\n", `actions: missing; expected a text such as "enqueue, allocate, backfill"`},
		"empty actions":          {"actions: \" , \"\ntiers: []\n", `line 1: actions is " , ": expected at least one action, such as "enqueue, allocate, backfill"`},
		"actions as a list":      {"actions: [allocate]\ntiers: []\n", `line 1: actions is a list: expected one text, such as "enqueue, allocate, backfill"`},
		"an unknown action":      {"actions: enqueue, prempt\ntiers: []\n", `line 1: actions: there is no action "prempt"; did you mean "preempt"?`},
		"an action in camelCase": {"actions: gangPreempt\ntiers: []\n", `line 1: actions: there is no action "gangPreempt"; did you mean "gangpreempt"?`},
		"an action twice":        {"actions: allocate, allocate\ntiers: []\n", `line 1: actions: "allocate" is named twice; an action runs once in a cycle`},
		"an action and its alias": {"actions: preempt, gangpreempt\ntiers: []\n",
			`line 1: actions: "preempt" and "gangpreempt" are the same action; keep one of them`},

		"no tiers":            {"actions: allocate\n", "tiers: missing; expected a list of tiers, each with its plugins"},
		"tiers left empty":    {"actions: allocate\ntiers:\n", "line 2: tiers is empty: expected a list"},
		"tiers as a mapping":  {"actions: allocate\ntiers: {plugins: []}\n", "line 2: tiers is a mapping: expected a list"},
		"an empty tier":       {"actions: allocate\ntiers:\n-\n", "line 3: tiers: a tier is empty; leave it out"},
		"a tier of none":      {"actions: allocate\ntiers:\n- plugins:\n", "line 3: tiers: a tier has no plugins; leave it out"},
		"a key in a tier":     {"actions: allocate\ntiers:\n- plugin: []\n", `line 3: tiers: the key "plugin" (a list) is not known; did you mean "plugins"?`},
		"a plugin as a text":  {inTier("gang"), `line 4: tiers: an element of plugins is "gang": expected a mapping with a name`},
		"a nameless plugin":   {inTier("enableJobOrder: true"), "line 4: tiers: an element of plugins has no name"},
		"an empty name":       {inTier("name:"), "line 4: tiers: name is empty: expected a text"},
		"an unknown plugin":   {inTier("name: predicate"), `line 4: tiers: there is no plugin "predicate"; did you mean "predicates"?`},
		"a plugin of Volcano": {inTier("name: tdm"), `line 4: tiers: Volcano's plugin "tdm" is not in Hekla: nodes with a timetable are not built yet; use a queue with a capability`},
		"hierarchical drf with proportion": {inTier("name: drf\n    enableHierarchy: true\n  - name: proportion"),
			"line 4: plugin drf: it cannot be used with enableHierarchy: true together with the plugin proportion, on line 6 in tier 1: both would decide what a queue deserves"},
		"hierarchical drf and proportion in two tiers": {inTier("name: proportion\n- plugins:\n  - name: drf\n    enableHierarchy: true"),
			"line 6: plugin drf: it cannot be used with enableHierarchy: true together with the plugin proportion, on line 4 in tier 1: both would decide what a queue deserves"},

		"an unknown switch": {inTier("name: gang\n    enabledPreemptable: false"),
			`line 5: plugin gang: the key "enabledPreemptable" (false) is not known; did you mean "enablePreemptable"?`},
		"a switch of another type": {inTier("name: gang\n    enableJobOrder: 1"), "line 5: plugin gang: enableJobOrder is 1: expected true or false"},
		"a switch without a value": {inTier("name: gang\n    enableJobOrder:"), "line 5: plugin gang: enableJobOrder is empty: expected true or false"},
		"a switch in two spellings": {inTier("name: gang\n    enabledClusterOrder: true\n    EnabledClusterOrder: false"),
			"line 6: plugin gang: EnabledClusterOrder is set here and, by its other spelling, on line 5"},
		"a switch among the arguments": {inTier("name: gang\n    arguments:\n      enablePreemptable: false"),
			"line 6: plugin gang: enablePreemptable is a switch; write it at the level of name, not under arguments"},
		"an argument among the switches": {inTier("name: binpack\n    binpack.weight: 5"),
			"line 5: plugin binpack: binpack.weight is an argument; write it under arguments"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { refused(t, test.text, test.want) })
	}
}

func TestWrongArgumentsAreRefusedWithTheirLine(t *testing.T) {
	tests := map[string]string{ // elements of plugins that begin on line 4
		"name: binpack\n    arguments: 5":                                    "line 5: plugin binpack: arguments is 5: expected a mapping",
		"name: gang\n    arguments: {key: value}":                            `line 5: plugin gang: there is no argument "key" ("value"); it takes none`,
		"name: overcommit\n    arguments: {overcommit-facter: 2}":            `line 5: plugin overcommit: there is no argument "overcommit-facter" (2); did you mean "overcommit-factor"?`,
		"name: overcommit\n    arguments: {overcommit-factor: abc}":          `line 5: plugin overcommit: argument overcommit-factor is "abc": expected a number`,
		"name: overcommit\n    arguments: {overcommit-factor: .inf}":         `line 5: plugin overcommit: argument overcommit-factor is .inf: expected a number`,
		"name: overcommit\n    arguments: {overcommit-factor: \"NaN\"}":      `line 5: plugin overcommit: argument overcommit-factor is "NaN": expected a number`,
		"name: overcommit\n    arguments: {overcommit-factor: 0.5}":          `line 5: plugin overcommit: argument overcommit-factor is 0.5: it must be large enough`,
		"name: overcommit\n    arguments: {overcommit-factor: }":             `line 5: plugin overcommit: argument overcommit-factor is empty: expected a number`,
		"name: binpack\n    arguments: {binpack.cpu: 1.5}":                   `line 5: plugin binpack: argument binpack.cpu is 1.5: expected a whole number`,
		"name: binpack\n    arguments: {binpack.cpu: 9223372036854775808}":   `line 5: plugin binpack: argument binpack.cpu is 9223372036854775808: expected a whole number`,
		"name: binpack\n    arguments: {binpack.resources.gpu: -1}":          `line 5: plugin binpack: argument binpack.resources.gpu is -1: it must be large enough`,
		"name: binpack\n    arguments: {binpack.resources: [gpu]}":           `line 5: plugin binpack: argument binpack.resources is a list: expected a text`,
		"name: sla\n    arguments: {sla-waiting-time: 30}":                   `line 5: plugin sla: argument sla-waiting-time is 30: expected a duration with a unit, such as 30s or 1h`,
		"name: usage\n    arguments: {thresholds: 80}":                       `line 5: plugin usage: argument thresholds is 80: expected a mapping of names to texts`,
		"name: usage\n    arguments: {thresholds: {cpu: {a: b}}}":            `line 5: plugin usage: argument thresholds is a mapping: expected a mapping of names to texts, but "cpu" on line 5 is a mapping`,
		"name: overcommit\n    arguments: {overcommit-factor: true}":         `line 5: plugin overcommit: argument overcommit-factor is true: expected a number`,
		"name: rescheduling\n    arguments: {strategies: }":                  `line 5: plugin rescheduling: argument strategies is empty: expected a value`,
		"name: nodegroup\n    arguments: {strict: maybe}":                    `line 5: plugin nodegroup: argument strict is "maybe": expected true or false`,
		"name: rescheduling\n    arguments: {strategies: [{a: .nan}]}":       `line 5: plugin rescheduling: argument strategies is a list: .nan on line 5: expected a number`,
		"name: rescheduling\n    arguments:\n      strategies: {a: 1, a: 2}": `line 6: the key "a" stands here and on line 6; keep the one you mean`,
		"name: extender\n    arguments: {extender.Verb: a}":                  `line 5: plugin extender: there is no argument "extender.Verb" ("a"); did you mean "extender.<call>Verb"?`,
	}
	for text, want := range tests {
		t.Run(strings.ReplaceAll(text, "\n", " "), func(t *testing.T) { refused(t, inTier(text), want) })
	}
}

func TestWrongBlocksAreRefusedWithTheirLine(t *testing.T) {
	tests := map[string]string{ // blocks that begin on line 3
		"configurations: 5":                                                                             "line 3: configurations is 5: expected a list",
		"configurations:\n- arguments: {}":                                                              "line 4: configurations: an element has no name",
		"configurations:\n- name: allocat":                                                              `line 4: configurations: there is no action "allocat"; did you mean "allocate"?`,
		"configurations:\n- name: allocate\n  argument: {}":                                             `line 5: action allocate: the key "argument" (a mapping) is not known; did you mean "arguments"?`,
		"configurations:\n- name: allocate\n- name: allocate":                                           `line 5: configurations: the action "allocate" is configured here and on line 4; put all its arguments in one place`,
		"configurations:\n- name: preempt\n- name: gangpreempt":                                         `line 5: configurations: the action "preempt" is configured here and on line 4; put all its arguments in one place`,
		"configurations:\n- {name: enqueue, arguments: {a: 1}}":                                         `line 4: action enqueue: there is no argument "a" (1); it takes none`,
		"configurations:\n- {name: preempt, arguments: {mx: 1}}":                                        `line 4: action preempt: there is no argument "mx" (1); known are allowWholeGang, enableTopologyAwarePreemption, maxCandidateNodesAbsolute, maxDomains, minCandidateNodesAbsolute, minCandidateNodesPercentage, predicateErrorCacheEnable`,
		"configurations:\n- {name: preempt, arguments: {topologyAwarePreemptWorkerNum: 4}}":             "line 4: action preempt: Volcano's argument topologyAwarePreemptWorkerNum (4) is not in Hekla: one core is enough; leave it out",
		"configurations:\n- {name: preempt, arguments: {allowWholeGang: true, allowWholeBundle: true}}": "line 4: action preempt: the arguments allowWholeGang and allowWholeBundle are the same; keep one of them",

		"metrics: {}\nfoo: bar":                    `line 4: the key "foo" ("bar") is not known; known are actions, compatibility, configurations, metrics, tiers`,
		"metrics: none":                            `line 3: metrics: metrics is "none": expected a mapping`,
		"metrics: {type: graphite}":                `line 3: metrics: argument type is "graphite": it must be prometheus or prometheus_adaptor or elasticsearch or metrics_server`,
		"metrics: {adress: here}":                  `line 3: metrics: there is no argument "adress" ("here"); did you mean "address"?`,
		"metrics: {interval: 30}":                  "line 3: metrics: argument interval is 30: expected a duration with a unit, such as 30s or 1h",
		"compatibility: true":                      "line 3: compatibility is true: expected a mapping",
		"compatibility: {victimVotes: 1}":          `line 3: compatibility: the key "victimVotes" (1) is not known; did you mean "victimVote"?`,
		"compatibility: {victimVote: Strict}":      `line 3: compatibility: victimVote is "Strict": expected strict or upstream; did you mean "strict"?`,
		"compatibility: {queuePriority: [a]}":      "line 3: compatibility: queuePriority is a list: expected strict or order",
		"compatibility: {preemptableByDefault: 1}": "line 3: compatibility: preemptableByDefault is 1: expected true or false",
	}
	for text, want := range tests {
		t.Run(strings.ReplaceAll(text, "\n", " "), func(t *testing.T) {
			refused(t, "actions: allocate\ntiers: []\n"+text+"\n", want)
		})
	}
}

// refused holds that a text is refused, and says exactly this.
func refused(t *testing.T, text, want string) {
	t.Helper()
	c, err := Parse([]byte(text), volcano())
	if err == nil {
		t.Fatalf("accepted as\n%s", c)
	}
	if err.Error() != want {
		t.Errorf("says\n%v\nwant\n%s", err, want)
	}
}

func TestEverythingThatIsWrongIsReportedAtOnceByLine(t *testing.T) {
	const text = `actions: enque, allocate
tiers:
- plugins:
  - name: gagn
    enablePreemptible: false
  - name: overcommit
    arguments:
      overcommit-factor: lots
configurations:
- name: allocate
  arguments: {foo: 1, foo: 2}
teirs: []
`
	const want = `line 1: actions: there is no action "enque"; did you mean "enqueue"?
line 4: tiers: there is no plugin "gagn"; did you mean "gang"?
line 5: plugin gagn: the key "enablePreemptible" (false) is not known; did you mean "enablePreemptable"?
line 8: plugin overcommit: argument overcommit-factor is "lots": expected a number
line 11: the key "foo" stands here and on line 11; keep the one you mean
line 11: action allocate: there is no argument "foo" (1); known are predicateErrorCacheEnable
line 12: the key "teirs" (a list) is not known; did you mean "tiers"?`
	_, err := Parse([]byte(text), volcano())
	if err == nil || err.Error() != want {
		t.Errorf("says\n%v\nwant\n%s", err, want)
	}
	var problem Problem
	if !errors.As(err, &problem) || problem.Line != 1 || problem.Subject != "actions" {
		t.Errorf("the first problem cannot be taken out of the error: %+v", problem)
	}
}

func TestBrokenYAMLIsReportedWhereItBreaks(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"a line indented too little": {"tiers:\n- plugins:\n  - name: gang\n   enableJobOrder: true\n  - name: drf\n", "line 4: not valid YAML: did not find expected key"},
		"a tab":                      {"actions: allocate\ntiers:\n\t- plugins: []\n", "line 3: not valid YAML: found character that cannot start any token"},
		"a quote left open":          {"actions: allocate\ntiers: \"\nfoo:\n", "line 2: not valid YAML: found unexpected end of stream"},
		"a bracket left open":        {"tiers: [{\n  }]\nmetrics: {type: a\nactions: allocate\n", "line 3: not valid YAML: did not find expected ',' or '}'"},
		"a colon forgotten":          {"actions: allocate\ntiers\nmetrics: {}\n", "line 2: not valid YAML: could not find expected ':'"},
		"an unknown reference":       {"actions: allocate\ntiers: *none\n", "line 2: not valid YAML: unknown anchor 'none' referenced"},
		"no text":                    {"actions: allocate\ntiers: \xff\n", "line 2: not a text in UTF-8"},
		"UTF-16":                     {"\xff\xfea\x00:\x00 \x001\x00", "line 1: not a text in UTF-8"},
		"a control character":        {"actions: allocate\ntiers: \x01\n", "line 2: not valid YAML: control characters are not allowed"},
		"a second broken document":   {"actions: allocate\ntiers: []\n---\n}\n", "line 4: not valid YAML: did not find expected node content"},
		"too many lines to search":   {strings.Repeat("#\n", 10_000) + "}", "not valid YAML: did not find expected node content"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { refused(t, test.text, test.want) })
	}
}

func TestLongValuesAreShortened(t *testing.T) {
	refused(t, "actions: allocate\ntiers: []\nkey: "+strings.Repeat("ü", 100)+"\n",
		`line 3: the key "key" ("`+strings.Repeat("ü", 60)+`…") is not known; known are actions, compatibility, configurations, metrics, tiers`)
}

func TestABrokenCatalogueIsNotTheFilesFault(t *testing.T) {
	catalogue := volcano()
	catalogue.Plugins["gang"] = Spec{Arguments: []Argument{{Name: "a", Kind: Int, Default: "1"}}}
	_, err := Parse([]byte(DefaultYAML), catalogue)
	var problems Problems
	if err == nil || errors.As(err, &problems) {
		t.Errorf("says %v, as if the file were wrong", err)
	}
}

func TestWhatIsKnownAndHasNoEffectIsLeftOutWithANotice(t *testing.T) {
	catalogue := Catalogue{
		Actions: map[string]Spec{"allocate": {}, "preempt": {NoEffect: "it comes later"}},
		Plugins: map[string]Spec{"gang": {}, "sla": {NoEffect: "it comes later"}},
	}
	c, err := Parse([]byte(`actions: "allocate, preempt"
tiers:
- plugins:
  - name: gang
  - name: sla
    enablePreemptable: false
    arguments: {sla-waiting-time: 1h}
configurations:
- name: preempt
  arguments: {whatever: 1}
`), catalogue)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Actions) != 1 || len(c.Tiers[0].Plugins) != 1 || len(c.ActionArguments["preempt"].values) != 0 {
		t.Errorf("in force is %s", c)
	}
	var lines []int
	for _, notice := range c.Notices {
		lines = append(lines, notice.Line)
	}
	if len(lines) != 3 || lines[0] != 1 || lines[1] != 5 || lines[2] != 9 {
		t.Errorf("the notices are %v", c.Notices)
	}
}

func TestASourceOfLoadsThatIsAskedDirectlyHasAnAddress(t *testing.T) {
	const usage = "actions: allocate\ntiers: [{plugins: [{name: usage}]}]\n"
	for block, want := range map[string]string{
		"metrics: {interval: 10s}":                      "line 3: metrics: address is missing; expected the URL of the prometheus",
		"metrics: {type: elasticsearch, address: \"\"}": "line 3: metrics: address is missing; expected the URL of the elasticsearch",
	} {
		t.Run(block, func(t *testing.T) { refused(t, usage+block, want) })
	}
	for _, block := range []string{"metrics: {address: \"http://here\"}", "metrics: {type: metrics_server}", "metrics: {type: prometheus_adaptor}"} {
		if c := parse(t, usage+block); len(c.Metrics) == 0 {
			t.Errorf("%s: nothing is left of it", block)
		}
	}
}
