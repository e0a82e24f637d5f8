package harness_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// The words in which the scheduler says why a plan has ended.
const (
	isForbidden = "somebody forbids it"
	isLost      = "the room that was promised is not there any more"
	lacksPods   = "pods that room was made for are gone"
	isUnbound   = "the pod could not be bound"
	isGone      = "the job is gone"
	isTakenByH  = "job work/h of higher priority takes the room that was promised"
)

// plans is a cycle in which a job gets a plan: its pods have nodes there, and victims leave. Each is written POD@NODE.
func plans(job, placed, evicted string) *decision.Decisions {
	p := decision.PlanStart{Job: cluster.GroupID(fixture.Key(job))}
	for _, text := range strings.Fields(placed) {
		pod, node, _ := strings.Cut(text, "@")
		p.Nominations = append(p.Nominations, decision.Nomination{Pod: fixture.Key(pod), UID: types.UID(pod), Node: node})
	}
	for _, text := range strings.Fields(evicted) {
		pod, node, _ := strings.Cut(text, "@")
		p.Evictions = append(p.Evictions, decision.Eviction{Pod: fixture.Key(pod), UID: types.UID(pod), Node: node})
	}
	return &decision.Decisions{Plans: []decision.PlanStart{p}}
}

func ends(job, why string) *decision.Decisions {
	return &decision.Decisions{Ended: []decision.PlanEnd{{Job: cluster.GroupID(fixture.Key(job)), Why: why}}}
}

// spares is the end of a plan of which a pod stays. A text says that the API server refuses to evict it.
func spares(job, pod, refused string) *decision.Decisions {
	d := ends(job, isForbidden)
	d.Ended[0].Spared = []decision.Spared{{Pod: fixture.Key(pod), UID: types.UID(pod), Refused: refused}}
	return d
}

func binds(pod, job string) *decision.Decisions {
	return &decision.Decisions{Binds: []decision.Bind{{Pod: fixture.Key(pod), Job: cluster.GroupID(fixture.Key(job))}}}
}

// both is a cycle with the decisions of two.
func both(a, b *decision.Decisions) *decision.Decisions {
	return &decision.Decisions{Ended: append(a.Ended, b.Ended...), Plans: append(a.Plans, b.Plans...), Binds: append(a.Binds, b.Binds...)}
}

// step is a cycle, or something that happens before the next one.
type step func(v *harness.Vain, cycle int) string

func decides(d *decision.Decisions) step {
	return func(v *harness.Vain, cycle int) string { return v.Observe(cycle, d) }
}

func happens(what func(v *harness.Vain)) step {
	return func(v *harness.Vain, _ int) string { what(v); return "" }
}

// A plan of job g for pod g-0 evicts victim v from n1, and ends. Another pod, v2, gets the room and is evicted for g:
// in vain, unless a rule excuses it.
func TestEvictionsInVainAreFoundUnlessARuleExcusesThem(t *testing.T) {
	first := decides(plans("g", "g-0@n1", "v@n1"))
	again := decides(plans("g", "g-0@n1", "v2@n1"))
	taken := decides(both(ends("g", isForbidden), binds("v2", "low")))
	nothing := decides(&decision.Decisions{})
	forget := happens((*harness.Vain).Forget)
	of := func(job string) step { return happens(func(v *harness.Vain) { v.ForgetJob(job) }) }
	for name, test := range map[string]struct {
		steps    []step
		isInVain bool
	}{
		"the room goes to another pod and is taken back":         {[]step{first, taken, again}, true},
		"the pod was bound in a cycle after the end":             {[]step{first, decides(ends("g", isForbidden)), decides(binds("v2", "low")), again}, true},
		"the plan has not ended":                                 {[]step{first, decides(binds("v2", "low")), again}, false},
		"the pod was bound before the end":                       {[]step{first, decides(binds("v2", "low")), decides(ends("g", isForbidden)), again}, false},
		"the pod is on a node of no plan of the job":             {[]step{first, taken, decides(plans("g", "g-0@n2", "v2@n2"))}, false},
		"the pod is on a node that was promised without victims": {[]step{decides(plans("g", "g-0@n1", "")), taken, again}, true},
		"the pod is evicted for another job":                     {[]step{first, taken, decides(plans("h", "h-0@n1", "v2@n1"))}, false},

		"the pod has run for three cycles": {[]step{first, taken, nothing, nothing, again}, true},
		"the pod has run for longer":       {[]step{first, taken, nothing, nothing, nothing, again}, false},

		"something has happened since":                {[]step{first, taken, forget, again}, false},
		"something had happened before the plan":      {[]step{forget, first, taken, again}, true},
		"something has happened to the job since":     {[]step{first, taken, of("g"), again}, false},
		"something has happened to another job since": {[]step{first, taken, of("h"), again}, true},

		"a pod of the plan could not be bound, so the job paused": {[]step{first, decides(both(ends("g", isUnbound), binds("v2", "low"))), again}, false},
		"the job was gone, and a new one has its name":            {[]step{first, decides(both(ends("g", isGone), binds("v2", "low"))), again}, false},

		"its room goes to a job whose pod could not be bound": {
			[]step{first, decides(both(ends("h", isUnbound), both(ends("g", isTakenByH), binds("v2", "low")))), again}, false},
		"its room goes to another job": {[]step{first, decides(both(ends("g", isTakenByH), binds("v2", "low"))), again}, true},

		"the room was promised to the pod before": {[]step{first, decides(plans("low", "v2@n1", "")), taken, again}, false},
		"the room was promised to the pod in the cycle of the end": {
			[]step{first, decides(both(plans("low", "v2@n1", ""), both(ends("g", isForbidden), binds("v2", "low")))), again}, true},

		"a pod was gone, and another has come in its place": {
			[]step{first, decides(both(ends("g", lacksPods), binds("v2", "low"))), decides(plans("g", "g-1@n1", "v2@n1"))}, false},
		"a pod was gone, and the plan is for those that were left": {[]step{first, decides(both(ends("g", lacksPods), binds("v2", "low"))), again}, true},
		"another pod has come, but none was gone":                  {[]step{first, taken, decides(plans("g", "g-1@n1", "v2@n1"))}, true},

		"pods were evicted for another job since":                {[]step{first, taken, decides(plans("h", "h-0@n2", "x@n2")), again}, false},
		"pods were evicted for another job before the end":       {[]step{first, decides(plans("h", "h-0@n2", "x@n2")), taken, again}, true},
		"another job got a plan without evictions since":         {[]step{first, taken, decides(plans("h", "h-0@n2", "")), again}, true},
		"pods are evicted for another job in the same cycle":     {[]step{first, taken, decides(both(plans("g", "g-0@n1", "v2@n1"), plans("h", "h-0@n2", "x@n2")))}, true},
		"pods of the job itself had been evicted for it already": {[]step{first, taken, decides(plans("g", "g-0@n2", "x@n2")), decides(plans("g", "g-0@n2", "v2@n2"))}, true},

		"a pod that could not be evicted leaves with it": {
			[]step{first, decides(both(spares("g", "v", "no"), binds("v2", "low"))), decides(plans("g", "g-0@n1", "v@n1 v2@n1"))}, false},
		"a pod that could not be evicted stays": {[]step{first, decides(both(spares("g", "v", "no"), binds("v2", "low"))), again}, true},
		"a pod that nothing kept leaves with it": {
			[]step{first, decides(both(spares("g", "v", ""), binds("v2", "low"))), decides(plans("g", "g-0@n1", "v@n1 v2@n1"))}, true},

		"the job lost its room for the first time": {[]step{first, decides(both(ends("g", isLost), binds("v2", "low"))), again}, true},
		"the job lost its room twice in a row, so it paused": {
			[]step{first, decides(both(ends("g", isLost), plans("g", "g-0@n1", "w@n1"))), decides(both(ends("g", isLost), binds("v2", "low"))), again}, false},
		"the job lost room that no pods had left for it": {
			[]step{decides(plans("g", "g-0@n1", "")), decides(both(ends("g", isLost), plans("g", "g-0@n1", ""))), decides(both(ends("g", isLost), binds("v2", "low"))), again}, true},
		"a pod of the job was bound between two losses": {
			[]step{first, decides(ends("g", isLost)), decides(binds("g-1", "g")), first, decides(both(ends("g", isLost), binds("v2", "low"))), again}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var v harness.Vain
			said := ""
			for i, step := range test.steps {
				if said != "" {
					t.Fatalf("before step %d it says already: %s", i, said)
				}
				said = step(&v, i+1)
			}
			if (said != "") != test.isInVain {
				t.Errorf("it says %q", said)
			}
		})
	}
}
