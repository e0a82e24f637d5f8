package conf

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hekla.sh/hekla/internal/similar"
)

// metricsSchema is what Volcano's plugins read in the `metrics` block.
var metricsSchema = []Argument{
	{Name: "type", Kind: String, Check: oneOf("prometheus", "prometheus_adaptor", "elasticsearch", "metrics_server")},
	{Name: "address", Kind: String},
	{Name: "interval", Kind: Duration},
	{Name: "tls.insecureSkipVerify", Kind: Bool},
	{Name: "elasticsearch.index", Kind: String},
	{Name: "elasticsearch.username", Kind: String},
	{Name: "elasticsearch.password", Kind: String},
	{Name: "elasticsearch.hostnameFieldName", Kind: String},
}

// oneOf checks for one of a few values.
func oneOf(values ...string) func(any) error {
	return func(value any) error {
		if text, ok := value.(string); ok && slices.Contains(values, text) {
			return nil
		}
		return errors.New(strings.Join(values, " or "))
	}
}

// metrics reads the `metrics` block. It is checked like arguments, and kept as strings, as Volcano's plugins read it.
// As in Volcano, the plugins that read it also work without it.
func (p *parser) metrics(e entry, tiers []Tier) map[string]string {
	metrics := map[string]string{}
	if e.value != nil {
		for key, value := range p.arguments(e, "metrics", metricsSchema).values {
			metrics[key] = fmt.Sprint(value)
		}
	}
	var readers []Plugin
	for _, tier := range tiers {
		for _, plugin := range tier.Plugins {
			if p.catalogue.Plugins[plugin.Name].ReadsMetrics {
				readers = append(readers, plugin)
			}
		}
	}
	switch {
	case len(metrics) == 0:
		for _, plugin := range readers {
			p.notice(plugin.Line, "plugin %s has no effect: %s", plugin.Name, nothingMeasured)
		}
		return nil
	case len(readers) == 0:
		p.notice(e.line, "metrics has no effect: no plugin of the tiers reads it")
		return nil
	}
	p.checkAddress(e, metrics)
	return metrics
}

// nothingMeasured is why a plugin that reads loads has no effect.
const nothingMeasured = "how busy nodes are is not measured, since there is no metrics block to say by whom"

// checkAddress requires the address of a source, unless the source is read through the API server.
func (p *parser) checkAddress(e entry, metrics map[string]string) {
	switch metrics["type"] {
	case "", "prometheus", "elasticsearch":
		if metrics["address"] == "" {
			p.report(e.line, "metrics", "address is missing; expected the URL of the %s", cmp.Or(metrics["type"], "prometheus"))
		}
	}
}

func (p *parser) compatibility(e entry) Compatibility {
	c := Compatibility{QueuePriority: QueuePriorityStrict, VictimVote: VictimVoteStrict}
	if e.value == nil {
		return c
	}
	const subject = "compatibility"
	for _, e := range p.mapping(e, "") {
		switch e.key {
		case "preemptableByDefault":
			c.PreemptableByDefault, _ = p.read(e, subject, Bool).(bool)
		case "queuePriority":
			c.QueuePriority = choice(p, e, subject, QueuePriorityStrict, QueuePriorityOrder)
		case "victimVote":
			c.VictimVote = choice(p, e, subject, VictimVoteStrict, VictimVoteUpstream)
		default:
			p.unknown(e, subject, "preemptableByDefault", "queuePriority", "victimVote")
		}
	}
	return c
}

// choice reads a value that is one of a few.
func choice[T ~string](p *parser, e entry, subject string, values ...T) T {
	if value := T(e.value.Value); slices.Contains(values, value) {
		return value
	}
	names := make([]string, len(values))
	for i, value := range values {
		names[i] = string(value)
	}
	expected := "expected " + strings.Join(names, " or ")
	if meant := similar.Nearest(e.value.Value, names); meant != "" {
		expected += fmt.Sprintf("; did you mean %q?", meant)
	}
	p.report(e.line, subject, "%s is %s: %s", e.key, show(e.value), expected)
	return values[0]
}
