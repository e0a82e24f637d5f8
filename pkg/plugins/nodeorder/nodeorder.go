package nodeorder

import (
	"errors"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// Name is the name of the plugin in the configuration.
const Name = "nodeorder"

// kubeScores are the scores of kube-scheduler's plugins, by the argument with their weight.
var kubeScores = []struct {
	argument, plugin string
	weight           int
}{
	{"nodeaffinity.weight", "NodeAffinity", 2},
	{"podaffinity.weight", "InterPodAffinity", 2},
	{"tainttoleration.weight", "TaintToleration", 3},
	{"imagelocality.weight", "ImageLocality", 1},
	{"podtopologyspread.weight", "PodTopologySpread", 2},
}

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	weight := func(name string, value int, doc string) conf.Argument {
		return conf.Argument{Name: name, Kind: conf.Int, Default: value, Check: notNegative, Doc: doc}
	}
	arguments := []conf.Argument{
		weight("leastrequested.weight", 1, "Prefers nodes with more free CPU and memory."),
		weight("mostrequested.weight", 0, "Prefers nodes with less free CPU and memory."),
		weight("balancedresource.weight", 1, "Prefers nodes whose use of CPU and memory the pod makes more alike."),
	}
	for _, s := range kubeScores {
		arguments = append(arguments, weight(s.argument, s.weight, "Weight of the kube-scheduler's "+s.plugin+" score."))
	}
	return framework.PluginFactory{Name: Name, Spec: conf.Spec{Arguments: arguments}, New: newPlugin}
}

func notNegative(value any) error {
	if n, ok := value.(int); ok && n < 0 {
		return errors.New("zero or more")
	}
	return nil
}

type plugin struct {
	least, most, balanced int64
	kube                  []framework.KubeScore
}

func newPlugin(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
	p := &plugin{
		least:    int64(arguments.Int("leastrequested.weight")),
		most:     int64(arguments.Int("mostrequested.weight")),
		balanced: int64(arguments.Int("balancedresource.weight")),
	}
	for _, s := range kubeScores {
		if weight := int64(arguments.Int(s.argument)); weight > 0 {
			p.kube = append(p.kube, framework.KubeScore{Name: s.plugin, Weight: weight})
		}
	}
	return p, nil
}

func (*plugin) Name() string { return Name }

func (p *plugin) KubeScores() []framework.KubeScore { return p.kube }

// points converts millionths of the best score to the unit of scores.
const points = 100 * framework.Point

func (p *plugin) ScoreNode(k *cluster.Class, n *cluster.Node) int64 {
	cpu, memory := n.Allocatable.At(resources.CPU), n.Allocatable.At(resources.Memory)
	var score int64
	if p.least+p.most > 0 {
		used := mean(
			millionths(n.NonZero[0]+k.NonZero[0], cpu), cpu > 0,
			millionths(n.NonZero[1]+k.NonZero[1], memory), memory > 0)
		score += (p.least*(resources.Million-used) + p.most*used) * points / resources.Million
	}
	requestsBoth := k.Request.At(resources.CPU) > 0 || k.Request.At(resources.Memory) > 0
	if p.balanced > 0 && requestsBoth && cpu > 0 && memory > 0 {
		with := balance(n.Used.At(resources.CPU)+k.Request.At(resources.CPU), cpu,
			n.Used.At(resources.Memory)+k.Request.At(resources.Memory), memory)
		without := balance(n.Used.At(resources.CPU), cpu, n.Used.At(resources.Memory), memory)
		// Half the score if the balance stays as it is, all if the pod makes it perfect, as in kube-scheduler since
		// 1.35.
		score += p.balanced * (resources.Million/2 + (resources.Million/2+with-without)/2) * points / resources.Million
	}
	return score
}

// balance is one minus the standard deviation of two fractions, which is half their difference.
func balance(cpuUsed, cpu, memoryUsed, memory int64) int64 {
	difference := millionths(cpuUsed, cpu) - millionths(memoryUsed, memory)
	return resources.Million - max(difference, -difference)/2
}

func millionths(a, b int64) int64 {
	if b <= 0 {
		return 0
	}
	return resources.Millionths(a, b)
}

// mean is the mean of those of two values that count.
func mean(a int64, countA bool, b int64, countB bool) int64 {
	switch {
	case countA && countB:
		return (a + b) / 2
	case countA:
		return a
	}
	return b
}
