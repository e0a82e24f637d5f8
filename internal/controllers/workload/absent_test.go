package workload

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

func TestTheKindsAreServedIfAllAreDefinedInTheVersionThatIsRead(t *testing.T) {
	mapper := func(version string, kinds ...string) meta.RESTMapper {
		of := schema.GroupVersion{Group: v1beta2.GroupName, Version: version}
		m := meta.NewDefaultRESTMapper([]schema.GroupVersion{of})
		for _, kind := range kinds {
			m.Add(of.WithKind(kind), meta.RESTScopeRoot)
		}
		return m
	}
	for name, test := range map[string]struct {
		mapper meta.RESTMapper
		want   bool
	}{
		"all":                {mapper("v1beta2", kinds...), true},
		"none":               {mapper("v1beta2"), false},
		"all but one":        {mapper("v1beta2", kinds[1:]...), false},
		"in another version": {mapper("v1beta1", kinds...), false},
	} {
		if got, err := AreDefined(test.mapper); err != nil || got != test.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
