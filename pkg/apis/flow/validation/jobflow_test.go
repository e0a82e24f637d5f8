package validation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
	"hekla.sh/hekla/test/fixture"
)

func TestASpecThatCannotBeCarriedOutIsRefusedWithFieldAndValue(t *testing.T) {
	waits := fixture.Flows("a, b: a")
	withProbe := func(probe flowapi.Probe) []flowapi.Flow {
		return []flowapi.Flow{waits[0], fixture.Probed(fixture.Flows("b: a")[0], probe)}
	}
	http := func(get flowapi.HttpGet) []flowapi.Flow {
		return withProbe(flowapi.Probe{HttpGetList: []flowapi.HttpGet{get}})
	}
	for name, test := range map[string]struct {
		flows []flowapi.Flow
		want  string
	}{
		"flows one after another":           {fixture.Flows("a, b: a, c: a b, d: c"), ""},
		"in whatever order they are listed": {fixture.Flows("c: b, b: a, a"), ""},
		"none":                              {nil, "spec.flows: Required value: a JobFlow needs at least one flow"},
		"two of a name":                     {fixture.Flows("a, a"), `spec.flows[1].name: Duplicate value: "a"`},
		"no name":                           {fixture.Flows("a, "), "spec.flows[1].name: Required value"},
		"no name of a template":             {fixture.Flows("A_b"), `spec.flows[0].name: Invalid value: "A_b": it names a JobTemplate`},
		"a name too long for a Job":         {fixture.Flows(strings.Repeat("a", 62)), "its Job would be called f-aaa"},
		"a target that does not exist":      {fixture.Flows("a, b: a c"), `spec.flows[1].dependsOn.targets[1]: Not found: "c"`},
		"a target twice":                    {fixture.Flows("a, b: a a"), `spec.flows[1].dependsOn.targets[1]: Duplicate value: "a"`},
		"a flow that waits for itself":      {fixture.Flows("a: a"), `spec.flows: Invalid value: "a → a"`},
		"a circle":                          {fixture.Flows("x, a: x c, b: a, c: b, d: c"), `spec.flows: Invalid value: "a → c → b → a": jobflow Flow is not DAG: these flows wait for each other`},
		"a probe of nobody": {[]flowapi.Flow{{Name: "a", DependsOn: &flowapi.DependsOn{Probe: &flowapi.Probe{
			TcpSocketList: []flowapi.TcpSocket{{Port: 1}}}}}}, "spec.flows[0].dependsOn.probe: Forbidden: a probe asks the pods of the targets"},
		"an empty probe":         {withProbe(flowapi.Probe{}), ""},
		"a request to a port":    {http(flowapi.HttpGet{Port: 80, Path: "/ready?a=b"}), ""},
		"a request to no port":   {http(flowapi.HttpGet{}), "spec.flows[1].dependsOn.probe.httpGetList[0].port: Invalid value: 0"},
		"a path without a slash": {http(flowapi.HttpGet{Port: 80, Path: "ready"}), `httpGetList[0].path: Invalid value: "ready": must begin with /`},
		"a header without a name": {http(flowapi.HttpGet{Port: 80, HTTPHeader: corev1.HTTPHeader{Value: "x"}}),
			`httpGetList[0].httpHeader.name: Invalid value: ""`},
		"a header of two lines": {http(flowapi.HttpGet{Port: 80, HTTPHeader: corev1.HTTPHeader{Name: "X", Value: "a\r\nHost: b"}}),
			"httpGetList[0].httpHeader.value: Invalid value"},
		"a connection to no port":     {withProbe(flowapi.Probe{TcpSocketList: []flowapi.TcpSocket{{}}}), "tcpSocketList[0].port: Invalid value: 0"},
		"a port that is none":         {withProbe(flowapi.Probe{TcpSocketList: []flowapi.TcpSocket{{Port: 70000}}}), "tcpSocketList[0].port: Invalid value: 70000"},
		"a phase that pods are in":    {withProbe(flowapi.Probe{TaskStatusList: []flowapi.TaskStatus{{Phase: "Running"}}}), ""},
		"a phase that no pod is in":   {withProbe(flowapi.Probe{TaskStatusList: []flowapi.TaskStatus{{Phase: "Completed"}}}), `taskStatusList[0].phase: Unsupported value: "Completed"`},
		"a task status without phase": {withProbe(flowapi.Probe{TaskStatusList: []flowapi.TaskStatus{{TaskName: "a"}}}), `taskStatusList[0].phase: Unsupported value: ""`},
	} {
		t.Run(name, func(t *testing.T) {
			problems := ValidateJobFlow(fixture.JobFlow(test.flows...))
			switch {
			case test.want == "" && len(problems) > 0:
				t.Errorf("refused: %v", problems)
			case test.want != "" && len(problems) != 1, test.want != "" && !strings.Contains(problems[0].Error(), test.want):
				t.Errorf("%v, want only %q", problems, test.want)
			}
		})
	}
	jobFlow := fixture.JobFlow(waits...)
	jobFlow.Spec.JobRetainPolicy = "keep"
	if problems := ValidateJobFlow(jobFlow); len(problems) != 1 || !strings.Contains(problems[0].Error(), `spec.jobRetainPolicy: Unsupported value: "keep"`) {
		t.Errorf("%v", problems)
	}
}

func TestACircleIsFoundWhereverThereIsOne(t *testing.T) {
	circles := 0
	rapid.Check(t, func(t *rapid.T) {
		flows := make([]flowapi.Flow, rapid.IntRange(1, 8).Draw(t, "flows"))
		for i := range flows {
			flows[i].Name = fmt.Sprint(i)
		}
		for i := range flows {
			var targets []string
			for j := range flows {
				// Arrows back are rare, so that half of the graphs have no circle.
				if j < i && rapid.IntRange(0, 2).Draw(t, "depends") == 0 || j >= i && rapid.IntRange(0, 25).Draw(t, "back") == 25 {
					targets = append(targets, flows[j].Name)
				}
			}
			flows[i].DependsOn = &flowapi.DependsOn{Targets: targets}
		}
		targets := func(name string) []string {
			at := slices.IndexFunc(flows, func(flow flowapi.Flow) bool { return flow.Name == name })
			return flows[at].DependsOn.Targets
		}
		cycle := cycleIn(flows)
		if isCircular(flows, targets) != (cycle != nil) {
			t.Fatalf("%v has the circle %v", flows, cycle)
		}
		if cycle == nil {
			return
		}
		circles++
		if len(cycle) < 2 || cycle[0] != cycle[len(cycle)-1] {
			t.Fatalf("%v is no circle", cycle)
		}
		for i := range cycle[1:] {
			if !slices.Contains(targets(cycle[i]), cycle[i+1]) {
				t.Fatalf("in %v %s does not wait for %s", cycle, cycle[i], cycle[i+1])
			}
		}
	})
	if circles == 0 {
		t.Error("no graph had a circle")
	}
}

// isCircular walks from every flow along all its targets, as far as there are flows.
func isCircular(flows []flowapi.Flow, targets func(string) []string) bool {
	for i := range flows {
		reached := map[string]bool{}
		next := targets(flows[i].Name)
		for range flows {
			var beyond []string
			for _, name := range next {
				if !reached[name] {
					reached[name] = true
					beyond = append(beyond, targets(name)...)
				}
			}
			next = beyond
		}
		if reached[flows[i].Name] {
			return true
		}
	}
	return false
}

func TestALongChainIsCheckedInNoTime(t *testing.T) {
	const length = 1000
	flows := make([]flowapi.Flow, length)
	for i := range flows {
		flows[i] = fixture.Flows(fmt.Sprintf("n%d: n%d", i, i+1))[0]
	}
	flows[length-1].DependsOn = nil
	if problems := ValidateJobFlow(fixture.JobFlow(flows...)); len(problems) > 0 {
		t.Error(problems)
	}
	flows[length-1].DependsOn = &flowapi.DependsOn{Targets: []string{"n0"}}
	if cycle := cycleIn(flows); len(cycle) != length+1 {
		t.Errorf("the circle has %d flows", len(cycle))
	}
}
