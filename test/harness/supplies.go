package harness

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"hekla.sh/hekla/test/fixture"
)

// Supplies is a cluster of few volumes and devices, and gangs that want them.
func Supplies(t *rapid.T) []runtime.Object {
	objects := []runtime.Object{fixture.LateClass("local", ""), fixture.LateClass("late", fixture.Provisioner),
		fixture.DevicesOf("gpu", "example.com/gpu"), fixture.Claim("shared", "late")}
	for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
		name := fmt.Sprint("n", i)
		objects = append(objects, fixture.Node(name, fmt.Sprintf("cpu=%d", rapid.IntRange(1, 4).Draw(t, "cpus"))),
			fixture.Slice(name, rapid.IntRange(0, 2).Draw(t, "devices")))
		for k := range rapid.IntRange(0, 2).Draw(t, "volumes") {
			size := fmt.Sprintf("%dGi", rapid.IntRange(1, 3).Draw(t, "size"))
			objects = append(objects, fixture.Volume(fmt.Sprintf("v%d-%d", i, k), "local", size, corev1.LabelHostname, name))
		}
	}
	for g := range rapid.IntRange(1, 3).Draw(t, "gangs") {
		name := fmt.Sprint("g", g)
		size := rapid.IntRange(1, 4).Draw(t, "size of the gang")
		objects = append(objects, fixture.Group(name, "default", int32(size)))
		for i := range size {
			pod := fmt.Sprintf("%s-%d", name, i)
			options := []func(*corev1.Pod){fixture.In(name), fixture.As("worker", i)}
			switch rapid.SampledFrom([]string{"none", "local", "late", "shared", "device", "resource"}).Draw(t, "needs") {
			case "local":
				objects = append(objects, fixture.Claim(pod, "local"))
				options = append(options, fixture.Mounting(pod))
			case "late":
				objects = append(objects, fixture.Claim(pod, "late"))
				options = append(options, fixture.Mounting(pod))
			case "shared":
				options = append(options, fixture.Mounting("shared"))
			case "device":
				objects = append(objects, fixture.DeviceClaim(pod, "gpu", 1))
				options = append(options, fixture.Using(pod))
			case "resource":
				options = append(options, fixture.Asks("cpu=1 example.com/gpu=1"))
			}
			objects = append(objects, fixture.Pod(pod, options...))
		}
	}
	return objects
}
