package workload

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/resources"
)

// Code is why a flavor does not fit, as in the condition QuotaReserved. A higher code is more severe.
type Code uint8

// The codes, from the mildest to the most severe.
const (
	TopologyPlacementFailed Code = iota + 1
	WaitingForQuota
	ExceedsMaxQuota
	NoMatchingFlavor
)

func (c Code) String() string {
	switch c {
	case TopologyPlacementFailed:
		return "TopologyPlacementFailed"
	case WaitingForQuota:
		return "WaitingForQuota"
	case ExceedsMaxQuota:
		return "ExceedsMaxQuota"
	case NoMatchingFlavor:
		return "NoMatchingFlavor"
	}
	return ""
}

// Reason says why a flavor does not fit. Its text is worked out only when it is read.
type Reason struct {
	Code     Code
	Flavor   string
	Resource string
	// Group is the position of the resource group, -1 for a resource that no group covers.
	Group int
	// Assumed, Asked and Most belong to ExceedsMaxQuota, Missing to WaitingForQuota.
	Assumed, Asked, Most, Missing int64
	// Part is what nodes have no room for. It belongs to TopologyPlacementFailed. Left and Nodes say for how many of
	// its pods, and what nodes say of them, if that was asked.
	Part  *Part
	Left  int32
	Nodes string
	// Text is the whole reason, if it has no numbers.
	Text string
}

func (r *Reason) String() string {
	// An amount that was cut to what fits is no limit that is missing.
	format := func(value int64) string { return resources.FormatAmount(corev1.ResourceName(r.Resource), value) }
	switch {
	case r.Text != "":
		return r.Text
	case r.Code == ExceedsMaxQuota:
		return fmt.Sprintf("insufficient quota for %s in flavor %s, previously considered podsets requests (%s) + current podset request (%s) > maximum capacity (%s)",
			r.Resource, r.Flavor, format(r.Assumed), format(r.Asked), format(r.Most))
	case r.Part != nil:
		return r.noRoom()
	case r.Code == WaitingForQuota:
		return fmt.Sprintf("insufficient unused quota for %s in flavor %s, %s more needed", r.Resource, r.Flavor, format(r.Missing))
	}
	return r.Code.String()
}

// noRoom says that nodes have no room.
func (r *Reason) noRoom() string {
	nodes, pods := "the nodes", fmt.Sprint(r.Part.Count)
	if r.Flavor != "" {
		nodes += " of flavor " + r.Flavor
	}
	if r.Nodes == "" {
		return fmt.Sprintf("no room on %s for %s pod(s)", nodes, pods)
	}
	return fmt.Sprintf("no room on %s for %d of %s pod(s): %s", nodes, r.Left, pods, r.Nodes)
}

// Refusal returns the reason and the message of an assignment that does not fit, as the condition QuotaReserved has
// them. Over the flavors of a group the mildest reason counts, over groups and pod sets the most severe.
func (a *Assignment) Refusal() (code Code, message string) {
	var said []string
	for i := range a.PodSets {
		p := &a.PodSets[i]
		if len(p.Reasons) == 0 {
			continue
		}
		code = max(code, p.code())
		texts := make([]string, len(p.Reasons))
		for j := range p.Reasons {
			texts[j] = p.Reasons[j].String()
		}
		slices.Sort(texts)
		said = append(said, fmt.Sprintf("couldn't assign flavors to pod set %s: %s", p.Name, strings.Join(slices.Compact(texts), ", ")))
	}
	return code, strings.Join(said, "; ")
}

// code is the most severe of what is the mildest reason of each group. A flavor counts with its most severe reason.
func (p *PodSetAssignment) code() (code Code) {
	type key struct {
		group  int
		flavor string
	}
	flavors := map[key]Code{}
	for i := range p.Reasons {
		r := &p.Reasons[i]
		k := key{r.Group, r.Flavor}
		flavors[k] = max(flavors[k], r.Code)
	}
	groups := map[int]Code{}
	for k, c := range flavors {
		if mildest, ok := groups[k.group]; !ok || c < mildest {
			groups[k.group] = c
		}
	}
	for _, c := range groups {
		code = max(code, c)
	}
	return code
}
