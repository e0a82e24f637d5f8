package cluster
import ("testing";"pgregory.net/rapid";"slices")
func TestZZ(t *testing.T) {
	plans, victims, promised, changed := 0,0,0,0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(drawn(t)); w.fill()
		steps := map[string]func(*rapid.T){}
		for name, action := range w.actions() { steps[name] = func(*rapid.T) {
			var vs []*Task
			for _, p := range w.model.Plans() { vs = append(vs, p.Victims...) }
			n := w.plans; action()
			if w.plans > n { plans += w.plans-n; for _, p := range w.model.Plans() { victims += len(p.Victims); promised += len(p.Promised()) } }
			if name[:3]=="set" { for _, v := range vs { if !slices.Contains(victimsOf(w.model), v) { changed++ } } }
		} }
		t.Repeat(steps)
	})
	t.Logf("plans %d victims %d promised %d changed %d", plans, victims, promised, changed)
}
func victimsOf(c *Cluster) (all []*Task) { for _, p := range c.Plans() { all = append(all, p.Victims...) }; return }
