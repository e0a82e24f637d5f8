package imports

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

// gate is the package that all text of others passes before anything decodes it.
const gate = "pkg/apis/bounds"

// decoders are what decodes or parses text whose cost is not bounded by its length, or whose result need not be finite.
// They are functions by the name that go/types gives them, or with a * at the end all that begin so.
var decoders = []string{
	"encoding/json.Unmarshal", "(*encoding/json.Decoder).Decode", "encoding/gob.*", "(*encoding/gob.*", "encoding/xml.*", "(*encoding/xml.*", "encoding/asn1.*",
	"sigs.k8s.io/json.*", "sigs.k8s.io/yaml.Unmarshal*", "sigs.k8s.io/yaml.YAMLToJSON*", "k8s.io/apimachinery/pkg/util/json.Unmarshal",
	"gopkg.in/yaml.v3.Unmarshal", "(*gopkg.in/yaml.v3.Decoder).Decode", "(*gopkg.in/yaml.v3.Node).Decode", "go.yaml.in/*", "(*go.yaml.in/*",
	"k8s.io/apimachinery/pkg/util/yaml.Unmarshal", "k8s.io/apimachinery/pkg/util/yaml.ToJSON", "k8s.io/apimachinery/pkg/util/yaml.NewYAMLOrJSONDecoder",
	"(*k8s.io/apimachinery/pkg/util/yaml.YAMLOrJSONDecoder).*",
	"k8s.io/apimachinery/pkg/api/resource.ParseQuantity", "k8s.io/apimachinery/pkg/api/resource.MustParse", "(*k8s.io/apimachinery/pkg/api/resource.Quantity).Unmarshal*",
	"(k8s.io/apimachinery/pkg/runtime.Decoder).Decode", "k8s.io/apimachinery/pkg/runtime.Decode*", "(k8s.io/apimachinery/pkg/runtime.UnstructuredConverter).*",
	"(k8s.io/apimachinery/pkg/runtime.Serializer).Decode", "(sigs.k8s.io/controller-runtime/pkg/webhook/admission.Decoder).*",
	"(encoding/json.Unmarshaler).*",
	"regexp.*", "github.com/robfig/cron/v3.Parse*", "(github.com/robfig/cron/v3.Parser).*", "(github.com/robfig/cron/v3.ScheduleParser).*",
	"strconv.ParseFloat", "strconv.ParseComplex", "text/template.*", "(*text/template.Template).Parse*", "html/template.*",
	"k8s.io/apimachinery/pkg/labels.Parse*", "k8s.io/apimachinery/pkg/fields.Parse*", "k8s.io/apimachinery/pkg/apis/meta/v1.ParseToLabelSelector",
	"github.com/evanphx/json-patch*", "k8s.io/apimachinery/pkg/util/strategicpatch.*", "github.com/google/cel-go/*",
}

// ofOwnText says which files decode outside of the gate, and why they may: whose text it is, or what bounds it.
var ofOwnText = map[string]string{
	"internal/admission/handler.go":                             "read checks the document by the gate before it is decoded by the kind that the scheme has",
	"internal/admission/held/namespaces.go":                     "the selector is an argument of this process",
	"internal/cli/session/values.go":                            "the selector is an argument of the command, which the API server matches",
	"internal/controllers/hypernode/discovery/configuration.go": "the configuration of the controllers, which the library decodes no further than aliases allow",
	"internal/controllers/jobflow/patch.go":                     "the patch was decoded by the gate; it is merged here",
	"internal/edge/apiserver/decode.go":                         "kinds of this project decode themselves by the gate, and what is left was validated as the kinds of the API server",
	"internal/edge/apiserver/list.go":                           "a list without its items, which decode themselves by the gate",
	"internal/edge/load/elasticsearch.go":                       "the answer of the server of metrics that the configuration names: numbers",
	"internal/importer/kueue/keys.go":                           "a file of the user who runs the command, decoded no further than aliases allow",
	"internal/importer/source/reader.go":                        "a file of the user who runs the command, decoded no further than aliases allow",
	"internal/snapshot/rename.go":                               "a file of the user who runs the command, decoded into maps and texts: numbers stay texts",
	"internal/snapshot/snapshot.go":                             "a file of the user who runs the command, split into objects that the gate decodes",
	"internal/timetable/timetable.go":                           "the only place that parses schedules; it passes the parser no text that it does not bear",
	"pkg/apis/internal/crddoc/main.go":                          "files of this project, when it is built",
	"pkg/conf/document.go":                                      "the configuration of the scheduler, decoded into nodes without their aliases",
	"pkg/conf/kind.go":                                          "numbers of the configuration of the scheduler",
	"pkg/plugins/cohorts/arguments/arguments.go":                "arguments of the configuration, which package conf has read",
}

// isDecoder reports whether a function is one of the decoders.
func isDecoder(name string) bool {
	return slices.ContainsFunc(decoders, func(d string) bool {
		begin, isPrefix := strings.CutSuffix(d, "*")
		return name == d || isPrefix && strings.HasPrefix(name, begin)
	})
}

// decodes lists where files of one package call a decoder, or take one as a value, by file. A constant needs no gate.
func decodes(t *testing.T, from types.Importer, files []*source) map[string][]string {
	t.Helper()
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	typed(t, from, files, info)
	found := map[string][]string{}
	for _, s := range files {
		ofConstant := map[*ast.Ident]bool{}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				selector, isSelector := n.Fun.(*ast.SelectorExpr)
				if isSelector && len(n.Args) > 0 && info.Types[n.Args[0]].Value != nil {
					ofConstant[selector.Sel] = true
				}
			case *ast.Ident:
				used, isFunction := info.Uses[n].(*types.Func)
				if isFunction && isDecoder(used.Origin().FullName()) && !ofConstant[n] {
					name := s.room + "/" + s.name
					found[name] = append(found[name], fmt.Sprintf("%s: %s", s.at(n), used.FullName()))
				}
			}
			return true
		})
	}
	return found
}

// byRoom are the files of the module but tests, by package.
func byRoom(t *testing.T, all []*source) map[string][]*source {
	t.Helper()
	rooms := map[string][]*source{}
	for _, s := range all {
		if isBuilt, err := build.Default.MatchFile("../../"+s.room, s.name); err != nil || !isBuilt {
			continue
		}
		if !isIn(s.room, "test") && !isIn(s.room, "hack") && !isIn(s.room, "example") {
			rooms[s.room] = append(rooms[s.room], s)
		}
	}
	return rooms
}

func TestTextOfOthersIsDecodedBehindTheGateOnly(t *testing.T) {
	from := exported(t, "...")
	used, inGate := map[string]bool{}, 0
	rooms := byRoom(t, sources(t))
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		for file, places := range decodes(t, from, rooms[room]) {
			switch {
			case room == gate:
				inGate += len(places)
			case ofOwnText[file] != "":
				used[file] = true
			default:
				t.Errorf("%s\n\tdecode it by a function of %s, or say in ofOwnText whose text it is", strings.Join(places, "\n"), gate)
			}
		}
	}
	for file := range ofOwnText {
		if !used[file] {
			t.Errorf("%s decodes nothing outside of the gate: take it off the list", file)
		}
	}
	if inGate == 0 {
		t.Error("the gate decodes nothing: the list of decoders names none of its functions")
	}
}
