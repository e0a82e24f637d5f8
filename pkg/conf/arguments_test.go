package conf

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestArgumentsHaveTheirTypesHoweverTheyAreWritten(t *testing.T) {
	spec := Spec{Arguments: []Argument{{Name: "bool", Kind: Bool}, {Name: "int", Kind: Int}, {Name: "float", Kind: Float},
		{Name: "string", Kind: String}, {Name: "duration", Kind: Duration}, {Name: "map", Kind: StringMap}, {Name: "any", Kind: Any}}}
	tests := map[string]struct {
		get  func(Arguments) any
		want any
	}{
		"bool: true":                      {func(a Arguments) any { return a.Bool("bool") }, true},
		`bool: "false"`:                   {func(a Arguments) any { return a.Bool("bool") }, false},
		"bool: yes":                       {func(a Arguments) any { return a.Bool("bool") }, true},
		"bool: OFF":                       {func(a Arguments) any { return a.Bool("bool") }, false},
		"int: 16":                         {func(a Arguments) any { return a.Int("int") }, 16},
		"int: -1_000":                     {func(a Arguments) any { return a.Int("int") }, -1000},
		"int: 0x10":                       {func(a Arguments) any { return a.Int("int") }, 16},
		`int: "16"`:                       {func(a Arguments) any { return a.Int("int") }, 16},
		"float: 1":                        {func(a Arguments) any { return a.Float("float") }, 1.0},
		"float: .5":                       {func(a Arguments) any { return a.Float("float") }, 0.5},
		`float: "1.2"`:                    {func(a Arguments) any { return a.Float("float") }, 1.2},
		"float: 9223372036854775808":      {func(a Arguments) any { return a.Float("float") }, 1 << 63 * 1.0},
		"any: [9223372036854775808]":      {func(a Arguments) any { return a.Any("any") }, []any{1 << 63 * 1.0}},
		"string: a b":                     {func(a Arguments) any { return a.String("string") }, "a b"},
		"string: 010":                     {func(a Arguments) any { return a.String("string") }, "010"},
		"string: 2020-01-01":              {func(a Arguments) any { return a.String("string") }, "2020-01-01"},
		`string: ""`:                      {func(a Arguments) any { return a.String("string") }, ""},
		"string: |\n  a\n  b":             {func(a Arguments) any { return a.String("string") }, "a\nb"},
		"duration: 1h30m":                 {func(a Arguments) any { return a.Duration("duration") }, 90 * time.Minute},
		"map: {a: 1, b: x, c: true}":      {func(a Arguments) any { return a.StringMap("map") }, map[string]string{"a": "1", "b": "x", "c": "true"}},
		"any: [1, 1.0, \"1\", null, yes]": {func(a Arguments) any { return a.Any("any") }, []any{1, 1.0, "1", nil, "yes"}},
		"any: {a: {b: []}, 1: 2020-01-01}": {func(a Arguments) any { return a.Any("any") },
			map[string]any{"a": map[string]any{"b": []any{}}, "1": "2020-01-01"}},
	}
	for text, test := range tests {
		t.Run(text, func(t *testing.T) {
			a, err := ParseArguments([]byte(text), spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, test.get(a)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnArgumentThatIsNotGivenHasItsDefaultOrNone(t *testing.T) {
	for name, spec := range map[string]Spec{"without": {}, "with": {Arguments: []Argument{
		{Name: "bool", Kind: Bool, Default: true}, {Name: "int", Kind: Int, Default: 3}, {Name: "float", Kind: Float, Default: 1.5},
		{Name: "string", Kind: String, Default: "s"}, {Name: "duration", Kind: Duration, Default: time.Minute},
		{Name: "map", Kind: StringMap, Default: map[string]string{"a": "b"}}, {Name: "any", Kind: Any, Default: []any{1}}}}} {
		t.Run(name+" defaults", func(t *testing.T) {
			with := name == "with"
			if !with {
				spec.Arguments = []Argument{{Name: "bool", Kind: Bool}, {Name: "int", Kind: Int}, {Name: "float", Kind: Float},
					{Name: "string", Kind: String}, {Name: "duration", Kind: Duration}, {Name: "map", Kind: StringMap}, {Name: "any", Kind: Any}}
			}
			a, err := ParseArguments(nil, spec)
			if err != nil {
				t.Fatal(err)
			}
			got := []any{a.Bool("bool"), a.Int("int"), a.Float("float"), a.String("string"), a.Duration("duration"), a.StringMap("map"), a.Any("any")}
			want := []any{false, 0, 0.0, "", time.Duration(0), map[string]string(nil), nil}
			if with {
				want = []any{true, 3, 1.5, "s", time.Minute, map[string]string{"a": "b"}, []any{1}}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if a.Has("int") != with {
				t.Errorf("Has says %v", !with)
			}
		})
	}
}

func TestAFamilyIsOpen(t *testing.T) {
	spec := volcano().Plugins["binpack"]
	a, err := ParseArguments([]byte("{binpack.resources.nvidia.com/gpu: 2, binpack.resources.a: 7, binpack.cpu: 3, binpack.resources: a}"), spec)
	if err != nil {
		t.Fatal(err)
	}
	var members []any
	for member, value := range a.Each("binpack.resources.") {
		members = append(members, member, value)
	}
	if diff := cmp.Diff([]any{"a", 7, "nvidia.com/gpu", 2}, members); diff != "" {
		t.Error(diff)
	}
	for range a.Each("binpack.resources.") {
		break // a loop may be left early
	}
	if given, other := a.Int("binpack.resources.nvidia.com/gpu"), a.Int("binpack.resources.example.com/foo"); given != 2 || other != 1 {
		t.Errorf("the member that is given is %d, another %d; want 2 and the family's default 1", given, other)
	}
}

func TestTheMostPreciseDeclarationCounts(t *testing.T) {
	spec := Spec{Arguments: []Argument{{Name: "a.*", Kind: Int, Default: 1}, {Name: "a.b.<x>", Kind: Int, Default: 2},
		{Name: "a.b.c", Kind: Int, Default: 3}, {Name: "<x>.end", Kind: Int, Default: 4}}}
	a := spec.Defaults()
	for name, want := range map[string]int{"a.x": 1, "a.b.": 1, "a.b.x": 2, "a.b.c": 3, "z.end": 4, "a.end": 1} {
		if got := a.Int(name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	for member := range a.Each("a.b.") {
		t.Errorf("a.b.c is declared by itself, but %q counts as a member of a.b.<x>", member)
	}
}

func TestAskingForWhatIsNotDeclaredIsABug(t *testing.T) {
	a := Spec{Arguments: []Argument{{Name: "weight", Kind: Int, Default: 1}, {Name: "w", AliasOf: "weight"},
		{Name: "cache", Kind: Bool, NoEffect: "no use"}, {Name: "family.*", Kind: Int}}}.Defaults()
	for name, ask := range map[string]func(){
		`"wieght" is read as a whole number`:          func() { a.Int("wieght") },
		`"weight" is read as a number`:                func() { a.Float("weight") },
		`"w" is read as`:                              func() { a.Int("w") },
		`"cache" is read as`:                          func() { a.Bool("cache") },
		`"wieght" is not declared`:                    func() { a.Has("wieght") },
		`no family of arguments begins with "weight"`: func() { a.Each("weight") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if message, _ := recover().(string); !strings.Contains(message, name) {
					t.Errorf("panics with %q", message)
				}
			}()
			ask()
		})
	}
}

func TestWhatAMapIsGivenOutAsIsTheCallers(t *testing.T) {
	a := volcano().Plugins["usage"].Defaults()
	a.StringMap("thresholds")["cpu"] = "0"
	if got := a.StringMap("thresholds")["cpu"]; got != "80" {
		t.Errorf("the configuration changed under a caller's hands: %s", got)
	}
}

func TestArgumentsAloneAreReadAsStrictly(t *testing.T) {
	tests := map[string]string{
		"binpack.cpu: x\nbinpack.memroy: 2\n": "line 1: argument binpack.cpu is \"x\": expected a whole number\n" +
			`line 2: there is no argument "binpack.memroy" (2); did you mean "binpack.memory"?`,
		"{binpack.cpu: 1, binpack.cpu: 2}": `line 1: the key "binpack.cpu" stands here and on line 1; keep the one you mean`,
		"[":                                "line 1: not valid YAML: did not find expected node content",
		"5":                                "line 1: arguments is 5: expected a mapping",
	}
	for text, want := range tests {
		if _, err := ParseArguments([]byte(text), volcano().Plugins["binpack"]); err == nil || err.Error() != want {
			t.Errorf("%q says\n%v\nwant\n%s", text, err, want)
		}
	}
	if _, err := ParseArguments(nil, Spec{Arguments: []Argument{{Name: "a"}}}); err == nil {
		t.Error("a schema without a kind is accepted")
	}
}
