package apis_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

const definitionDirectory = "../../installer/crds"

// definition does to an object what the API server does when it is created or updated, with the API server's own parts.
type definition struct {
	crd        *apiextensionsv1.CustomResourceDefinition
	internal   *apiextensions.CustomResourceDefinition
	structural *schema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// loadDefinitions reads every shipped definition, by kind.
func loadDefinitions(t testing.TB) map[string]*definition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(definitionDirectory, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	definitions := map[string]*definition{}
	for _, file := range files {
		loaded := loadDefinition(t, file)
		definitions[loaded.crd.Spec.Names.Kind] = loaded
	}
	return definitions
}

func loadDefinition(t testing.TB, file string) *definition {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(content, crd); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiextensions.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	defaulted := crd.DeepCopy()
	scheme.Default(defaulted)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := scheme.Convert(defaulted, internal, nil); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if errs := crdvalidation.ValidateCustomResourceDefinition(context.Background(), internal); len(errs) > 0 {
		t.Fatalf("%s: %v", file, errs.ToAggregate())
	}
	// The API server hoists the schema that all versions share to the top; there is one version.
	jsonSchema := internal.Spec.Validation.OpenAPIV3Schema
	structural, err := schema.NewStructural(jsonSchema)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	validator, _, err := validation.NewSchemaValidator(jsonSchema)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return &definition{
		crd:        crd,
		internal:   internal,
		structural: structural,
		schema:     validator,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}
}

// create returns the object as it would be stored, the fields it has that the definition does not know, and what is
// wrong with it.
func (d *definition) create(object map[string]any) (stored map[string]any, unknown []string, errs field.ErrorList) {
	stored = runtime.DeepCopyJSON(object)
	unknown = d.receive(stored)
	errs = validation.ValidateCustomResource(nil, stored, d.schema)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, stored)...)
	if len(errs) > 0 {
		return stored, unknown, errs
	}
	errs, _ = d.rules.Validate(context.Background(), nil, d.structural, stored, nil, celconfig.RuntimeCELCostBudget)
	return stored, unknown, errs
}

// createAll is create, but asks the rules as well where the schema has found something wrong. An API server does so
// unless a text is too long, a type is wrong or something is missing: a pattern that does not match does not spare the
// rules the text.
func (d *definition) createAll(object map[string]any) (stored map[string]any, unknown []string, errs field.ErrorList) {
	stored, unknown, errs = d.create(object)
	if len(errs) > 0 && !slices.ContainsFunc(errs, func(e *field.Error) bool { return e.Type == field.ErrorTypeTooLong }) {
		broken, _ := d.rules.Validate(context.Background(), nil, d.structural, stored, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	return stored, unknown, errs
}

// update returns what is wrong with replacing a stored object.
func (d *definition) update(object, stored map[string]any) field.ErrorList {
	object = runtime.DeepCopyJSON(object)
	d.receive(object)
	errs := validation.ValidateCustomResourceUpdate(nil, object, stored, d.schema)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, object)...)
	if len(errs) > 0 {
		return errs
	}
	errs, _ = d.rules.Validate(context.Background(), nil, d.structural, object, stored, celconfig.RuntimeCELCostBudget)
	return errs
}

// receive prunes and defaults in place.
func (d *definition) receive(object map[string]any) (unknown []string) {
	unknown = pruning.PruneWithOptions(object, d.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.Default(object, d.structural)
	return unknown
}

// parse turns YAML into the JSON values an API server works on.
func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	var object map[string]any
	if err := utiljson.Unmarshal(content, &object); err != nil {
		t.Fatal(err)
	}
	return object
}
