package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

// phases are those that a probe may ask a task for.
var phases = []string{"Pending", "Running", "Succeeded", "Failed"}

// ValidateJobFlow says what makes a JobFlow impossible to run, with field and value, as far as its spec alone shows it.
func ValidateJobFlow(jobFlow *flowapi.JobFlow) field.ErrorList {
	path := field.NewPath("spec", "flows")
	flows := jobFlow.Spec.Flows
	if len(flows) == 0 {
		return field.ErrorList{field.Required(path, "a JobFlow needs at least one flow")}
	}
	var problems field.ErrorList
	names := sets.New[string]()
	for i := range flows {
		if names.Has(flows[i].Name) {
			problems = append(problems, field.Duplicate(path.Index(i).Child("name"), flows[i].Name))
		}
		names.Insert(flows[i].Name)
	}
	for i := range flows {
		problems = append(problems, validateName(jobFlow, flows[i].Name, path.Index(i).Child("name"))...)
		problems = append(problems, validateDependencies(flows[i].DependsOn, names, path.Index(i).Child("dependsOn"))...)
	}
	if cycle := cycleIn(flows); cycle != nil {
		problems = append(problems, field.Invalid(path, strings.Join(cycle, " → "),
			"jobflow Flow is not DAG: these flows wait for each other and could never start"))
	}
	supported := []flowapi.RetainPolicy{flowapi.Retain, flowapi.Delete}
	if policy := jobFlow.Spec.JobRetainPolicy; policy != "" && !slices.Contains(supported, policy) {
		problems = append(problems, field.NotSupported(field.NewPath("spec", "jobRetainPolicy"), policy, supported))
	}
	return problems
}

// validateName reports a flow that cannot be the name of a template, or whose Job could not be called as it must be.
func validateName(jobFlow *flowapi.JobFlow, name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "it names the JobTemplate")}
	}
	if messages := validation.IsDNS1123Subdomain(name); len(messages) > 0 {
		return field.ErrorList{field.Invalid(path, name, "it names a JobTemplate: "+messages[0])}
	}
	// A Job's name is on its pods as a label.
	for _, message := range validation.IsValidLabelValue(jobFlow.JobName(name)) {
		return field.ErrorList{field.Invalid(path, name, "its Job would be called "+jobFlow.JobName(name)+": "+message)}
	}
	return nil
}

func validateDependencies(depends *flowapi.DependsOn, names sets.Set[string], path *field.Path) field.ErrorList {
	if depends == nil {
		return nil
	}
	var problems field.ErrorList
	seen := sets.New[string]()
	for n, target := range depends.Targets {
		path := path.Child("targets").Index(n)
		switch {
		case !names.Has(target):
			problem := field.NotFound(path, target)
			problem.Detail = fmt.Sprintf("jobflow Flow is not DAG: vertex is not defined: %s: there is no flow of this name", target)
			problems = append(problems, problem)
		case seen.Has(target):
			problems = append(problems, field.Duplicate(path, target))
		}
		seen.Insert(target)
	}
	probe := depends.Probe
	if probe == nil {
		return problems
	}
	path = path.Child("probe")
	entries := len(probe.HttpGetList) + len(probe.TcpSocketList) + len(probe.TaskStatusList)
	if entries > 0 && len(depends.Targets) == 0 {
		problems = append(problems, field.Forbidden(path, "a probe asks the pods of the targets, and there are no targets"))
	}
	for n := range probe.HttpGetList {
		problems = append(problems, validateHTTP(&probe.HttpGetList[n], path.Child("httpGetList").Index(n))...)
	}
	for n := range probe.TcpSocketList {
		problems = append(problems, validatePort(probe.TcpSocketList[n].Port, path.Child("tcpSocketList").Index(n))...)
	}
	for n := range probe.TaskStatusList {
		if phase := probe.TaskStatusList[n].Phase; !slices.Contains(phases, phase) {
			problems = append(problems, field.NotSupported(path.Child("taskStatusList").Index(n).Child("phase"), phase, phases))
		}
	}
	return problems
}

func validateHTTP(get *flowapi.HttpGet, path *field.Path) field.ErrorList {
	problems := validatePort(get.Port, path)
	if get.Path != "" && !strings.HasPrefix(get.Path, "/") {
		problems = append(problems, field.Invalid(path.Child("path"), get.Path, "must begin with /"))
	}
	header := get.HTTPHeader
	if header.Name == "" && header.Value == "" {
		return problems
	}
	for _, message := range validation.IsHTTPHeaderName(header.Name) {
		problems = append(problems, field.Invalid(path.Child("httpHeader", "name"), header.Name, message))
	}
	if strings.ContainsAny(header.Value, "\r\n\x00") {
		problems = append(problems, field.Invalid(path.Child("httpHeader", "value"), header.Value, "must be one line"))
	}
	return problems
}

func validatePort(port int, path *field.Path) field.ErrorList {
	for _, message := range validation.IsValidPortNum(port) {
		return field.ErrorList{field.Invalid(path.Child("port"), port, message)}
	}
	return nil
}

// cycleIn returns flows each of which waits for the next, the first of them once more at the end, or nil.
func cycleIn(flows []flowapi.Flow) []string {
	targets, waiting := make(map[string][]string, len(flows)), map[string][]string{}
	var free []string
	left := sets.New[string]()
	for i := range flows {
		name := flows[i].Name
		left.Insert(name)
		if flows[i].DependsOn == nil || len(flows[i].DependsOn.Targets) == 0 {
			free = append(free, name)
			continue
		}
		targets[name] = flows[i].DependsOn.Targets
		for _, target := range targets[name] {
			waiting[target] = append(waiting[target], name)
		}
	}
	// Flows that wait for nothing are taken away, then those that waited for them alone, and so on. What is left over
	// waits for a circle or is in one. Walking along would do as well, but a chain of a thousand flows is deep.
	met := map[string]int{}
	for ; len(free) > 0; free = free[1:] {
		left.Delete(free[0])
		for _, name := range waiting[free[0]] {
			if met[name]++; met[name] == len(targets[name]) {
				free = append(free, name)
			}
		}
	}
	if left.Len() == 0 {
		return nil
	}
	// Along targets that are left over the way never ends, so it comes to a flow for the second time. It ends at
	// targets that do not exist, which are told of as such.
	place := map[string]int{}
	var way []string
	for name := sets.List(left)[0]; ; {
		if at, isAgain := place[name]; isAgain {
			return append(way[at:], name)
		}
		place[name] = len(way)
		way = append(way, name)
		next := slices.IndexFunc(targets[name], left.Has)
		if next < 0 {
			return nil
		}
		name = targets[name][next]
	}
}
