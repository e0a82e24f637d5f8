package audit

import (
	"encoding/json"
	"fmt"
	"io"

	"hekla.sh/hekla/pkg/apis/bounds"
)

// Know tells of objects that were there when the log began: a list, or documents one after another, as kubectl get
// prints them. It must be called before [Auditor.Read], and returns how many nodes are among them. A node whose pods
// are among them is judged as one that came later. Objects of kinds that no rule looks at are passed over.
func (a *Auditor) Know(from io.Reader) (int, error) {
	var nodes []*node
	for document, err := range bounds.Documents(from) {
		if err != nil {
			return 0, err
		}
		m := &meta{}
		if err := bounds.UnmarshalKubernetesJSON(document.JSON, m); err != nil {
			return 0, document.Problem(err)
		}
		items := m.Items
		if items == nil {
			items = []json.RawMessage{document.JSON}
		}
		for _, item := range items {
			n, err := a.know(item)
			if err != nil {
				return 0, err
			}
			if n != nil {
				nodes = append(nodes, n)
			}
		}
	}
	for _, n := range nodes {
		a.nodes[n.name].isWhole = true
	}
	return len(nodes), nil
}

// know takes in one object. It returns the node if it is one.
func (a *Auditor) know(document []byte) (*node, error) {
	m := &meta{}
	if err := bounds.UnmarshalKubernetesJSON(document, m); err != nil {
		return nil, err
	}
	k, isLooked := kindNames[m.Kind]
	if !isLooked {
		return nil, nil
	}
	object, err := decode(k, document)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", m.Kind, key{m.Metadata.Namespace, m.Metadata.Name}, err)
	}
	c := &change{kind: k, key: key{m.Metadata.Namespace, m.Metadata.Name}, uid: m.Metadata.UID, object: object}
	if k == aPod {
		a.takePod(c)
	} else {
		a.observe(c)
	}
	n, _ := object.(*node)
	return n, nil
}

// kindNames are the kinds as objects name them.
var kindNames = map[string]kind{
	"Pod": aPod, "Node": aNode, "PodGroup": aPodGroup, "Queue": aQueue, "PodDisruptionBudget": aBudget,
	"ClusterQueue": aClusterQueue, "Cohort": aCohort, "Workload": aWorkload,
	"LocalQueue": aSetting, "ResourceFlavor": aSetting, "Topology": aSetting, "AdmissionCheck": aSetting,
}
