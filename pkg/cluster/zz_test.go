package cluster
import ("testing";"pgregory.net/rapid")
func TestZZ(t *testing.T){
 steps:=map[string]int{}; checks:=0; tasks:=0
 maxTasks, binding := 0, 0
 rapid.Check(t, func(t *rapid.T) {
  checks++
  w := newWorld(drawn(t))
  m := map[string]func(*rapid.T){}
  for name, action := range w.actions() { m[name]=func(*rapid.T){ steps[name]++; action(); tasks+=len(w.model.tasks); maxTasks=max(maxTasks,len(w.model.tasks)); for _, x := range w.model.tasks { if x.Status==Binding {binding++} } } }
  t.Repeat(m)
 })
 t.Log(checks, steps, tasks, maxTasks, binding)
}
