package shapes

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/podspec"
	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/resources"
)

// Transformation replaces a requested resource by others, or adds others to it.
type Transformation struct {
	Input corev1.ResourceName
	// Replaces says that the input does not count itself.
	Replaces bool
	// Outputs are for one unit of the input, or of the input times another resource.
	Outputs    corev1.ResourceList
	MultiplyBy corev1.ResourceName // "" if it is not multiplied
}

// Shape is what equal Workloads have in common. It is not changed.
type Shape struct {
	Key  string
	Sets []workload.PodSet
	// Problem says why nothing of this shape can be admitted, "" if it can.
	Problem string

	users int
}

// Counted says what of the requests counts for quotas.
type Counted struct {
	// ExcludePrefixes are the prefixes of the resources that do not count.
	ExcludePrefixes []string
	// Transformations say which resources count as others.
	Transformations []Transformation
}

// Table has the shapes of all Workloads.
type Table struct {
	// Counted says what of the requests counts. It concerns the shapes that are made afterwards.
	Counted Counted

	index  *resources.Index
	rules  rules
	shapes map[string]*Shape // by key
}

// NewTable returns an empty table. Dimensions are those of the index.
func NewTable(index *resources.Index) *Table {
	return &Table{index: index, shapes: map[string]*Shape{}}
}

// Of returns the shape of a Workload, which is shared with all equal ones. It must be given to [Table.Release].
func (t *Table) Of(w *settings.Workload) *Shape {
	templates := make([]*corev1.PodTemplateSpec, len(w.PodSets))
	hash := sha256.New()
	number := func(n int64) { hash.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) }
	text := func(b []byte) { number(int64(len(b))); hash.Write(b) }
	number(int64(w.Priority))
	ranges := t.rules.in(w.Namespace)
	for i := range w.PodSets {
		p := &w.PodSets[i]
		templates[i] = Slim(p.Template)
		podspec.Complete(&templates[i].Spec, t.rules.given(&templates[i].Spec, ranges))
		text([]byte(p.Name))
		number(int64(p.Count))
		number(int64(p.MinCount))
		number(int64(p.Reclaimable))
		for _, o := range []interface{ Marshal() ([]byte, error) }{&templates[i].ObjectMeta, &templates[i].Spec} {
			data, err := o.Marshal()
			if err != nil { // it was decoded from a form with fewer types
				data = []byte(err.Error())
			}
			text(data)
		}
	}
	refusal := problem(templates, ranges)
	text([]byte(refusal))
	key := string(hash.Sum(nil))
	s := t.shapes[key]
	if s == nil {
		s = &Shape{Key: key, Problem: refusal}
		for i := range w.PodSets {
			s.Sets = append(s.Sets, t.podSet(s, &w.PodSets[i], templates[i]))
		}
		t.shapes[key] = s
	}
	s.users++
	return s
}

// Release ends one use of a shape, which may be nil.
func (t *Table) Release(s *Shape) {
	if s == nil {
		return
	}
	if s.users--; s.users == 0 && t.shapes[s.Key] == s {
		delete(t.shapes, s.Key)
	}
}

// Count changes what of the requests counts. All shapes must be asked for again.
func (t *Table) Count(counted Counted) {
	t.Counted = counted
	clear(t.shapes)
}

// Slim is what of a template says where its pods may run and what they take, before the API server completes it.
func Slim(of *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	object := pods.New(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: of.Labels, Annotations: of.Annotations}, Spec: of.Spec}).Object()
	template := &corev1.PodTemplateSpec{ObjectMeta: object.ObjectMeta, Spec: object.Spec}
	template.Spec.RuntimeClassName = of.Spec.RuntimeClassName // its overhead counts
	return template
}

// podSet reads a pod set. Pods that have ended already are not among those that are asked for.
func (t *Table) podSet(s *Shape, p *settings.PodSet, template *corev1.PodTemplateSpec) workload.PodSet {
	set := workload.PodSet{Name: p.Name, Count: max(p.Count-p.Reclaimable, 0), Template: template}
	set.MinCount = min(p.MinCount, set.Count)
	list := podspec.Requests(&template.Spec)
	if len(list) > resources.MaxNames {
		s.Problem = fmt.Sprintf("resources validation failed: pod set %s requests %d resources, and at most %d are served", p.Name, len(list), resources.MaxNames)
		list = nil
	}
	list = t.Counted.of(list)
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if name == corev1.ResourcePods {
			continue // they are counted by the number of pods
		}
		set.Requests = append(set.Requests, resources.Amount{Dim: t.index.AskedDim(name), Value: resources.Saturated(name, list[name])})
	}
	slices.SortFunc(set.Requests, func(a, b resources.Amount) int { return int(a.Dim) - int(b.Dim) })
	set.Requests = slices.CompactFunc(set.Requests, func(a, b resources.Amount) bool { return a.Dim == b.Dim }) // resources that no queue has
	return set
}

// of is what of the requests counts.
func (c *Counted) of(list corev1.ResourceList) corev1.ResourceList {
	counted := corev1.ResourceList{}
	for name, quantity := range list {
		if !slices.ContainsFunc(c.ExcludePrefixes, func(prefix string) bool { return strings.HasPrefix(string(name), prefix) }) {
			counted[name] = quantity
		}
	}
	if len(c.Transformations) == 0 {
		return counted
	}
	transformed := maps.Clone(counted)
	for i := range c.Transformations {
		t := &c.Transformations[i]
		quantity, is := counted[t.Input]
		if !is {
			continue
		}
		if t.Replaces {
			delete(transformed, t.Input)
		}
		for output, each := range t.Outputs {
			sum := transformed[output]
			sum.Add(times(quantity, each))
			if by, is := counted[t.MultiplyBy]; is && t.MultiplyBy != "" {
				sum = transformed[output]
				sum.Add(times(times(quantity, each), by))
			}
			transformed[output] = sum
		}
	}
	return transformed
}

// times multiplies quantities. What is larger than any amount stays so.
func times(a, b resource.Quantity) resource.Quantity {
	const most = 1e18 // no amount of any resource that is less than this is lost, and larger ones fit nowhere
	if product := a.AsApproximateFloat64() * b.AsApproximateFloat64(); product >= most || product <= -most {
		return *resource.NewQuantity(most, resource.DecimalSI)
	}
	x := a.DeepCopy()
	x.AsDec().Mul(x.AsDec(), b.AsDec())
	return x
}
