package cluster

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hekla.sh/hekla/pkg/resources"
)

// unordered are the lists whose order says nothing, and that undo may restore in another.
var unordered = []string{"Node.tasks"}

// A dump is the whole model as plain data, to be compared with go-cmp. It is made by reflection, so that a field that is
// added later is compared too, unless it is named below. Parts of the model are shown once, where the model keeps them,
// and by name everywhere else.

// leftOut are the fields that undo does not restore: they only grow, or are lists of what is to be looked at again.
var leftOut = []string{
	"Plans.model", "Cluster.generation", "Cluster.changes", "Cluster.log", "Cluster.touchedJobs",
	"Tree.touched", "Node.Generation", "Node.SpecGeneration", "Job.touched", "Node.touched",
	"Class.matched", "Class.matchedWhen", "Time.loc", "term.selector", "Stamp.Counts", "World.Counts", "Task.inNode", "Task.budgets",
	"Budget.selector", "Store.changes", "Served.index", "SubgroupPolicy.selector", "Cluster.topology",
	"Cluster.talliedAt", "Cluster.sharesMore", "Cluster.ungrouped", "Cluster.forgotten", "Node.tallied", "Node.talliedUsed",
}

// onlyGrows are the fields that undo leaves longer than they were; Settle makes them short again.
var onlyGrows = []string{"Cluster.waiting", "Job.waiting"}

// arrival are the fields that show in which order, or how often, something happened.
var arrival = []string{
	"Cluster.Resources", "Cluster.freeSlots", "Cluster.bySlot", "Terms.generation",
	"Cluster.namespacesGeneration", "Cluster.world", "Set.generation", "Plans.model", "Plans.cancelled", "Plans.interrupted", "Cluster.refused", "Task.Refusal", "Plans.adopted", "Plan.Order", "Plan.nominated", "Plan.Lost", "Plan.hasTerms", "Plans.withTerms",
	"Table.classes", "Table.index", "Table.served", "Cluster.ranksAreStale", "Tree.stale", "Tree.slots", "Tree.free", "Tree.root", "Node.slot", "Node.root", "Table.IsStale", "Table.keys", "Cluster.keysAreStale", "Node.Slot", "Task.inJob",
	"Job.version", "Plan.seen", "Job.judged", "Job.lookedAt", "Job.Postponed", "Job.postponed", "Job.NotBefore", "Job.failures", "Job.Admission", "Job.BarredUntil", "Job.Verdict", "Class.key", "Class.Pod", "Class.Plain",
}

// exactly dumps the model bit for bit.
func exactly(c *Cluster) any {
	return newDumper(c, true, slices.Concat(leftOut, onlyGrows)).home(reflect.ValueOf(c))
}

// meaning dumps all that decisions are made from, and nothing of how it came to be.
func meaning(c *Cluster) any {
	return newDumper(c, false, slices.Concat(leftOut, arrival)).home(reflect.ValueOf(c))
}

// classmates lists which tasks share a class.
func classmates(c *Cluster) []string {
	members := map[*Class][]string{}
	for key, t := range c.tasks {
		if t.Status == Pending {
			members[t.Class] = append(members[t.Class], key.Name)
		}
	}
	var all []string
	for _, names := range members {
		slices.Sort(names)
		all = append(all, strings.Join(names, " "))
	}
	slices.Sort(all)
	return all
}

type dumper struct {
	cluster *Cluster
	exact   bool
	without map[string]bool
	names   map[uintptr]string
	tasks   map[uintptr]*Task
}

func newDumper(c *Cluster, exact bool, without []string) *dumper {
	d := &dumper{cluster: c, exact: exact, without: map[string]bool{}, names: map[uintptr]string{}, tasks: map[uintptr]*Task{}}
	for _, field := range without {
		d.without[field] = true
	}
	name := func(pointer any, kind, name string) { d.names[reflect.ValueOf(pointer).Pointer()] = kind + " " + name }
	for key, n := range c.nodes {
		name(n, "node", key)
	}
	for key, t := range c.tasks {
		name(t, "task", key.String())
		d.tasks[reflect.ValueOf(t).Pointer()] = t
	}
	for key, j := range c.jobs {
		name(j, "job", key.String())
	}
	for _, j := range c.jobs {
		for _, g := range j.Subgroups() {
			name(g, "subgroup", j.ID.String()+" "+g.Name())
		}
	}
	for _, h := range c.hyperNodes {
		name(h, "hypernode", h.Name)
	}
	for key, q := range c.queues {
		name(q, "queue", key)
	}
	for _, t := range c.tasks {
		for _, k := range []*Class{t.Class, t.Class.Plain} {
			name(k, "class", reflect.ValueOf(k).Elem().FieldByName("key").String())
		}
	}
	for id, p := range c.plans.inForce {
		name(p, "plan", id)
	}
	return d
}

// home dumps what a pointer points to.
func (d *dumper) home(v reflect.Value) any {
	if v.IsNil() {
		return nil
	}
	return d.fields(v.Elem(), d.tasks[v.Pointer()])
}

func (d *dumper) fields(v reflect.Value, task *Task) any {
	all := map[string]any{}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		full := v.Type().Name() + "." + field.Name
		switch {
		case d.without[full]:
		case slices.Contains(unordered, full):
			all[field.Name] = sorted(d.value(v.Field(i)))
		case full == "Task.Class" && !d.exact:
			all[field.Name] = d.class(v.Field(i), task)
		case (v.Type() == reflect.TypeFor[Cluster]() || v.Type() == reflect.TypeFor[Plans]()) && v.Field(i).Kind() == reflect.Map:
			homes := map[string]any{}
			for entries := v.Field(i).MapRange(); entries.Next(); {
				value := entries.Value()
				if value.Kind() == reflect.Pointer && !isObject(value.Type()) {
					homes[fmt.Sprint(entries.Key())] = d.home(value)
				} else {
					homes[fmt.Sprint(entries.Key())] = d.value(value)
				}
			}
			all[field.Name] = homes
		default:
			if value := d.value(v.Field(i)); value != nil {
				all[field.Name] = value
			}
		}
	}
	return all
}

// class dumps what a task's class says of it. The class of a task that has its node may be that in which it waited, or a
// plainer one: only what it takes counts then.
func (d *dumper) class(v reflect.Value, task *Task) any {
	all, _ := d.home(v).(map[string]any)
	delete(all, "users")
	if task.Status != Pending && task.Status != Gated {
		delete(all, "HasPorts")
		delete(all, "Constraints")
		delete(all, "HasTerms")
		delete(all, "Belonging")
	}
	return all
}

// isObject reports whether a pointer type points to an object of the API.
func isObject(t reflect.Type) bool {
	if t.Elem().Kind() != reflect.Struct {
		return false
	}
	_, ok := t.Elem().FieldByName("ResourceVersion")
	return ok
}

// value dumps anything. Nothing is nil, whether it is nil or empty.
func (d *dumper) value(v reflect.Value) any {
	switch v.Type() {
	case reflect.TypeFor[resources.Vector]():
		return d.vector(v)
	case reflect.TypeFor[resources.Limits]():
		return d.limits(v)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return d.pointer(v)
	case reflect.Struct:
		return d.fields(v, nil)
	case reflect.Slice, reflect.Array:
		return d.list(v)
	case reflect.Map:
		all := map[string]any{}
		for entries := v.MapRange(); entries.Next(); {
			if value := d.value(entries.Value()); value != nil {
				all[fmt.Sprint(entries.Key())] = value
			}
		}
		if len(all) == 0 {
			return nil
		}
		return all
	}
	if v.IsZero() {
		return nil
	}
	return fmt.Sprint(v)
}

func (d *dumper) pointer(v reflect.Value) any {
	switch {
	case v.IsNil():
		return nil
	case isObject(v.Type()):
		object := v.Elem()
		return fmt.Sprint(object.FieldByName("Name"), " ", object.FieldByName("UID"), " ", object.FieldByName("ResourceVersion"))
	case d.names[v.Pointer()] != "":
		return d.names[v.Pointer()]
	case v.Type() == reflect.TypeFor[*Budget]():
		return d.value(v.Elem()) // shown where the model keeps it alone
	case v.Type().Elem().PkgPath() == reflect.TypeFor[Cluster]().PkgPath() && v.Type().Elem().Kind() == reflect.Struct:
		return "a " + v.Type().Elem().Name() + " that the model does not hold"
	}
	return d.value(v.Elem())
}

// vector names the resources, whose dimensions depend on which was seen first, and drops zeros, which a vector may or may
// not hold.
func (d *dumper) vector(v reflect.Value) any {
	all := map[string]int64{}
	for i := range v.Len() {
		if amount := v.Index(i).Int(); amount != 0 {
			all[string(d.cluster.Resources.Name(resources.Dim(i)))] = amount
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

func (d *dumper) limits(v reflect.Value) any {
	all := map[string]int64{}
	for i := range v.FieldByName("present").Len() {
		if v.FieldByName("present").Index(i).Bool() {
			all[string(d.cluster.Resources.Name(resources.Dim(i)))] = v.FieldByName("values").Index(i).Int()
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

func (d *dumper) list(v reflect.Value) any {
	all, empty := []any{}, true
	for i := range v.Len() {
		value := d.value(v.Index(i))
		all = append(all, value)
		empty = empty && value == nil
	}
	if empty {
		return nil
	}
	if !d.exact && v.Kind() == reflect.Slice {
		return sorted(all)
	}
	return all
}

func sorted(list any) any {
	all, _ := list.([]any)
	slices.SortFunc(all, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return all
}

// fieldsOf collects the names of the fields of a type and of all that it is made of, like Node.tasks.
func fieldsOf(of reflect.Type, names map[string]bool, seen map[reflect.Type]bool) {
	if seen[of] {
		return
	}
	seen[of] = true
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		fieldsOf(of.Elem(), names, seen)
	case reflect.Map:
		fieldsOf(of.Key(), names, seen)
		fieldsOf(of.Elem(), names, seen)
	case reflect.Struct:
		for i := range of.NumField() {
			names[of.Name()+"."+of.Field(i).Name] = true
			fieldsOf(of.Field(i).Type, names, seen)
		}
	}
}

func TestWhatADumpLeavesOutExists(t *testing.T) {
	names := map[string]bool{}
	fieldsOf(reflect.TypeFor[Cluster](), names, map[reflect.Type]bool{})
	for _, name := range slices.Concat(unordered, leftOut, onlyGrows, arrival) {
		if !names[name] {
			t.Errorf("no part of the model has a field %s", name)
		}
	}
}
