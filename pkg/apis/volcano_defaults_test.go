package apis_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// jobDefaults are the defaults that the definitions of Volcano 1.15 give a JobSpec.
var jobDefaults = map[string]string{
	".maxRetry":                              "3",
	".queue":                                 `"default"`,
	".networkTopology.mode":                  `"hard"`,
	".tasks[].partitionPolicy.minPartitions": "0",
	".tasks[].partitionPolicy.networkTopology.mode": `"hard"`,
}

// An object that is read back has what it has with Volcano's definitions, release 1.15: tools compare it with their
// manifests, and update for ever what is different each time.
func TestDefaultsAreThoseOfVolcano(t *testing.T) {
	with := func(path string, defaults map[string]string, more map[string]string) map[string]string {
		all := map[string]string{}
		for field, value := range defaults {
			all[path+field] = value
		}
		for field, value := range more {
			all[field] = value
		}
		return all
	}
	for kind, want := range map[string]map[string]string{
		"Job":         with(".spec", jobDefaults, nil),
		"JobTemplate": with(".spec", jobDefaults, nil),
		"CronJob": with(".spec.jobTemplate.spec", jobDefaults, map[string]string{
			".spec.concurrencyPolicy": `"Allow"`, ".spec.suspend": "false",
			".spec.successfulJobsHistoryLimit": "3", ".spec.failedJobsHistoryLimit": "1",
		}),
		"JobFlow": {}, // Volcano's has those of a JobSpec in patch, which it ignores: here a patch would write them over the template
		"PodGroup": {
			".spec.queue": `"default"`, ".spec.networkTopology.mode": `"hard"`, ".spec.subGroupPolicy[].networkTopology.mode": `"hard"`,
			".spec.subGroupPolicy[].subGroupSize": "1", ".spec.subGroupPolicy[].minSubGroups": "0",
			".spec": "{}", // so that one without a spec has a queue
		},
		"Queue": {
			".spec.weight": "1", ".spec.dequeueStrategy": `"traverse"`,
			".spec": "{}", ".spec.reclaimable": "true", // in Volcano a webhook writes them
		},
		"HyperNode": {},
		"Command":   {},
	} {
		t.Run(kind, func(t *testing.T) {
			got := map[string]string{}
			defaultsOf(loadDefinitions(t)[kind].crd.Spec.Versions[0].Schema.OpenAPIV3Schema, "", got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the defaults differ (-Volcano +here):\n%s", diff)
			}
		})
	}
}

// defaultsOf collects the defaults of a schema by path, but those of pod templates and of claims, which are Kubernetes'
// own.
func defaultsOf(schema *apiextensionsv1.JSONSchemaProps, path string, into map[string]string) {
	if strings.HasSuffix(path, ".template") || strings.HasSuffix(path, ".volumeClaim") {
		return
	}
	if schema.Default != nil {
		into[path] = string(schema.Default.Raw)
	}
	for name, property := range schema.Properties {
		defaultsOf(&property, path+"."+name, into)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		defaultsOf(schema.Items.Schema, path+"[]", into)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		defaultsOf(schema.AdditionalProperties.Schema, path+"{}", into)
	}
}
