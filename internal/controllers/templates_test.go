package controllers_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/pkg/apis/podspec"
	"hekla.sh/hekla/test/apitest"
)

// comparedTemplates is how many random templates the API server is asked about.
const comparedTemplates = 500

// templates makes random templates, and what they are completed by.
type templates struct{ *rand.Rand }

func (r templates) once(in int) bool { return r.IntN(in) == 0 }

func (r templates) amount(name corev1.ResourceName, scale int64) resource.Quantity {
	n := 1 + r.Int64N(4)
	switch name {
	case corev1.ResourceCPU:
		if r.once(6) {
			return resource.MustParse(fmt.Sprintf("%d.%04d", n*scale, r.IntN(10000))) // finer than the API server keeps
		}
		return *resource.NewMilliQuantity(n*scale*250, resource.DecimalSI)
	case "example.com/device":
		return *resource.NewQuantity(n, resource.DecimalSI)
	}
	return *resource.NewQuantity(n*scale*(2<<20), resource.BinarySI)
}

// requirements are those of a container, or of the pod if scale is large.
func (r templates) requirements(scale int64, names ...corev1.ResourceName) (of corev1.ResourceRequirements) {
	of.Requests, of.Limits = corev1.ResourceList{}, corev1.ResourceList{}
	for _, name := range names {
		isExact := name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage
		switch amount := r.amount(name, scale); r.IntN(6) {
		case 0, 1:
			of.Limits[name] = amount
		case 2:
			if of.Requests[name] = amount; isExact {
				of.Limits[name] = amount
			}
		case 3:
			of.Requests[name], of.Limits[name] = amount, amount
			if !isExact {
				amount.Add(amount)
				of.Limits[name] = amount
			}
		}
	}
	return of
}

var (
	always     = corev1.ContainerRestartPolicyAlways
	ofAnything = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, "hugepages-2Mi", "example.com/device"}
	ofPods     = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "hugepages-2Mi"}
)

func (r templates) spec(classes []*nodev1.RuntimeClass) *corev1.PodSpec {
	spec := &corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}
	for i := range 1 + r.IntN(3) {
		spec.Containers = append(spec.Containers, corev1.Container{Name: fmt.Sprint("c", i), Image: "i", Resources: r.requirements(1, ofAnything...)})
	}
	for i := range max(r.IntN(5)-1, 0) {
		c := corev1.Container{Name: fmt.Sprint("i", i), Image: "i", Resources: r.requirements(2, ofAnything...)}
		if r.once(2) {
			c.RestartPolicy = &always
		}
		spec.InitContainers = append(spec.InitContainers, c)
	}
	if r.once(2) {
		of := r.requirements(100, ofPods...)
		spec.Resources = &of
	}
	if r.once(3) {
		spec.RuntimeClassName = &classes[r.IntN(len(classes))].Name
	}
	return spec
}

// ranges are LimitRanges of a namespace. No two have defaults for one resource: which would count is left to chance.
func (r templates) ranges(namespace string) (all []*corev1.LimitRange) {
	names := slices.Clone(ofAnything[:3])
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for i := range r.IntN(3) {
		o := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("range-", i)}}
		item := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer}
		set := func(into *corev1.ResourceList, name corev1.ResourceName, scale int64) {
			if *into == nil {
				*into = corev1.ResourceList{}
			}
			(*into)[name] = r.amount(name, scale)
		}
		for _, name := range names[2*i : min(2*i+2, len(names))] {
			switch r.IntN(5) {
			case 0:
				set(&item.Default, name, 1)
			case 1:
				set(&item.DefaultRequest, name, 1)
			case 2:
				set(&item.Default, name, 8)
				set(&item.DefaultRequest, name, 1)
			case 3:
				set(&item.Max, name, 100)
			case 4:
				set(&item.Min, name, 1)
			}
		}
		o.Spec.Limits = append(o.Spec.Limits, item)
		all = append(all, o)
	}
	return all
}

// differences are the resources of which two lists have different amounts. A resource that is missing has none.
func differences(a, b corev1.ResourceList) (found []string) {
	names := maps.Clone(a)
	if names == nil {
		names = corev1.ResourceList{}
	}
	maps.Copy(names, b)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		x, y := a[name], b[name]
		if x.Cmp(y) != 0 {
			found = append(found, fmt.Sprintf("%s: %s and %s", name, x.String(), y.String()))
		}
	}
	return found
}

func TestWhatPodsRequestIsKnownBeforeTheyExist(t *testing.T) {
	const seed = 30
	r := templates{rand.New(rand.NewPCG(seed, seed))}
	classes := []*nodev1.RuntimeClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "compared-plain"}, Handler: "plain"},
		{ObjectMeta: metav1.ObjectMeta{Name: "compared-sandboxed"}, Handler: "sandboxed", Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi")}}},
	}
	for _, class := range classes {
		create(t, class)
		t.Cleanup(func() { _ = api.Delete(t.Context(), class) })
	}
	dry, compared, refused := client.NewDryRunClient(api), 0, map[string]int{}
	for compared < comparedTemplates {
		namespace := namespaceFor(t, "compared")
		create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "compared"}})
		given := podspec.Given{}
		for _, o := range r.ranges(namespace) {
			given.LimitRanges = append(given.LimitRanges, o.DeepCopy()) // as a user writes it
			create(t, o)
		}
		probe := &corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: "compared", Containers: []corev1.Container{{Name: "c", Image: "i"}}}
		apitest.Eventually(t, func(ctx context.Context) error { // until the API server has seen the LimitRanges
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"}, Spec: *probe.DeepCopy()}
			if err := dry.Create(ctx, pod); err != nil {
				return err
			}
			if wrong := differences(podspec.Requests(podspec.Completed(probe, given)), podspec.Requests(&pod.Spec)); len(wrong) > 0 {
				return fmt.Errorf("a pod that says nothing requests other amounts than the API server has: %s", strings.Join(wrong, "; "))
			}
			return nil
		})
		for range comparedTemplates / 10 {
			spec := r.spec(classes)
			given.RuntimeClass = nil
			for _, class := range classes {
				if spec.RuntimeClassName != nil && class.Name == *spec.RuntimeClassName {
					given.RuntimeClass = class
				}
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "compared"}, Spec: *spec.DeepCopy()}
			pod.Spec.ServiceAccountName = "compared"
			err := dry.Create(t.Context(), pod)
			if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
				_, why, _ := strings.Cut(err.Error(), "is ")
				refused[why[:min(len(why), 60)]]++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			compared++
			before := spec.DeepCopy()
			completed := podspec.Completed(spec, given)
			wrong := differences(podspec.Requests(completed), podspec.Requests(&pod.Spec))
			for _, of := range differences(podspec.Limits(completed), podspec.Limits(&pod.Spec)) {
				wrong = append(wrong, "limit of "+of)
			}
			for _, of := range differences(podspec.Requests(podspec.Completed(&pod.Spec, given)), podspec.Requests(&pod.Spec)) {
				wrong = append(wrong, "completed twice "+of)
			}
			if fmt.Sprint(before) != fmt.Sprint(spec) {
				wrong = append(wrong, "the template was changed")
			}
			if len(wrong) > 0 {
				text, _ := yaml.Marshal(spec)
				ranges, _ := yaml.Marshal(given.LimitRanges)
				t.Fatalf("it requests other amounts than the API server has in the pod: %s\n%s\n%s", strings.Join(wrong, "; "), text, ranges)
			}
		}
		if compared == 0 {
			t.Fatalf("all are refused: %v", refused)
		}
	}
	t.Logf("%d templates were compared, and refused were %v", compared, refused)
}
