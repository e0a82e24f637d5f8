package bounds_test

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/bounds"
)

func TestADocumentThatGrowsWhenDecodedIsRefused(t *testing.T) {
	const length = 2 << 20
	repeated := func(element string) string {
		return "[" + strings.Repeat(element+",", length/(len(element)+1)) + element + "]"
	}
	type submission struct {
		Pods []*corev1.Pod `json:"pods"`
	}
	for name, test := range map[string]struct {
		into     any
		document string
	}{
		"pods that are empty":                  {&submission{}, `{"pods":` + repeated(`{}`) + `}`},
		"pods under a key in other case":       {&submission{}, `{"PODS":` + repeated(`{}`) + `}`},
		"tasks that are null":                  {&batch.Job{}, `{"spec":{"tasks":` + repeated(`null`) + `}}`},
		"tasks that are empty":                 {&batch.Job{}, `{"spec":{"tasks":` + repeated(`{}`) + `}}`},
		"containers":                           {&corev1.Pod{}, `{"spec":{"containers":` + repeated(`{}`) + `}}`},
		"maps of one entry":                    {new([]map[string]string), repeated(`{"":""}`)},
		"any that are maps":                    {new(any), repeated(`{"":0}`)},
		"lists under one key that comes often": {&corev1.Pod{}, `{` + strings.Repeat(`"spec":{"volumes":[{},{},{},{},{},{},{},{}]},`, length/45) + `"a":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := bounds.UnmarshalJSON([]byte(test.document), test.into)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), "more than 64 MiB of memory") {
				t.Errorf("of %s: %v", name, err)
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 256 {
				t.Errorf("refusing it took %d MiB", took)
			}
		})
	}
}

// TestWhatTheGateAdmitsTakesNoMoreMemory decodes lists of every kind of part, as long as the gate admits.
func TestWhatTheGateAdmitsTakesNoMoreMemory(t *testing.T) {
	for name, test := range map[string]struct {
		into    func() any
		element string
	}{
		"pods":   {func() any { return new([]*corev1.Pod) }, `{}`},
		"tasks":  {func() any { return new([]batch.TaskSpec) }, `{}`},
		"probes": {func() any { return new([]corev1.Container) }, `{"livenessProbe":{},"env":[{}]}`},
		"maps":   {func() any { return new([]map[string]string) }, `{"":""}`},
		"any":    {func() any { return new(any) }, `{"":[0]}`},
		"lists":  {func() any { return new([][][]string) }, `[[""]]`},
	} {
		t.Run(name, func(t *testing.T) {
			list := func(n int) []byte { return []byte("[" + strings.Repeat(test.element+",", n-1) + test.element + "]") }
			low := 8 << 10
			for bounds.CheckJSON(list(low*9/8), reflect.TypeOf(test.into())) == nil {
				low = low * 9 / 8
			}
			document, into := list(low), test.into()
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			if err := bounds.UnmarshalJSON(document, into); err != nil {
				t.Fatal(err)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(into)
			runtime.KeepAlive(document)
			if took := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20; took > bounds.MaxMemory>>20 {
				t.Errorf("%d of them take %d MiB, and the gate says that they take less than %d", low, took, bounds.MaxMemory>>20)
			}
		})
	}
}

func TestALargeJobIsDecoded(t *testing.T) {
	const task = `{"name":"a","replicas":1,"template":{"spec":{"containers":[{"name":"main","image":"registry.example.com/team/image:1.2.3",
		"command":["sh","-c","sleep 100"],"env":[{"name":"A","value":"B"}],"resources":{"requests":{"cpu":"100m","memory":"1Gi"}}}],"restartPolicy":"OnFailure"}}}`
	job := `{"spec":{"tasks":[` + strings.Repeat(task+",", 4_000) + task + `]}}`
	if err := bounds.UnmarshalJSON([]byte(job), &batch.Job{}); err != nil {
		t.Errorf("a Job of %d KiB: %v", len(job)>>10, err)
	}
}

func TestYAMLIsDecodedWithinTheSameBounds(t *testing.T) {
	laughs := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for _, level := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		below := string(level[0] - 1)
		laughs += "a" + level + ": &a" + level + " [" + strings.Repeat("*a"+below+",", 8) + "*a" + below + "]\n"
	}
	for name, document := range map[string]string{"aliases of aliases": laughs, "a quantity": "cpu: '1e-2000000000'", "a number": "cpu: !!str 1e-2000000000"} {
		if err := bounds.UnmarshalYAML([]byte(document), &corev1.ResourceList{}); err == nil {
			t.Errorf("%s: it was decoded", name)
		}
		if err := bounds.UnmarshalStrictYAML([]byte(document), &corev1.ResourceList{}); err == nil {
			t.Errorf("%s: it was decoded strictly", name)
		}
	}
	into := map[string]any{}
	if err := bounds.UnmarshalYAML([]byte("a: 1"), &into); err != nil || into["a"] != int64(1) {
		t.Errorf("a whole number is %T, error %v", into["a"], err)
	}
	if err := bounds.FromUnstructured(map[string]any{"spec": map[string]any{"overhead": map[string]any{"cpu": "1e-2000000000"}}}, &corev1.Pod{}); err == nil {
		t.Error("fields with a quantity out of bounds were taken")
	}
}

func TestNumbersAndPatternsAreWithinBounds(t *testing.T) {
	for _, text := range []string{"NaN", "Inf", "-inf", "1e400", "", "x", "0x"} {
		if number, err := bounds.ParseNumber(text); err == nil {
			t.Errorf("%q is %v", text, number)
		}
	}
	if number, err := bounds.ParseNumber("1.5"); err != nil || number != 1.5 {
		t.Errorf("1.5 is %v, %v", number, err)
	}
	for _, text := range []string{"(", strings.Repeat("a", 1025), "(((a{100}){100}){100})"} {
		if _, err := bounds.ParsePattern(text); err == nil {
			t.Errorf("%.20q was parsed", text)
		}
	}
}
