package propose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"hekla.sh/hekla/pkg/resources"
)

// smallerRequests looks for the largest requests with which the job would start, of each resource that is short.
func (p *proposer) smallerRequests() {
	if !p.lacksRoom() {
		return
	}
	like := p.pending[0]
	for i := range p.pending {
		if t := p.pending[i].task; t != nil && t.Key().String() == p.job.Pod {
			like = p.pending[i]
		}
	}
	var short []resources.Dim
	for d, need := range like.request {
		if name := p.job.Cluster.Resources.Name(resources.Dim(d)); need > 0 && slices.Contains(p.job.Short, string(name)) {
			short = append(short, resources.Dim(d))
		}
	}
	if len(short) == 0 {
		return
	}
	// First all of them by the same part, then each by itself as large as it may be.
	const steps = 8
	request, best := map[resources.Dim]int64{}, []string(nil)
	low, high := 0, steps
	for high-low > 1 {
		middle := (low + high) / 2
		tried := map[resources.Dim]int64{}
		for _, d := range short {
			tried[d] = part(p.job.Cluster.Resources.Name(d), like.request.At(d), middle, steps)
		}
		if nodes, ok := p.starts(p.scaled(like, tried)); ok {
			low, best, request = middle, nodes, tried
		} else {
			high = middle
		}
	}
	if low == 0 {
		return
	}
	for _, d := range short {
		above := part(p.job.Cluster.Resources.Name(d), like.request.At(d), low+1, steps)
		if len(short) > 1 {
			above = like.request.At(d)
		}
		largest := p.pieces(d, request[d], above)
		sort.Search(len(largest), func(i int) bool { // of those that start, the last
			tried := maps.Clone(request)
			tried[d] = largest[i]
			nodes, ok := p.starts(p.scaled(like, tried))
			if ok && largest[i] > request[d] {
				best, request = nodes, tried
			}
			return !ok
		})
	}
	message := "would start now if its pods requested less:"
	for i, d := range short {
		name := p.job.Cluster.Resources.Name(d)
		if i > 0 {
			message += ","
		}
		message += fmt.Sprintf(" %s %s instead of %s", name, resources.Format(name, request[d]), resources.Format(name, like.request.At(d)))
	}
	p.found = append(p.found, Proposal{Kind: "smallerRequests", Starts: true, Nodes: best, Message: message})
}

func (p *proposer) lacksRoom() bool {
	if p.job.IsPendingAdmission() {
		return len(p.job.Short) > 0
	}
	return p.job.IsTooLarge || p.job.Verdict != nil && p.job.Verdict.Code.LacksRoom() && len(p.job.Short) > 0
}

// maxPieces is how many sizes of a request are looked at.
const maxPieces = 64

// pieces are the amounts from one to below another of which some just fill what is free on a node, or what is left of
// the limit that stops the job, in order. The most that a pod may request is one of them, unless something else is in
// the way; so there are further ones between.
func (p *proposer) pieces(d resources.Dim, from, to int64) (all []int64) {
	for _, n := range p.job.Cluster.Nodes() {
		free := max(n.Free(d), 0)
		for pods := int64(1); pods <= int64(len(p.pending)) && free/pods > from; pods++ {
			if piece := free / pods; piece < to {
				all = append(all, piece)
			}
		}
	}
	if v := p.job.Verdict; v != nil { // what is left of a limit
		for _, short := range v.Shortages {
			if short.Resource != p.job.Cluster.Resources.Name(d) {
				continue
			}
			for pods := int64(1); pods <= int64(len(p.pending)); pods++ {
				if piece := short.Have / pods; piece > from && piece < to {
					all = append(all, piece)
				}
			}
		}
	}
	for i := int64(1); i < 8; i++ {
		if between := from + (to-from)*i/8; between > from {
			all = append(all, between)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if skipped := len(all) - maxPieces; skipped > 0 {
		kept := make([]int64, 0, maxPieces)
		for i := range maxPieces {
			kept = append(kept, all[i*(len(all)-1)/(maxPieces-1)])
		}
		all = kept
	}
	return all
}

// part is a part of an amount, in whole devices if it is one of those, and one at least.
func part(name corev1.ResourceName, amount int64, of, all int) int64 {
	if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
		return max(amount/int64(all)*int64(of), 1)
	}
	return max(amount*int64(of)/int64(all), 1)
}

// scaled is the job with smaller requests in all pods that request as much as one: so much of each resource.
func (p *proposer) scaled(like pod, request map[resources.Dim]int64) variant {
	v := p.variant()
	index := p.job.Cluster.Resources
	var sum resources.Vector
	for i, object := range v.pods {
		now := p.pending[i].request.Clone()
		for d, wanted := range request {
			whole := now.At(d)
			if whole < like.request.At(d) {
				continue
			}
			scaleContainers(object, index.Name(d), wanted, whole)
			now.Set(d, wanted)
		}
		if i < max(p.job.MinMember, 1) {
			sum.Add(now)
		}
	}
	v.group.Spec.MinResources = nil
	if p.job.IsPendingAdmission() {
		least := index.List(sum)
		v.group.Spec.MinResources = &least
	}
	return v
}

// scaleContainers makes the requests and limits of the containers of a pod smaller by the same part.
func scaleContainers(pod *corev1.Pod, name corev1.ResourceName, wanted, whole int64) {
	for c := range pod.Spec.Containers {
		container := &pod.Spec.Containers[c]
		for _, list := range []corev1.ResourceList{container.Resources.Requests, container.Resources.Limits} {
			amount, ok := list[name]
			switch {
			case !ok:
			case name == corev1.ResourceCPU:
				list[name] = *resource.NewMilliQuantity(scale(amount.MilliValue(), wanted, whole), amount.Format)
			default:
				list[name] = *resource.NewQuantity(scale(amount.Value(), wanted, whole), amount.Format)
			}
		}
	}
}

// scale is a part of an amount, which may be large.
func scale(amount, wanted, whole int64) int64 {
	if amount == whole {
		return wanted
	}
	return cmp.Or(int64(float64(amount)*(float64(wanted)/float64(whole))), 1)
}
