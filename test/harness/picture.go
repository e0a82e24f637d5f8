package harness

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"hekla.sh/hekla/pkg/cluster/model"
)

// Picture lists everything that a model holds, unexported fields included, one value a line: two pictures are equal if
// the models are, bit for bit. Left out is what [model.Cluster.Undo] does not promise to restore: generations, which
// only grow, and the order of unsorted lists.
func Picture(c *model.Cluster) string {
	p := picture{owned: map[uintptr]string{}, seen: map[uintptr]bool{}}
	root := reflect.ValueOf(c).Elem()
	p.own(root)
	p.draw("model", root)
	slices.Sort(p.lines)
	return strings.Join(p.lines, "\n")
}

type picture struct {
	owned map[uintptr]string // what a map of the model names: nodes, tasks, jobs, queues, plans
	seen  map[uintptr]bool
	lines []string
}

// Fields that are left out, by their names.
var (
	growing   = []string{"generation", "Generation", "changes", "log", "trial", "served", "Overlook", "before", "amounts"}
	unsorted  = []string{"Tasks", "waiting", "attended", "unsettled", "jobs", "touched", "touchedJobs", "freeSlots"}
	positions = []string{"InNode", "InJob", "WaitingAt", "RestingAt"}
)

// own names what the maps of a struct and of those embedded in it point to.
func (p *picture) own(v reflect.Value) {
	for i := range v.NumField() {
		field, name := v.Field(i), v.Type().Field(i).Name
		switch {
		case field.Kind() == reflect.Struct && !slices.Contains(growing, name):
			p.own(field)
		case field.Kind() == reflect.Map && field.Type().Elem().Kind() == reflect.Pointer && isOurs(field.Type().Elem().Elem()):
			for entries := field.MapRange(); entries.Next(); {
				p.owned[entries.Value().Pointer()] = fmt.Sprintf("%s[%v]", name, textOf(entries.Key()))
			}
		}
	}
}

// isOurs reports whether a type is one of the scheduler's: objects of the API are compared by identity.
func isOurs(t reflect.Type) bool {
	return strings.HasPrefix(t.PkgPath(), "hekla.sh/hekla/") && !strings.Contains(t.PkgPath(), "/apis/")
}

// draw adds the lines of a value.
func (p *picture) draw(path string, v reflect.Value) {
	last := path[strings.LastIndexAny(path, ".]")+1:]
	switch v.Kind() {
	case reflect.Pointer:
		p.follow(path, v)
	case reflect.Interface:
		if !v.IsNil() {
			p.draw(path, v.Elem())
		}
	case reflect.Struct:
		if v.Type().PkgPath() == "time" && v.Type().Name() == "Time" {
			p.say(path, fmt.Sprint(v.Field(0).Uint(), " ", v.Field(1).Int()))
			return
		}
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; !slices.Contains(growing, name) && !slices.Contains(positions, name) {
				p.draw(path+"."+name, v.Field(i))
			}
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(textOf(a), textOf(b)) })
		for _, of := range keys {
			key := fmt.Sprintf("%s[%s]", path, textOf(of))
			if entry := v.MapIndex(of); entry.Kind() == reflect.Pointer && p.owned[entry.Pointer()] != "" && strings.HasSuffix(key, p.owned[entry.Pointer()]) {
				p.draw(key, entry.Elem())
			} else {
				p.draw(key, entry)
			}
		}
	case reflect.Slice, reflect.Array:
		if slices.Contains(unsorted, last) {
			p.say(path, strings.Join(slices.Sorted(func(yield func(string) bool) {
				for i := range v.Len() {
					yield(p.nameOf(v.Index(i)))
				}
			}), " "))
			return
		}
		for i := range v.Len() {
			p.draw(fmt.Sprintf("%s.%d", path, i), v.Index(i))
		}
	case reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Invalid:
	default:
		if !v.IsZero() { // a vector may end in zeros, and a counter that is not there is zero
			p.say(path, textOf(v))
		}
	}
}

func (p *picture) follow(path string, v reflect.Value) {
	switch name := p.owned[v.Pointer()]; {
	case v.IsNil():
	case name != "":
		p.say(path, name)
	case !isOurs(v.Type().Elem()) || p.seen[v.Pointer()]:
		p.say(path, fmt.Sprintf("%#x", v.Pointer()))
	default:
		p.seen[v.Pointer()] = true
		p.draw(path, v.Elem())
	}
}

func (p *picture) nameOf(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		return cmp.Or(p.owned[v.Pointer()], fmt.Sprintf("%#x", v.Pointer()))
	}
	return textOf(v)
}

func (p *picture) say(path, text string) {
	if text != "" {
		p.lines = append(p.lines, path+" "+text)
	}
}

// textOf is a value without pointers as text.
func textOf(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			parts = append(parts, textOf(v.Field(i)))
		}
		return strings.Join(parts, "/")
	case reflect.Pointer:
		return fmt.Sprintf("%#x", v.Pointer())
	case reflect.Slice, reflect.Array:
		var parts []string
		for i := range v.Len() {
			parts = append(parts, textOf(v.Index(i)))
		}
		return strings.Join(parts, ",")
	}
	return fmt.Sprint(v)
}
