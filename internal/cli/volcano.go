package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// volcanoText is what Volcano's programs say in their help of a command, and of the flags that they have.
type volcanoText struct {
	short, long string
	flags       map[string]string
}

// volcanoTexts are the texts by the path of a command, without vcctl. People and scripts know vcctl by them.
var volcanoTexts = map[string]volcanoText{
	"job":         {short: "vcctl command line operation job"},
	"job run":     {short: "run job by parameters from the command line", flags: jobRunTexts},
	"job list":    {short: "list job information", flags: jobListTexts},
	"job view":    {short: "show job information"},
	"job suspend": {short: "abort a job"},
	"job resume":  {short: "resume a job"},
	"job delete":  {short: "delete a job"},

	"queue":         {short: "Queue Operations"},
	"queue create":  {short: "creates queue", flags: map[string]string{"weight": "the weight of the queue", "state": "the state of queue"}},
	"queue delete":  {short: "delete queue"},
	"queue operate": {short: "operate queue", flags: map[string]string{"weight": "the weight of the queue", "action": "operate action to queue, valid actions are open, close, update"}},
	"queue list":    {short: "lists all the queue"},
	"queue get":     {short: "get a queue"},

	"jobflow":          {short: "vcctl command line operation jobflow"},
	"jobflow create":   {short: "create a jobflow", flags: flowTexts},
	"jobflow list":     {short: "list jobflows", flags: map[string]string{"all-namespaces": "list jobflows in all namespaces"}},
	"jobflow get":      {short: "get a jobflow"},
	"jobflow describe": {short: "describe a jobflow", flags: flowTexts},
	"jobflow delete":   {short: "delete a jobflow", flags: flowTexts},

	"jobtemplate":          {short: "vcctl command line operation jobtemplate"},
	"jobtemplate create":   {short: "create a jobtemplate", flags: templateTexts},
	"jobtemplate list":     {short: "list jobtemplates"},
	"jobtemplate get":      {short: "get a jobtemplate"},
	"jobtemplate describe": {short: "describe a jobtemplate", flags: templateTexts},
	"jobtemplate delete":   {short: "delete a jobtemplate", flags: templateTexts},

	"pod": {short: "vcctl command line operation pod"},
	"pod list": {short: "list pod information created by vcjob", flags: map[string]string{
		"queue": "list pod with specified queue name", "job": "list pod with specified job name", "all-namespaces": "list pods in all namespaces",
	}},

	"version": {short: "Print the version information", long: "Print the version information"},

	"vsub":     {short: "submit a job", flags: submitTexts},
	"vjobs":    {short: "view job information", long: "view information of a job with specified name or jobs from the same namespace", flags: jobListTexts},
	"vqueues":  {short: "view queue information", long: "view information of a queue with specified name or queues from the same namespace"},
	"vcancel":  {short: "cancel a job", long: "cancel a running, pending, or aborted job with specified name in default or specified namespace"},
	"vsuspend": {short: "suspend a job", long: "suspend a running or pending job with specified name in default or specified namespace"},
	"vresume":  {short: "resume a job"},
}

var jobRunTexts = map[string]string{
	"image": "the container image of job", "min": "the minimal available tasks of job", "replicas": "the total tasks of job",
	"requests": "the resource request of the task", "limits": "the resource limit of the task",
	"scheduler": "the scheduler for this job", "filename": "the yaml file of job",
}

// submitTexts are those of vsub, which reads no file and knows a command.
var submitTexts = map[string]string{
	"image": jobRunTexts["image"], "min": jobRunTexts["min"], "replicas": jobRunTexts["replicas"], "requests": jobRunTexts["requests"],
	"limits": jobRunTexts["limits"], "scheduler": jobRunTexts["scheduler"], "command": "the command of the job",
}

var (
	flowTexts = map[string]string{
		"filename": "the path to the YAML file containing the jobflow", "output": "the format of output",
	}
	templateTexts = map[string]string{
		"filename": "the path to the YAML file containing the job template", "output": "the format of output",
	}
)

var jobListTexts = map[string]string{
	"scheduler": "list job with specified scheduler name", "queue": "list job with specified queue name",
	"all-namespaces": "list jobs in all namespaces", "selector": "fuzzy matching jobName",
}

// speakAsVolcano gives the commands of one of Volcano's programs its usage lines, flags and descriptions. What Hekla
// adds works, and is left out of the help: that is compared by scripts, and hekla's own tells of it.
func speakAsVolcano(root *cobra.Command) {
	root.CompletionOptions.HiddenDefaultCmd = true
	root.Short, root.Example = "", ""
	// A group is no command of its own, and its other names need not be advertised.
	usage := strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}", 1)
	root.SetUsageTemplate(strings.Replace(usage, "{{if gt (len .Aliases) 0}}", "{{if false}}", 1))
	for _, command := range append(all(root), root) {
		path := strings.TrimPrefix(command.CommandPath(), "vcctl ")
		text, isKnown := volcanoTexts[path]
		if !isKnown {
			continue
		}
		command.Use, _, _ = strings.Cut(command.Use, " ")
		command.Short, command.Long, command.Example = text.short, text.long, ""
		kind, _, _ := strings.Cut(path, " ")
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if usage := text.flags[flag.Name]; usage != "" {
				flag.Usage = usage
			} else if usage := commonText(kind, flag.Name); usage != "" {
				flag.Usage = usage
			} else {
				flag.Hidden = true
			}
			switch flag.Name {
			case "namespace":
				flag.DefValue = "default"
			case "all-namespaces":
				flag.Shorthand = "" // it is understood, and not shown
			}
		})
	}
}

// commonText is what flags are called that many commands about a kind of object have.
func commonText(kind, flag string) string {
	object := map[string]string{"jobtemplate": "job template", "vqueues": "queue"}[kind]
	switch {
	case object != "":
	case strings.HasPrefix(kind, "v"):
		object = "job"
	default:
		object = kind
	}
	switch flag {
	case "name", "namespace":
		return "the " + flag + " of " + object
	case "master":
		return "the address of apiserver"
	case "kubeconfig":
		return "(optional) absolute path to the kubeconfig file"
	}
	return ""
}

// all are the commands below a command.
func all(command *cobra.Command) []*cobra.Command {
	var found []*cobra.Command
	for _, child := range command.Commands() {
		found = append(append(found, child), all(child)...)
	}
	return found
}
