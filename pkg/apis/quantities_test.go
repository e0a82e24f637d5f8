package apis_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"

	"hekla.sh/hekla/pkg/apis/bounds"
)

// quantities are where a user can write a quantity, with %s for its text: one place of each kind that has any.
var quantities = map[string]string{
	"Job":          "metadata: {name: a}\nspec: {tasks: [{replicas: 1, template: {spec: {containers: [{name: a, image: b, resources: {requests: {cpu: %s}}}]}}}]}",
	"JobTemplate":  "metadata: {name: a}\nspec: {tasks: [{replicas: 1, template: {spec: {volumes: [{name: a, emptyDir: {sizeLimit: %s}}], containers: []}}}]}",
	"CronJob":      "metadata: {name: a}\nspec: {schedule: '@daily', jobTemplate: {spec: {volumes: [{mountPath: /a, volumeClaim: {resources: {requests: {storage: %s}}}}], tasks: [{}]}}}",
	"PodGroup":     "metadata: {name: a}\nspec: {minResources: {cpu: %s}}",
	"ClusterQueue": "metadata: {name: a}\nspec: {cohort: c, resourceGroups: [{coveredResources: [cpu], flavors: [{name: a, resources: [{name: cpu, nominalQuota: %[1]s, borrowingLimit: %[1]s, lendingLimit: %[1]s}]}]}]}",
	"Cohort":       "metadata: {name: a}\nspec: {fairSharing: {weight: %s}}",
	"LocalQueue":   "metadata: {name: a}\nspec: {fairSharing: {weight: %s}}",
	"Workload":     "metadata: {name: a}\nspec: {podSets: [{template: {spec: {containers: [{name: a, image: b, resources: {requests: {cpu: %s}}}]}}}]}",
	"Queue":        "metadata: {name: a}\nspec: {capability: {cpu: 1, memory: %[1]s}, deserved: {memory: %[1]s}, guarantee: {resource: {memory: %[1]s}}}",
}

func TestDefinitionsRefuseQuantitiesThatCostTooMuchAndDoNotParseThem(t *testing.T) {
	definitions := loadDefinitions(t)
	for kind, object := range quantities {
		for _, text := range []string{"'1e-2000000000'", "'1e2000000000'", "'12345678901234567890e2000000000'", "'" + strings.Repeat("1", 1000) + "'"} {
			begin := time.Now()
			_, _, errs := definitions[kind].createAll(parse(t, fmt.Sprintf(object, text)))
			if took := time.Since(begin); len(errs) == 0 || took > 10*time.Second {
				t.Errorf("%s with %.30s: refused with %v after %v", kind, text, errs, took)
			}
		}
		for _, text := range []string{"1", "'100m'", "'1.5Gi'", "'1e3'", "9223372036854775807"} {
			if _, _, errs := definitions[kind].create(parse(t, fmt.Sprintf(object, text))); len(errs) > 0 {
				t.Errorf("%s with %s: %v", kind, text, errs.ToAggregate())
			}
		}
	}
}

// TestEveryQuantityOfEveryDefinitionIsBounded looks at schemas, so that no place is forgotten.
func TestEveryQuantityOfEveryDefinitionIsBounded(t *testing.T) {
	for kind, definition := range loadDefinitions(t) {
		count := 0
		var visit func(path string, schema *apiextensions.JSONSchemaProps)
		visit = func(path string, schema *apiextensions.JSONSchemaProps) {
			if schema.XIntOrString && schema.Pattern != "" {
				count++
				if schema.Pattern != bounds.QuantityPattern || schema.MaxLength == nil || *schema.MaxLength != bounds.MaxQuantityLength {
					t.Errorf("%s: %s has pattern %s and length %v", kind, path, schema.Pattern, schema.MaxLength)
				}
			}
			for name, property := range schema.Properties {
				visit(path+"."+name, &property)
			}
			if schema.Items != nil && schema.Items.Schema != nil {
				visit(path+"[]", schema.Items.Schema)
			}
			if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
				visit(path+"{}", schema.AdditionalProperties.Schema)
			}
			for _, rule := range schema.XValidations {
				if calls := regexp.MustCompile(`quantity\(`).FindAllString(rule.Rule, -1); len(calls) > 0 && !strings.Contains(rule.Rule, "matches('[eE][+-]?[0-9]{3}')") {
					t.Errorf("%s: a rule of %s parses quantities that it does not know to be within bounds: %s", kind, path, rule.Rule)
				}
			}
		}
		visit("", definition.internal.Spec.Validation.OpenAPIV3Schema)
		if _, has := quantities[kind]; has != (count > 0) {
			t.Errorf("%s has %d quantities and is tried: %v", kind, count, has)
		}
	}
}

func TestDurationsThatCannotBeReadAreRefused(t *testing.T) {
	definition := loadDefinitions(t)["Job"]
	for text, isDuration := range map[string]bool{"soon": false, "5 minutes": false, "1": false, "": false, "10m": true, "1h30m": true, "0": true, "1.5s": true} {
		job := jobWith("policies: [{event: PodPending, action: RestartJob, timeout: '"+text+"'}]", "")
		if _, _, errs := definition.create(parse(t, job)); (len(errs) == 0) != isDuration {
			t.Errorf("%q: %v", text, errs.ToAggregate())
		}
	}
}
