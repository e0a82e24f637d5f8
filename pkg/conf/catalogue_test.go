package conf

import (
	"math"
	"testing"
)

func TestTheTestCatalogueIsSound(t *testing.T) {
	catalogue := volcano()
	catalogue.Plugins["nested"] = Spec{Arguments: []Argument{{Name: "a", Kind: Any, Default: map[string]any{"b": []any{1, 1.5, "c", true, nil}}}}}
	if err := catalogue.Validate(); err != nil {
		t.Error(err)
	}
}

func TestACatalogueIsCheckedBeforeAFileIs(t *testing.T) {
	argument := func(arguments ...Argument) Catalogue {
		return Catalogue{Plugins: map[string]Spec{"p": {Arguments: arguments}}}
	}
	tests := map[string]struct {
		catalogue Catalogue
		want      string
	}{
		"a name with a comma":        {Catalogue{Actions: map[string]Spec{"a,b": {}}}, `action "a,b": a name has no spaces around it and no commas`},
		"an alias of nothing":        {Catalogue{Actions: map[string]Spec{"a": {AliasOf: "b"}}}, `action a: alias of "b", which is none itself`},
		"a conflict with nobody":     {Catalogue{Plugins: map[string]Spec{"p": {Conflicts: []Conflict{{With: "q"}}}}}, `plugin p: conflicts with "q", which does not exist`},
		"a nameless argument":        {argument(Argument{Kind: Int}), `plugin p: argument "": it has no name`},
		"two placeholders":           {argument(Argument{Name: "<a>.<b>", Kind: Int}), `plugin p: argument "<a>.<b>": a name has at most one placeholder, <word> anywhere or .* at its end`},
		"an argument without a kind": {argument(Argument{Name: "a"}), `plugin p: argument "a": it has no kind`},
		"a default of another type":  {argument(Argument{Name: "a", Kind: Float, Default: 1}), `plugin p: argument "a": its default is 1, of type int: expected a float64`},
		"a default inside a list":    {argument(Argument{Name: "a", Kind: Any, Default: []any{int64(1)}}), `plugin p: argument "a": its default holds 1, of type int64: expected what YAML makes of a value, see Any`},
		"a default without end":      {argument(Argument{Name: "a", Kind: Any, Default: map[string]any{"b": math.Inf(1)}}), `plugin p: argument "a": its default is +Inf: expected a finite number`},
		"a default its check refuses": {argument(Argument{Name: "a", Kind: Int, Default: 1, Check: atLeast(2)}),
			`plugin p: argument "a": its check refuses the default 1: it must be large enough`},
		"an argument twice": {argument(Argument{Name: "a", Kind: Int}, Argument{Name: "a", Kind: Int}), `plugin p: argument "a": declared twice`},
		"an alias of no argument": {argument(Argument{Name: "a", AliasOf: "b"}),
			`plugin p: argument "a": alias of "b": only a single argument may be an alias, and of a declared one`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := test.catalogue.Validate(); err == nil || err.Error() != test.want {
				t.Errorf("says\n%v\nwant\n%s", err, test.want)
			}
		})
	}
}

func TestAnAliasMayStandForAPlugin(t *testing.T) {
	catalogue := volcano()
	catalogue.Plugins["bin-pack"] = Spec{AliasOf: "binpack"}
	c, err := Parse([]byte(inTier("name: bin-pack\n    arguments: {binpack.cpu: 4}")), catalogue)
	if err != nil {
		t.Fatal(err)
	}
	if got := plugin(t, c, "binpack").Arguments.Int("binpack.cpu"); got != 4 {
		t.Errorf("binpack.cpu is %d, want 4", got)
	}
}
