package resources

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestQuantitiesBecomeAmounts(t *testing.T) {
	for name, test := range map[string]struct {
		resource corev1.ResourceName
		quantity string
		want     int64
	}{
		"cores are thousandths":                                      {"cpu", "2", 2000},
		"part of a core":                                             {"cpu", "250m", 250},
		"less than a thousandth is rounded up":                       {"cpu", "1n", 1},
		"memory is bytes":                                            {"memory", "2Gi", 2 << 30},
		"part of a byte is rounded up":                               {"memory", "1m", 1},
		"devices are counted":                                        {"nvidia.com/gpu", "4", 4},
		"a negative amount counts as zero":                           {"memory", "-5", 0},
		"negative cores count as zero":                               {"cpu", "-5", 0},
		"a very negative amount counts as zero":                      {"memory", "-1e30", 0},
		"the largest amount":                                         {"memory", "256Ti", MaxQuantity},
		"a larger amount is cut":                                     {"memory", "257Ti", MaxQuantity},
		"of three million digits":                                    {"memory", "1e3000000", MaxQuantity},
		"of two thousand million digits, which nobody could compare": {"cpu", "1e2000000000", MaxQuantity},
		"as large as an int64 is":                                    {"memory", "9223372036854775807", MaxQuantity},
		"larger than an int64":                                       {"memory", "100E", MaxQuantity},
		"larger than anything":                                       {"example.com/device", "1e30", MaxQuantity},
		"more cores than thousandths have space":                     {"cpu", "9300000000000000", MaxQuantity},
		"the largest number of cores":                                {"cpu", "281474976710656m", MaxQuantity},
		"a thousandth less than the largest number":                  {"cpu", "281474976710655m", MaxQuantity - 1},
		"many more cores":                                            {"cpu", "1e25", MaxQuantity},
	} {
		t.Run(name, func(t *testing.T) {
			x := NewIndex()
			list := corev1.ResourceList{test.resource: resource.MustParse(test.quantity)}
			if have := x.Vector(list).At(x.Dim(test.resource)); have != test.want {
				t.Errorf("%s of %s is %d, want %d", test.quantity, test.resource, have, test.want)
			}
			if have := x.Limits(list).Value(x.Dim(test.resource)); have != test.want {
				t.Errorf("as a limit %s of %s is %d, want %d", test.quantity, test.resource, have, test.want)
			}
		})
	}
}

func TestAnyQuantityBecomesWhatItsDecimalSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quantity := resource.NewScaledQuantity(rapid.Int64().Draw(t, "digits"), resource.Scale(rapid.IntRange(-9, 30).Draw(t, "scale")))
		for name, unit := range map[corev1.ResourceName]float64{"cpu": 1000, "memory": 1} {
			x := NewIndex()
			have := x.Vector(corev1.ResourceList{name: *quantity}).At(x.Dim(name))
			want := math.Min(math.Max(math.Ceil(quantity.AsApproximateFloat64()*unit), 0), float64(MaxQuantity))
			// A float is near enough here: it is off by one part in 2^52, and the mistakes to find are large.
			if math.Abs(float64(have)-want) > 1+want/(1<<50) {
				t.Fatalf("%s of %s is %d, want about %.0f", quantity, name, have, want)
			}
		}
	})
}

func TestEveryResourceHasItsDimension(t *testing.T) {
	x := NewIndex()
	for d, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if x.Dim(name) != Dim(d) || x.Name(Dim(d)) != name {
			t.Errorf("%s has dimension %d", name, x.Dim(name))
		}
	}
	if _, ok := x.Find("example.com/a"); ok || x.Len() != 3 {
		t.Error("a resource nobody spoke of has a dimension")
	}
	a := x.Dim("example.com/a")
	if again, ok := x.Find("example.com/a"); a != 3 || !ok || again != a || x.Dim("example.com/a") != a || x.Len() != 4 {
		t.Errorf("a new resource has dimension %d, then %d", a, again)
	}
}

func TestDimensionsDoNotDependOnTheOrderOfAMap(t *testing.T) {
	list := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"f", "b", "d", "a", "e", "c", "cpu"} {
		list[name] = resource.MustParse("1")
	}
	for range 20 {
		vectors, limits := NewIndex(), NewIndex()
		vectors.Vector(list)
		limits.Limits(list)
		for _, x := range []*Index{vectors, limits} {
			names := []corev1.ResourceName{}
			for d := range Dim(x.Len()) {
				names = append(names, x.Name(d))
			}
			if !slices.Equal(names, []corev1.ResourceName{"cpu", "memory", "pods", "a", "b", "c", "d", "e", "f"}) {
				t.Fatalf("the dimensions are %v", names)
			}
		}
	}
}

func TestAmountsBecomeTheQuantitiesTheyCameFrom(t *testing.T) {
	x := NewIndex()
	list := corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("2Gi"),
		"hugepages-2Mi": resource.MustParse("4Mi"), "nvidia.com/gpu": resource.MustParse("0")}
	without := corev1.ResourceList{"cpu": list["cpu"], "memory": list["memory"], "hugepages-2Mi": list["hugepages-2Mi"]}
	if diff := cmp.Diff(without, x.List(x.Vector(list))); diff != "" {
		t.Errorf("amounts, without zeros (-want +have):\n%s", diff)
	}
	if diff := cmp.Diff(list, x.LimitList(x.Limits(list))); diff != "" {
		t.Errorf("limits, with zeros (-want +have):\n%s", diff)
	}
}

func TestAmountsArePrintedAsUsersWriteThem(t *testing.T) {
	for want, test := range map[string]struct {
		resource corev1.ResourceName
		value    int64
	}{
		"1500m":     {"cpu", 1500},
		"4":         {"cpu", 4000},
		"0":         {"cpu", 0},
		"-500m":     {"cpu", -500},
		"2Gi":       {"memory", 2 << 30},
		"1k":        {"memory", 1000},
		"64Mi":      {"hugepages-2Mi", 64 << 20},
		"1Gi":       {"ephemeral-storage", 1 << 30},
		"1024":      {"example.com/device", 1024},
		"110":       {"pods", 110},
		"unlimited": {"memory", Unlimited},
	} {
		if have := Format(test.resource, test.value); have != want {
			t.Errorf("%d of %s is printed %q, want %q", test.value, test.resource, have, want)
		}
	}
}

// TestNamesThatOneUserInventsCostOthersNothing adds pods that ask for thousands of resources each, as API servers
// accept them.
func TestNamesThatOneUserInventsCostOthersNothing(t *testing.T) {
	x := NewIndex()
	one := resource.MustParse("1")
	for pod := range 20 {
		list := corev1.ResourceList{"cpu": one, "memory": one, "ephemeral-storage": one}
		for i := range 3000 {
			list[corev1.ResourceName(fmt.Sprintf("e%d.example.com/r%d", pod, i))] = one
		}
		v := x.Asked(list)
		if v.At(CPU) != 1000 || v.At(Memory) != 1 || v.At(x.Dim("ephemeral-storage")) != 1 || v.At(x.Dim(Further)) != 1 {
			t.Fatalf("pod %d asks for %v", pod, x.List(v))
		}
	}
	if most := 5 + MaxInvented; x.Len() > most {
		t.Errorf("20 pods made %d dimensions, %d are the most", x.Len(), most)
	}
	if v := x.Asked(corev1.ResourceList{"cpu": one, "memory": one}); len(v) != 2 {
		t.Errorf("a pod that asks for CPU and memory has a vector of %d", len(v))
	}
}

// TestNamesThatManyRequestsInventShareOne makes each of many pods ask for a resource of its own. What a node or a queue
// names is told apart.
func TestNamesThatManyRequestsInventShareOne(t *testing.T) {
	x, one := NewIndex(), resource.MustParse("1")
	list := func(i int) corev1.ResourceList {
		return corev1.ResourceList{"cpu": one, corev1.ResourceName(fmt.Sprintf("example.com/r%d", i)): one}
	}
	const pods = 3 * MaxInvented
	for i := range pods {
		if v := x.Asked(list(i)); v.At(CPU) != 1000 || v.Equal(x.Vector(corev1.ResourceList{"cpu": one})) {
			t.Fatalf("pod %d asks for %v", i, x.List(v))
		}
	}
	if most := 4 + MaxInvented; x.Len() != most || x.Revealed() != 0 {
		t.Errorf("%d pods made %d dimensions, want %d; %d were revealed", pods, x.Len(), most, x.Revealed())
	}
	first, _ := x.Find("example.com/r0")
	if further := x.Dim(Further); x.Asked(list(pods)).At(further) != 1 || x.Asked(list(0)).At(further) != 0 || !x.IsInvented(first) {
		t.Error("the first pods ask for resources of their own, further ones for that which stands for all others")
	}
	revealed := x.Dim(corev1.ResourceName(fmt.Sprintf("example.com/r%d", pods)))
	if v := x.Asked(list(pods)); v.At(revealed) != 1 || v.At(x.Dim(Further)) != 0 || x.Revealed() != 1 || x.IsInvented(revealed) {
		t.Errorf("after an object has named the resource, a pod asks for %v", x.List(v))
	}
	// What an object names is no invention any more, and makes space for one.
	if x.Vector(list(0)); x.IsInvented(first) || x.Asked(list(pods+1)).At(x.Dim(Further)) != 0 {
		t.Error("a resource that a node has still counts as one that only requests name")
	}
}

func TestAListThatHasAsManyNamesAsAreCountedIsCountedWhole(t *testing.T) {
	x, list := NewIndex(), corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1"), "pods": resource.MustParse("1")}
	for i := range MaxNames {
		list[corev1.ResourceName(fmt.Sprintf("example.com/r%d", i))] = resource.MustParse("1")
	}
	if v := x.Asked(list); !v.Equal(x.Vector(list)) {
		t.Errorf("it asks for %v", x.List(v))
	}
	list["example.com/z"] = resource.MustParse("5")
	if v := x.Asked(list); v.At(x.Dim("example.com/z")) != 0 || v.At(x.Dim(Further)) != 1 {
		t.Errorf("with one more it asks for %v", x.List(v))
	}
}

func TestAResourceOfAFlavorIsNoDimension(t *testing.T) {
	x := NewIndex()
	before := x.Len()
	spot, reserved, gpu := x.OfFlavor("spot", "cpu"), x.OfFlavor("reserved", "cpu"), x.OfFlavor("spot", "example.com/gpu")
	if spot == reserved || spot == gpu || x.OfFlavor("spot", "cpu") != spot {
		t.Errorf("cpu is %d of spot and %d of reserved, a GPU of spot is %d", spot, reserved, gpu)
	}
	if x.ResourceOf(reserved) != "cpu" || x.FlavorOf(reserved) != "reserved" || x.ResourceOf(gpu) != "example.com/gpu" || x.FlavorOf(gpu) != "spot" {
		t.Errorf("%d is %s of flavor %q, %d is %s of flavor %q", reserved, x.ResourceOf(reserved), x.FlavorOf(reserved), gpu, x.ResourceOf(gpu), x.FlavorOf(gpu))
	}
	if _, isKnown := x.Find("example.com/gpu"); isKnown || x.Len() != before {
		t.Errorf("the flavors have grown the dimensions from %d to %d", before, x.Len())
	}
}
