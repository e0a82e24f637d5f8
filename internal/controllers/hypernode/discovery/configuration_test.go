package discovery

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sources is a configuration with these entries of networkTopologyDiscovery.
func sources(entries ...string) string {
	return "networkTopologyDiscovery:\n- " + strings.Join(entries, "\n- ") + "\n"
}

// byLabel is the source label with these networkTopologyTypes.
func byLabel(types string) string {
	return sources("{source: label, enabled: true, config: {networkTopologyTypes: " + types + "}}")
}

const (
	hostname = "{nodeLabel: kubernetes.io/hostname}"
	twoTiers = "{a3: [{nodeLabel: example.com/row}, {nodeLabel: example.com/rack}, " + hostname + "]}"
)

func TestTheLabelsOfATopologyAreReadFromTheClosestUp(t *testing.T) {
	two := []Topology{
		{Name: "a2", Labels: []string{"tor"}},
		{Name: "a3", Labels: []string{"example.com/rack", "example.com/row"}},
	}
	ufm := `networkTopologyDiscovery[0].source: "ufm" is not supported, for it asks devices of a vendor; ` +
		"HyperNodes are discovered by the source label, or written by hand"
	for name, test := range map[string]struct {
		data string
		want Configuration
	}{
		"nothing":        {"", Configuration{Interval: time.Hour}},
		"only comments":  {"# networkTopologyDiscovery:\n", Configuration{Interval: time.Hour}},
		"no sources":     {"networkTopologyDiscovery:\n", Configuration{Interval: time.Hour}},
		"not enabled":    {sources("{source: label, config: {}}"), Configuration{Interval: time.Hour}},
		"switched off":   {sources("{source: ufm, enabled: false, interval: 10m}", "{source: roce}"), Configuration{Interval: time.Hour}},
		"topologies":     {byLabel("\n      {a3: [{nodeLabel: example.com/row}, {nodeLabel: example.com/rack}, " + hostname + "], a2: [{nodeLabel: tor}, " + hostname + "]}"), Configuration{Interval: time.Hour, Topologies: two}},
		"a list of them": {byLabel("[" + twoTiers + ", {a2: [{nodeLabel: tor}, " + hostname + "]}]"), Configuration{Interval: time.Hour, Topologies: two}},
		"an interval":    {sources("{source: label, interval: 90s, enabled: true, config: {networkTopologyTypes: " + twoTiers + "}}"), Configuration{Interval: 90 * time.Second, Topologies: two[1:]}},
		"the others go on": {sources("{source: ufm, enabled: true, interval: 1m, credentials: {secretRef: {name: a}}, config: {endpoint: https://ufm.example.com}}",
			"{source: label, enabled: true, config: {networkTopologyTypes: "+twoTiers+"}}"),
			Configuration{Interval: time.Hour, Topologies: two[1:], Refused: []string{ufm}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Errorf("read is (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsWrongInAConfigurationIsNamed(t *testing.T) {
	const types = "networkTopologyDiscovery[0].config.networkTopologyTypes"
	for _, test := range []struct{ data, want string }{
		{"a: [", "not valid YAML: "},
		{"a: b\n---\nc: d\n", "more than one YAML document"},
		{"- a\n", "line 1: the configuration: expected a mapping, not a list"},
		{"networkTopology: []\n", `line 1: the configuration: there is no key "networkTopology"; there are networkTopologyDiscovery`},
		{"networkTopologyDiscovery: label\n", `line 1: networkTopologyDiscovery: expected a list, not "label"`},
		{sources("{source: labels, enabled: true}"), `line 2: networkTopologyDiscovery[0].source: there is no source "labels"; there is label`},
		{sources("{enabled: true}"), `networkTopologyDiscovery[0].source: there is no source ""; there is label`},
		{sources("{source: [label]}"), "networkTopologyDiscovery[0].source: expected the name of a source, not a list"},
		{sources("{source: label, enable: true}"), `there is no key "enable"; there are source, enabled, interval, credentials, config`},
		{sources("{source: label, source: ufm}"), `networkTopologyDiscovery[0]: the key "source" stands here twice`},
		{sources("{source: label, enabled: perhaps}"), `networkTopologyDiscovery[0].enabled: expected true or false, not "perhaps"`},
		{sources("{source: ufm, interval: soon}"), `networkTopologyDiscovery[0].interval: expected a duration such as 10m, not "soon"`},
		{sources("{source: label, interval: 10ms}"), `networkTopologyDiscovery[0].interval: "10ms" is less than 1s`},
		{sources("{source: label, interval: -1h}"), `networkTopologyDiscovery[0].interval: "-1h" is less than 1s`},
		{sources("{source: label, enabled: true, credentials: {secretRef: {name: a}}, config: {networkTopologyTypes: " + twoTiers + "}}"),
			`networkTopologyDiscovery[0].credentials: the source "label" needs no credentials`},
		{sources("{source: label, enabled: true, config: {networkTopologyTypes: "+twoTiers+"}}",
			"{source: label, enabled: true, config: {networkTopologyTypes: "+twoTiers+"}}"),
			`line 3: networkTopologyDiscovery[1]: the source "label" is enabled twice`},
		{sources("{source: label, enabled: true}"), types + ": a topology is needed"},
		{sources("{source: label, enabled: true, config: {endpoint: a}}"), `networkTopologyDiscovery[0].config: there is no key "endpoint"; there are networkTopologyTypes`},
		{byLabel("rack"), types + `: expected a mapping, not "rack"`},
		{byLabel("{a: }"), types + ".a: expected a list of nodeLabel"},
		{byLabel("{a: {levels: []}}"), types + ".a: expected a list, not a mapping"},
		{byLabel("{a: [rack]}"), types + `.a[0]: expected a mapping, not "rack"`},
		{byLabel("{a: [{label: rack}, " + hostname + "]}"), types + `.a[0]: there is no key "label"; there are nodeLabel`},
		{byLabel("{a: [{nodeLabel: 'the rack'}, " + hostname + "]}"), types + `.a[0].nodeLabel: "the rack" is no key of a label: `},
		{byLabel("{a: [{nodeLabel: rack}, {nodeLabel: rack}, " + hostname + "]}"), types + `.a[1].nodeLabel: "rack" stands here twice`},
		{byLabel("{a: [{nodeLabel: volcano.sh/network-topology-source}, " + hostname + "]}"), types + `.a[0].nodeLabel: "volcano.sh/network-topology-source" says who makes`},
		{byLabel("{a: [{nodeLabel: row}, {nodeLabel: rack}]}"),
			types + `.a: the last nodeLabel stands for the nodes themselves and must be "kubernetes.io/hostname", not "rack"`},
		{byLabel("{a: [" + hostname + "]}"), types + `.a: a nodeLabel above "kubernetes.io/hostname" is needed`},
		{byLabel("{a-name-of-21-characters-: [{nodeLabel: rack}, " + hostname + "]}"), "the name has 24 characters; 20 are the most"},
		{byLabel("{a.: [{nodeLabel: rack}, " + hostname + "]}"), `.a.: "a." cannot be a part of the names of HyperNodes, which would begin with hypernode-a.-tier1-`},
		{byLabel("{a_b: [{nodeLabel: rack}, " + hostname + "], a-b: [{nodeLabel: row}, " + hostname + "]}"), `"a-b" and "a_b" are the same in the names of HyperNodes`},
	} {
		c, err := Parse(test.data)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("of\n%s\nis read %+v, and said is\n%v\nwant\n%s", test.data, c, err, test.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(byLabel(twoTiers))
	f.Add("networkTopologyDiscovery: [{source: &a label, config: *a}]")
	f.Fuzz(func(t *testing.T, data string) {
		c, err := Parse(data)
		if err != nil {
			return
		}
		for _, topology := range c.Topologies {
			if len(topology.Labels) == 0 || prefix(topology.Name, 1) == "" {
				t.Errorf("%q is a topology of nothing: %+v", data, topology)
			}
		}
	})
}
