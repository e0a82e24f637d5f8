package bounds_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/bounds"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// costly are texts that would be parsed, compared, added or printed for hours.
var costly = []string{"1e-2000000000", "1e2000000000", "1E-2000000000", "+1e-2000000000", "-1.5e-2147483648", ".5e100", " 1e-2000000000 ",
	"12345678901234567890e200000000", "1e0002", strings.Repeat("1", 100_000), "0." + strings.Repeat("0", 100_000) + "1",
	"1" + strings.Repeat("0", 100) + "Ki"}

var cheap = []string{"0", "1", "-1", "100m", "1.5", ".5", "1.", "8Ei", "16Gi", "1e3", "1E3", "1e-9", "100n", "9223372036854775807", "1e99", "5k"}

func TestQuantitiesThatCostTooMuchAreNotParsed(t *testing.T) {
	pattern := regexp.MustCompile(bounds.QuantityPattern)
	for _, text := range costly {
		if quantity, err := bounds.ParseQuantity(text); err == nil {
			t.Errorf("%.40q was parsed: %v", text, quantity)
		}
		if pattern.MatchString(text) && len(text) <= bounds.MaxQuantityLength {
			t.Errorf("a schema admits %.40q", text)
		}
	}
	for _, text := range cheap {
		if err := bounds.CheckQuantity(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := resource.ParseQuantity(text); (err == nil) != pattern.MatchString(text) {
			t.Errorf("%q: parsing says %v, the pattern %v", text, err, err != nil)
		}
	}
}

func TestAllQuantitiesOfADocumentAreChecked(t *testing.T) {
	job := reflect.TypeFor[batch.Job]()
	for name, test := range map[string]struct {
		into           reflect.Type
		document, want string
	}{
		"of a container": {job, `{"spec":{"tasks":[{},{"template":{"spec":{"containers":[{"resources":{"requests":{"cpu":"1e-2000000000"}}}]}}}]}}`,
			`spec.tasks[1].template.spec.containers[0].resources.requests.cpu: Invalid value: "1e-2000000000": the exponent of a quantity has at most 2 digits`},
		"of a claim": {job, `{"spec":{"volumes":[{"volumeClaim":{"resources":{"requests":{"storage":"1e-2000000000"}}}}]}}`,
			"spec.volumes[0].volumeClaim.resources.requests.storage: Invalid value"},
		"a pointer to one": {job, `{"spec":{"tasks":[{"template":{"spec":{"volumes":[{"emptyDir":{"sizeLimit":"1e-2000000000"}}]}}}]}}`,
			"spec.tasks[0].template.spec.volumes[0].emptyDir.sizeLimit: Invalid value"},
		"under a key that comes twice": {reflect.TypeFor[corev1.ResourceList](), `{"cpu":"1e-2000000000","cpu":"1"}`, "cpu: Invalid value"},
		"as a number":                  {reflect.TypeFor[corev1.ResourceList](), `{"cpu":1e-2000000000}`, "cpu: Invalid value"},
		"as a negative number":         {reflect.TypeFor[corev1.ResourceList](), `{"cpu":-1e-2000000000}`, "cpu: Invalid value"},
		"too long":                     {reflect.TypeFor[corev1.ResourceList](), `{"cpu":"` + costly[9] + `"}`, "a quantity has at most 64 characters, this one has 100000"},
		"in spaces":                    {reflect.TypeFor[corev1.ResourceList](), "{\"cpu\":\" \u20031e-2000000000\u00a0\"}", "cpu: Invalid value"},
		"of a key in other case":       {reflect.TypeFor[scheduling.PodGroup](), `{"Spec":{"minresources":{"cpu":"1e-2000000000"}}}`, "Spec.minresources.cpu"},
		"after a text with a mark":     {reflect.TypeFor[corev1.ResourceList](), `{"a\"":"\\","cpu":"1e-2000000000"}`, "cpu: Invalid value"},
		"what is no quantity may look like one": {job, `{"metadata":{"annotations":{"a":"1e-2000000000"},"uid":"1e2000000000"},
			"spec":{"queue":"1e2000000000","unknown":{"cpu":"1e-2000000000"}}}`, ""},
		"nothing": {job, `{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := bounds.CheckJSON([]byte(test.document), test.into)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("said is %v, want %q", err, test.want)
			}
		})
	}
}

func TestNeitherDepthNorLengthStopsTheCheck(t *testing.T) {
	deep := `{"a":"1e-2000000000","b":` + strings.Repeat("[", 3<<20) + strings.Repeat("]", 3<<20) + "}"
	if err := bounds.CheckJSON([]byte(deep), reflect.TypeFor[batch.Job]()); err == nil {
		t.Error("a document of any depth was gone through")
	}
	for _, broken := range []string{"", `"`, `"\`, `{"a":"1e-2000000000`, "-", "1e-2000000000x", `{"cpu":1e-2000000000`} {
		if err := bounds.UnmarshalJSON([]byte(broken), &corev1.ResourceList{}); err == nil {
			t.Errorf("%q was decoded", broken)
		}
	}
}

// stored is a JobTemplate's or Job's sibling: a list as the API server sends it, with one object that cannot be
// decoded.
const stored = `{"kind":"JobList","apiVersion":"batch.volcano.sh/v1alpha1","items":[
{"metadata":{"name":"a","uid":"1","annotations":{"hekla.sh/unreadable":"not so","other":"kept"}},"spec":{"queue":"q"}},
{"kind":"Job","metadata":{"name":"b","uid":"2","resourceVersion":"7"},"spec":{"queue":"q",%s}},
{"metadata":{"name":"c","uid":"3"},"spec":{"queue":"q"}}]}`

func TestAnObjectThatCannotBeDecodedLeavesTheOthersReadable(t *testing.T) {
	for name, test := range map[string]struct{ field, want string }{
		"a quantity": {`"tasks":[{"template":{"spec":{"containers":[{"resources":{"limits":{"cpu":"1e-2000000000"}}}]}}}]`,
			`spec.tasks[0].template.spec.containers[0].resources.limits.cpu: Invalid value: "1e-2000000000"`},
		"a word for a quantity": {`"tasks":[{"template":{"spec":{"containers":[{"resources":{"limits":{"cpu":"much"}}}]}}}]`, "quantities must match"},
		"a duration":            {`"policies":[{"timeout":"soon"}]`, `time: invalid duration "soon"`},
		"a text for a number":   {`"minAvailable":"1"`, "minAvailable"},
	} {
		t.Run(name, func(t *testing.T) {
			document := []byte(strings.Replace(stored, "%s", test.field, 1))
			for decoder, decode := range map[string]func([]byte, any) error{
				"encoding/json": json.Unmarshal, "Kubernetes": kjson.UnmarshalCaseSensitivePreserveInts,
			} {
				list := &batch.JobList{}
				if err := decode(document, list); err != nil || len(list.Items) != 3 {
					t.Fatalf("%s: %v, %d Jobs", decoder, err, len(list.Items))
				}
				for _, i := range []int{0, 2} {
					if why, is := bounds.Unreadable(&list.Items[i]); is || list.Items[i].Spec.Queue != "q" {
						t.Errorf("%s: Job %s is %v, unreadable because of %q", decoder, list.Items[i].Name, list.Items[i].Spec, why)
					}
				}
				broken := &list.Items[1]
				if why, is := bounds.Unreadable(broken); !is || !strings.Contains(why, test.want) || broken.Spec.Queue != "" {
					t.Errorf("%s: unreadable is %v because of %q, want %q; it has %v", decoder, is, why, test.want, broken.Spec)
				}
				if broken.Name != "b" || broken.UID != "2" || broken.ResourceVersion != "7" || broken.Kind != "Job" {
					t.Errorf("%s: it is called %s %v", decoder, broken.Kind, broken.ObjectMeta)
				}
			}
		})
	}
}

func TestAnObjectThatIsNotStoredIsAnErrorAsEver(t *testing.T) {
	for _, spec := range []string{`{"tasks":[{"template":{"spec":{"containers":[{"resources":{"limits":{"cpu":"1e-2000000000"}}}]}}}]}`,
		`{"minAvailable":"1"}`} {
		if err := json.Unmarshal([]byte(`{"metadata":{"name":"a"},"spec":`+spec+`}`), &batch.Job{}); err == nil {
			t.Errorf("%s was decoded", spec)
		}
	}
}

// FuzzCheckedDocumentsAreDecodedInTime decodes whatever passes the check. A document that costs too much hangs the
// test.
func FuzzCheckedDocumentsAreDecodedInTime(f *testing.F) {
	for _, text := range append(costly, cheap...) {
		f.Add(`{"cpu":"` + text + `"}`)
		f.Add(`{"cpu":` + text + `}`)
		f.Add(`{"a":"\u00` + text + `","b":["` + text + `"],"cpu":"` + text + `","cpu":"` + text + `"}`)
	}
	f.Fuzz(func(t *testing.T, document string) {
		begin := time.Now()
		list := corev1.ResourceList{}
		if bounds.UnmarshalJSON([]byte(document), &list) != nil {
			return
		}
		for _, quantity := range list {
			_ = quantity.String()
			quantity.Add(resource.MustParse("1"))
			_ = quantity.Cmp(resource.MustParse("1"))
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("it took %v: %.200q", took, document)
		}
	})
}

func BenchmarkCheckJSON(b *testing.B) {
	job := &batch.Job{}
	for range 50 {
		job.Spec.Tasks = append(job.Spec.Tasks, batch.TaskSpec{Name: "worker", Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "busybox", Command: []string{"sh", "-c", "sleep 100"},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}}}}}}})
	}
	document, err := json.Marshal(job)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("check", func(b *testing.B) {
		b.SetBytes(int64(len(document)))
		for b.Loop() {
			if err := bounds.CheckJSON(document, reflect.TypeFor[batch.Job]()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(document)))
		for b.Loop() {
			if err := kjson.UnmarshalCaseSensitivePreserveInts(document, &batch.Job{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode without check", func(b *testing.B) {
		b.SetBytes(int64(len(document)))
		for b.Loop() {
			if err := kjson.UnmarshalCaseSensitivePreserveInts(document, (&batch.Job{}).Plain()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestOfVeryManyProblemsTheFirstAreTold(t *testing.T) {
	var problems field.ErrorList
	for i := range 30_000 {
		problems = append(problems, field.Invalid(field.NewPath("spec", "a").Index(29_999-i), strings.Repeat("x", 10), "no"))
	}
	told := bounds.Told(problems)
	if len(told) != 101 || told[0].Field != "spec.a[0]" || told[100].Error() != "spec: Invalid value: there are 30000 problems, and these are 100 of them" {
		t.Errorf("told are %d: %v … %v", len(told), told[0], told[len(told)-1])
	}
	if told := bounds.Told(problems[:100]); len(told) != 100 {
		t.Errorf("of 100 %d are told", len(told))
	}
}
