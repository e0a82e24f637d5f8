package cache

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hekla.sh/hekla/pkg/cluster"

	"hekla.sh/hekla/pkg/resources"
)

// unordered are the lists whose order says nothing, and that undo may restore in another.
var unordered = []string{"NodeInternals.Tasks"}

// A dump is the whole model as plain data, to be compared with go-cmp. It is made by reflection, so that a field that
// is added later is compared too, unless it is named below. Parts of the model are shown once, where the model keeps
// them, and by name everywhere else.

// leftOut are the fields that undo does not restore: they only grow, or are lists of what is to be looked at again.
var leftOut = []string{
	"base.writer", "Plans.model", "attention.generation", "attention.changes", "Cluster.log", "attention.touchedJobs",
	"Tree.touched", "Node.Generation", "Node.SpecGeneration", "JobInternals.IsTouched", "Node.touched", "Node.Freed", "Node.Exposed",
	"Class.matched", "Class.matchedWhen", "Time.loc", "term.selector", "Stamp.Counts", "World.Counts", "TaskInternals.InNode", "TaskInternals.Budgets",
	"Budget.selector", "Store.changes", "Served.index", "Subgroup.parent", "Subgroup.of", "policy.selector", "nodes.topology",
	"base.pods", "base.version", "Table.amounts", "Tracker.last", "Cluster.talliedAt", "ledger.shared", "Cache.ungrouped", "base.forgotten", "NodeInternals.Tallied", "NodeInternals.TalliedUsed",
	"Backlog.unsettled", "Backlog.attended", "Backlog.resting", "Backlog.before", "Backlog.seen", "Backlog.highest", "Backlog.admissions", "JobInternals.Backlog", "JobInternals.Room",
	"Registry.listener", // who is told, which is the reader that has it
}

// holders are the parts of the model that hold others by name.
var holders = []string{"registry", "ledger", "Plans"}

// onlyGrows are the fields that undo leaves longer than they were; Settle makes them short again.
var onlyGrows = []string{"Backlog.waiting", "JobInternals.IsWaiting"}

// arrival are the fields that show in which order, or how often, something happened.
var arrival = []string{
	"registry.Resources", "Registry.index", "Queues.Index", "base.index", "registry.freeSlots", "registry.bySlot", "Terms.generation",
	"registry.namespacesGeneration", "attention.world", "Set.generation", "Plans.model", "Plans.cancelled", "Plans.ended", "Plans.interrupted", "refusals.refused", "Task.Refusal", "Plans.adopted", "Plan.Order", "PlanInternals.Nominated", "Plan.Lost", "PlanInternals.HasTerms", "Plans.withTerms",
	"Queue.members", "JobInternals.InQueue", "Table.classes", "Table.index", "Table.served", "registry.ranksAreStale", "Tree.stale", "Tree.slots", "Tree.free", "Tree.root", "Node.slot", "Node.root", "Table.IsStale", "Table.keys", "Cache.keysAreStale", "Node.Slot", "TaskInternals.InJob",
	"JobInternals.Version", "PlanInternals.Seen", "JobInternals.Judged", "JobInternals.LookedAt", "Job.Postponed", "JobInternals.Postponed", "Job.NotBefore", "JobInternals.Failures", "JobInternals.Losses", "JobInternals.Late", "Cache.late", "Job.Admission", "Job.BarredUntil", "Job.BarredFor", "Job.Verdict", "Class.key", "Class.Pod", "Class.Plain",
}

// exactly dumps the model bit for bit.
func exactly(c *Cache) any {
	return newDumper(c, true, slices.Concat(leftOut, onlyGrows)).home(reflect.ValueOf(c))
}

// meaning dumps all that decisions are made from, and nothing of how it came to be.
func meaning(c *Cache) any {
	return newDumper(c, false, slices.Concat(leftOut, arrival)).home(reflect.ValueOf(c))
}

// classmates lists which tasks share a class.
func classmates(c *Cache) []string {
	members := map[*cluster.Class][]string{}
	for _, t := range tasksOf(c) {
		key := t.Key()
		if t.Status == cluster.Pending {
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

// tasksOf returns all tasks, in no particular order.
func tasksOf(c *Cache) (all []*cluster.Task) {
	c.EachTask(func(t *cluster.Task) { all = append(all, t) })
	return all
}

type dumper struct {
	cluster *Cache
	exact   bool
	without map[string]bool
	names   map[uintptr]string
	tasks   map[uintptr]*cluster.Task
}

func newDumper(c *Cache, exact bool, without []string) *dumper {
	d := &dumper{cluster: c, exact: exact, without: map[string]bool{}, names: map[uintptr]string{}, tasks: map[uintptr]*cluster.Task{}}
	for _, field := range without {
		d.without[field] = true
	}
	name := func(pointer any, kind, name string) { d.names[reflect.ValueOf(pointer).Pointer()] = kind + " " + name }
	name(c.base, "the", "base")
	for _, n := range c.Nodes() {
		name(n, "node", n.Name)
	}
	for _, t := range tasksOf(c) {
		name(t, "task", t.Key().String())
		d.tasks[reflect.ValueOf(t).Pointer()] = t
	}
	c.writer.Jobs.Each(func(j *cluster.Job) {
		name(j, "job", j.ID.String())
		for _, g := range j.Subgroups() {
			name(g, "subgroup", j.ID.String()+" "+g.Name())
		}
	})
	for _, h := range c.HyperNodes() {
		name(h, "hypernode", h.Name)
	}
	for _, q := range c.Queues() {
		name(q, "queue", q.Name)
	}
	for _, t := range tasksOf(c) {
		for _, k := range []*cluster.Class{t.Class, t.Class.Plain} {
			name(k, "class", reflect.ValueOf(k).Elem().FieldByName("key").String())
		}
	}
	for _, p := range c.Plans().All() {
		name(p, "plan", p.ID)
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

func (d *dumper) fields(v reflect.Value, task *cluster.Task) any {
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
		case full == "Cache.base", full == "base.Cluster":
			all[field.Name] = d.home(v.Field(i))
		case slices.Contains(holders, v.Type().Name()) && v.Field(i).Kind() == reflect.Map:
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

// class dumps what a task's class says of it. The class of a task that has its node may be that in which it waited, or
// a plainer one: only what it takes counts then.
func (d *dumper) class(v reflect.Value, task *cluster.Task) any {
	all, _ := d.home(v).(map[string]any)
	delete(all, "users")
	delete(all, "Constraints") // part of its key, which may list labels that have ceased to matter
	if task.Status != cluster.Pending && task.Status != cluster.Gated {
		delete(all, "HasPorts")
		delete(all, "Selection")
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
	case v.Type() == reflect.TypeFor[*cluster.Budget]():
		return d.value(v.Elem()) // shown where the model keeps it alone
	case v.Type().Elem().PkgPath() == reflect.TypeFor[cluster.Job]().PkgPath() && v.Type().Elem().Kind() == reflect.Struct:
		return "a " + v.Type().Elem().Name() + " that the model does not hold"
	}
	return d.value(v.Elem())
}

// vector names the resources, whose dimensions depend on which was seen first, and drops zeros, which a vector may or
// may not hold.
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
	fieldsOf(reflect.TypeFor[Cache](), names, map[reflect.Type]bool{})
	for _, name := range slices.Concat(unordered, leftOut, onlyGrows, arrival) {
		if !names[name] {
			t.Errorf("no part of the model has a field %s", name)
		}
	}
}
