package standins

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/rations"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

const (
	// maxOfNamespace is how many stand-ins a namespace may have: each takes some hundred bytes.
	maxOfNamespace = 100_000
	// patience is how long held nodes are kept that the quotas do not allow: a quota shows a pod before or after the
	// pod itself.
	patience = 10 * time.Second
)

// LookAll counts again the jobs of a namespace that expect pods, because its quotas have changed.
func (k *StandIns) LookAll(namespace string) {
	for j := range k.byNamespace[namespace] {
		k.changed[j] = true
	}
}

// refusal says why a job may not have the pods that it still expects, nil if it may. The quotas of its namespace must
// have room for them, in addition to what is used and what stands in for pods of other jobs. What could not be created
// must not be held. missing returns how many of a podset are.
func (k *StandIns) refusal(j *cluster.Job, missing func(of *cluster.Podset) int) *verdict.Verdict {
	own := 0
	for i := range j.Expected.Podsets {
		own += missing(&j.Expected.Podsets[i])
	}
	if own == 0 {
		return nil
	}
	others := 0
	for other := range k.byNamespace[j.ID.Namespace] {
		if other != j {
			others += len(k.standInsOf(other))
		}
	}
	if own+others > maxOfNamespace {
		return &verdict.Verdict{Code: verdict.Refused, Subject: "namespace " + j.ID.Namespace, Help: verdict.HelpJob,
			Shortages: []verdict.Shortage{{Resource: corev1.ResourcePods, Need: int64(own), Have: int64(max(maxOfNamespace-others, 0))}},
			Detail:    "of pods of task groups that do not exist yet"}
	}
	for _, quota := range k.Quotas(j.ID.Namespace) {
		if short, details := k.shortages(quota, j, missing); short != nil {
			return &verdict.Verdict{Code: verdict.Refused, Subject: "ResourceQuota " + quota.Namespace + "/" + quota.Name, Help: verdict.HelpJob | verdict.HelpQueue,
				Shortages: short, Detail: strings.Join(details, "; ")}
		}
	}
	return nil
}

// shortages are what a quota has too little of for the pods that a job expects, with its limits.
func (k *StandIns) shortages(quota *corev1.ResourceQuota, j *cluster.Job, missing func(of *cluster.Podset) int) (short []verdict.Shortage, details []string) {
	hard := rations.Hard(quota)
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		m, isOfPods := rations.MeasureOf(name)
		if !isOfPods {
			continue
		}
		left, used := hard[name].DeepCopy(), quota.Status.Used[name]
		left.Sub(used)
		room, need := k.amount(m, left), int64(0)
		if left.Sign() < 0 {
			room = -1
		}
		for i := range j.Expected.Podsets {
			of := &j.Expected.Podsets[i]
			need += min(k.counted(quota, m, of.Template, missing(of)), resources.MaxQuantity-need)
		}
		for other := range k.byNamespace[j.ID.Namespace] {
			if other == j || room < 0 {
				continue
			}
			for _, t := range k.standInsOf(other) {
				room -= k.counted(quota, m, t.Pod, 1)
			}
		}
		if room < need {
			short = append(short, verdict.Shortage{Resource: m.Resource, Need: need, Have: max(room, 0)})
			details = append(details, fmt.Sprintf("of %s %s, %s used", name, resources.Format(m.Resource, k.amount(m, hard[name])), resources.Format(m.Resource, k.amount(m, used))))
		}
	}
	return short, details
}

// counted is what a line of a quota counts of some pods of a form. Of a pod with a limit that is not known it is at
// least the request.
func (k *StandIns) counted(quota *corev1.ResourceQuota, m rations.Measure, form *cluster.Pod, pods int) int64 {
	requests := form.Spec.Containers[0].Resources.Requests
	isBestEffort := requests.Cpu().IsZero() && requests.Memory().IsZero()
	if pods == 0 || !rations.Selects(quota, form.Spec.PriorityClassName, isBestEffort) {
		return 0
	}
	each := int64(1)
	if m.Resource != corev1.ResourcePods {
		each = k.amount(m, requests[m.Resource])
	}
	if each > math.MaxInt64/2/int64(pods) {
		return math.MaxInt64 / 2
	}
	return each * int64(pods)
}

// amount is a quantity in the unit of its resource.
func (k *StandIns) amount(m rations.Measure, quantity resource.Quantity) int64 {
	return k.Resources.Vector(corev1.ResourceList{m.Resource: quantity}).At(k.Resources.Dim(m.Resource))
}

// standInsOf are the stand-ins of a job that wait or hold a node.
func (k *StandIns) standInsOf(j *cluster.Job) []*cluster.Task {
	var all []*cluster.Task
	for _, t := range j.Internal.Tasks {
		if t.IsStandIn {
			all = append(all, t)
		}
	}
	return all
}

// keepWithinQuota makes a gang give up the nodes that it holds for pods which the quotas of its namespace have not
// allowed for a while.
func (k *StandIns) keepWithinQuota(now time.Time) {
	for _, j := range slices.SortedFunc(maps.Keys(k.beyond), func(a, b *cluster.Job) int { return a.ID.Compare(b.ID) }) {
		since := k.beyond[j]
		switch {
		case since.IsZero():
			k.beyond[j] = now
		case !now.Before(since.Add(patience)):
			delete(k.beyond, j)
			k.drop(j, func(t *cluster.Task) bool { return t.Status != cluster.Pipelined })
			k.TouchJob(j)
			k.Look(j)
		}
	}
}

// judge notes whether a gang that holds nodes may have the pods that it holds them for.
func (k *StandIns) judge(j *cluster.Job) {
	held := map[string]int{}
	for _, t := range k.standInsOf(j) {
		held[t.Role]++
	}
	switch _, isBeyond := k.beyond[j]; {
	case len(held) == 0 || k.refusal(j, func(of *cluster.Podset) int { return held[of.Name] }) == nil:
		delete(k.beyond, j)
	case !isBeyond:
		k.beyond[j] = time.Time{}
	}
}
