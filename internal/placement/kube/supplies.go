package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/storage/ephemeral"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"

	"hekla.sh/hekla/internal/placement/supply"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/verdict"
)

// Supplies asks the plugins for volumes and devices about a class that needs some. It is valid as long as the class,
// and always answers for the current model.
type Supplies struct {
	plugins *Plugins
	pod     *corev1.Pod

	lasting   pluginStates // of plugins that only look at volumes and devices
	lastingAt uint64       // the state of these for which it is valid, counted from 1
	users     pluginStates // of plugins that also look at which pods use them
	usersAt   uint64
	podsAt    uint64 // how far Cluster.Changes had been followed then

	cut int // how many searches for devices were cut off since volumes or devices have changed

	nodes int // about how many nodes the plugins keep answers
}

// Nodes is about how many nodes the plugins keep answers, at most: that is what a question takes of memory.
func (s *Supplies) Nodes() int { return s.nodes }

// pluginStates are the states of some plugins for a pod.
type pluginStates struct {
	state   fwk.CycleState
	refusal verdict.NodeRefusal // of a plugin that refuses every node
	filters []fwk.FilterPlugin
}

// AskSupplies returns the question about a class. It reads nothing before the first answer.
func (p *Plugins) AskSupplies(k *cluster.Class) *Supplies { return &Supplies{plugins: p, pod: k.Pod} }

// askPlugins runs PreFilter of the plugins of a reach.
func (s *Supplies) askPlugins(r reach) pluginStates {
	h := pluginStates{state: framework.NewCycleState()}
	if r == looksAtSupplies {
		s.nodes = 0
	}
	s.plugins.mirror.shelf.Ask(s.pod)
	for _, filter := range s.plugins.filters[r] {
		if h.refusal = s.plugins.preFilter(filter, h.state, s.pod, nil, &h.filters); !h.refusal.IsNone() {
			return h
		}
	}
	return h
}

// follow updates the volumes and devices of the plugins.
func (s *Supplies) follow() {
	if at := s.plugins.mirror.shelf.Follow() + 1; s.lastingAt != at {
		s.cut = 0
		s.lasting, s.lastingAt = s.askPlugins(looksAtSupplies), at
	}
}

// Lasting returns why the class cannot run on a node whatever pods are there, in the words of VolumeBinding, VolumeZone
// and DynamicResources. It is none if it can.
func (s *Supplies) Lasting(n *cluster.Node) verdict.NodeRefusal {
	s.follow()
	if !s.lasting.refusal.IsNone() {
		return s.lasting.refusal
	}
	r := s.plugins.mirror.of(n)
	if !r.exists() {
		return unknown
	}
	s.nodes = min(s.nodes+1, len(s.plugins.mirror.bySlot))
	s.plugins.mirror.shelf.Ask(s.pod)
	s.plugins.does(1)
	return s.look(s.lasting.filters, s.lasting.state, r.info)
}

// look asks the plugins about a node, within the steps that looking for devices may take.
func (s *Supplies) look(filters []fwk.FilterPlugin, state fwk.CycleState, node fwk.NodeInfo) verdict.NodeRefusal {
	p := s.plugins
	in := &search{Context: p.quiet, plugins: p, most: maxDeviceSteps}
	if s.cut >= maxCut {
		in.most = fewDeviceSteps
	}
	if p.deviceTimeout > 0 {
		within, cancel := context.WithTimeout(p.quiet, p.deviceTimeout)
		defer cancel()
		in.Context = within
	}
	why := p.filterIn(in, filters, state, s.pod, node)
	if in.isCut() {
		s.cut++
	}
	return why
}

// Refusal returns why the class cannot run on a node, by Lasting, and by VolumeRestrictions and NodeVolumeLimits, which
// look at the pods there.
func (s *Supplies) Refusal(n *cluster.Node) verdict.NodeRefusal {
	if why := s.Lasting(n); !why.IsNone() {
		return why
	}
	m := s.plugins.mirror
	_, pods, _ := m.cluster.Changes(s.podsAt)
	if s.usersAt != s.lastingAt || s.podsAt != pods {
		s.users, s.usersAt, s.podsAt = s.askPlugins(looksAtUsers), s.lastingAt, pods
	}
	if !s.users.refusal.IsNone() {
		return s.users.refusal
	}
	r := m.of(n)
	m.fill(r)
	m.shelf.Ask(s.pod) // its claims may have been taken off the shelf since
	return s.plugins.filter(s.users.filters, s.users.state, s.pod, r.info)
}

// Scores returns the scores of VolumeBinding and DynamicResources for the nodes, times their weights. The first scores
// the use of a node by the pod's volumes, the second how far up in the lists of its claims the devices on the node are.
// It is nil if the nodes cannot differ. None of them must have refused.
func (s *Supplies) Scores(nodes []*cluster.Node) []int64 {
	p := s.plugins
	if len(nodes) == 0 {
		return nil
	}
	p.infos = p.infos[:0]
	for _, n := range nodes {
		p.infos = append(p.infos, p.mirror.of(n).info)
	}
	var say []scorer
	for _, scorer := range p.scorers[looksAtSupplies] {
		if s.mayDiffer(&scorer) { // one that skips the pod, which has no volumes to bind, has no say
			p.preScore(scorer, s.lasting.state, s.pod, p.infos, &say)
		}
	}
	if len(say) == 0 {
		return nil
	}
	totals := make([]int64, len(nodes))
	for _, scorer := range say {
		p.score(scorer, s.lasting.state, s.pod, p.infos, totals, 1)
	}
	return totals
}

// AreScored reports whether volumes and devices may make a difference in the scores of nodes.
func (s *Supplies) AreScored() bool {
	return slices.ContainsFunc(s.plugins.scorers[looksAtSupplies], func(scorer scorer) bool { return s.mayDiffer(&scorer) })
}

func (s *Supplies) mayDiffer(scorer *scorer) bool {
	return scorer.mayDiffer == nil || scorer.mayDiffer(s.plugins.mirror, s.pod)
}

// Reserve returns the volumes and devices that a pod of the class takes on a node, nil if none. The node must not have
// refused. The plugins are unreserved again, because the model keeps reservations. The text is the message of a plugin
// that cannot reserve.
func (s *Supplies) Reserve(n *cluster.Node) (*supplies.Reservation, string) {
	p := s.plugins
	p.mirror.shelf.Follow()
	p.mirror.shelf.Ask(s.pod)
	info := p.mirror.of(n).info
	reservation := &supplies.Reservation{Patience: p.patience, DevicePatience: p.devicePatience}
	for _, filter := range p.filters[looksAtSupplies] {
		reserves, ok := filter.(fwk.ReservePlugin)
		if !ok {
			continue
		}
		state := framework.NewCycleState()
		var say []fwk.FilterPlugin
		if why := p.preFilter(filter, state, s.pod, nil, &say); !why.IsNone() {
			return nil, why.Text
		}
		if len(say) == 0 {
			continue
		}
		// What was found once is found again in as many steps.
		if why := p.filterIn(&search{Context: p.quiet, plugins: p, most: maxDeviceSteps}, say, state, s.pod, info); !why.IsNone() {
			return nil, why.Text
		}
		if status := reserves.Reserve(p.quiet, state, s.pod, n.Name); !status.IsSuccess() {
			return nil, words(filter, status)
		}
		if writes, ok := filter.(fwk.PreBindPlugin); ok && p.writesVolumes(filter) {
			// It writes into the ledger, and gives up waiting at once.
			writes.PreBind(p.over, state, s.pod, n.Name)
			reserves.Unreserve(p.quiet, state, s.pod, n.Name)
			s.readLedger(reservation)
		} else {
			if why := s.readDevices(reservation, state, n); why != "" {
				return nil, why
			}
		}
	}
	if len(reservation.Volumes) == 0 && len(reservation.Devices) == 0 {
		return nil, ""
	}
	return reservation, ""
}

// readLedger returns which volumes and claims the plugins would write.
func (s *Supplies) readLedger(r *supplies.Reservation) {
	volumes, claims := s.plugins.mirror.ledger.Take()
	add := func(v supplies.VolumeReservation) {
		if !slices.Contains(r.Volumes, v) { // a pod may mount a claim twice
			r.Volumes = append(r.Volumes, v)
		}
	}
	for _, volume := range volumes {
		ref := volume.Spec.ClaimRef
		add(supplies.VolumeReservation{Claim: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, UID: ref.UID,
			Volume: volume.Name, VolumeUID: volume.UID})
	}
	for _, claim := range claims {
		add(supplies.VolumeReservation{Claim: types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, UID: claim.UID})
	}
}

// readDevices returns the allocations of the pod's claims, new or existing. The text is the message of the plugin if it
// fails.
func (s *Supplies) readDevices(r *supplies.Reservation, state fwk.CycleState, n *cluster.Node) string {
	m := s.plugins.mirror
	given := m.shelf.Devices().Take()
	for _, claim := range m.deviceClaims(s.pod) {
		if i := slices.IndexFunc(given, func(g *resourcev1.ResourceClaim) bool { return g.UID == claim.UID }); i >= 0 {
			claim = given[i]
		}
		if claim.Status.Allocation != nil {
			device := supplies.DeviceReservation{UID: claim.UID, Allocation: claim.Status.Allocation,
				Claim: types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}}
			if supply.IsImagined(claim) { // until its pod exists, the model has it from the reservation
				device.Made = claim.DeepCopy()
				device.Made.Status = resourcev1.ResourceClaimStatus{}
			}
			r.Devices = append(r.Devices, device)
		}
	}
	i := slices.IndexFunc(given, supply.IsMade)
	if i < 0 {
		return ""
	}
	// The plugin would not write what the pod's status already has, so it would not be recorded.
	bare := &corev1.Pod{ObjectMeta: s.pod.ObjectMeta, Spec: s.pod.Spec}
	if status := s.plugins.scribe.PreBind(s.plugins.quiet, state, bare, n.Name); !status.IsSuccess() {
		return words(s.plugins.scribe, status)
	}
	requests, err := m.ledger.TakeRequests()
	if err != nil {
		return err.Error()
	}
	made := given[i].DeepCopy()
	made.UID, made.Status = "", resourcev1.ResourceClaimStatus{}
	r.Devices = append(r.Devices, supplies.DeviceReservation{Claim: types.NamespacedName{Namespace: made.Namespace, Name: made.Name},
		UID: given[i].UID, Allocation: given[i].Status.Allocation, Made: made, Requests: requests})
	return ""
}

// Alternatives is the length of the longest list of alternatives in the pod's claims that have no devices yet.
func (s *Supplies) Alternatives() int { return s.plugins.mirror.alternatives(s.pod) }

// PassAlternatives passes over the first n alternatives of each request of claims that have no devices yet. The last is
// always left.
func (p *Plugins) PassAlternatives(n int) { p.mirror.shelf.PassAlternatives(n) }

// hasAlternatives reports whether a claim of a pod has a list of alternatives.
func (m *mirror) hasAlternatives(pod *corev1.Pod) bool { return m.alternatives(pod) > 0 }

func (m *mirror) alternatives(pod *corev1.Pod) int {
	m.shelf.Follow()
	longest := 0
	for _, claim := range m.deviceClaims(pod) {
		for i := range claim.Spec.Devices.Requests {
			if claim.Status.Allocation == nil {
				longest = max(longest, len(claim.Spec.Devices.Requests[i].FirstAvailable))
			}
		}
	}
	return longest
}

// deviceClaims returns the resource claims of a pod that exist.
func (m *mirror) deviceClaims(pod *corev1.Pod) []*resourcev1.ResourceClaim {
	var claims []*resourcev1.ResourceClaim
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue
		}
		claim, err := m.shelf.Devices().Get(pod.Namespace, *name)
		if err == nil && !slices.ContainsFunc(claims, func(c *resourcev1.ResourceClaim) bool { return c.UID == claim.UID }) {
			claims = append(claims, claim)
		}
	}
	return claims
}

// Lacking says which claims of the pod have neither a volume nor devices yet, as a clause; "" if all have.
func (s *Supplies) Lacking() string {
	s.plugins.mirror.shelf.Follow()
	var lacking []string
	for i := range s.pod.Spec.Volumes {
		v := &s.pod.Spec.Volumes[i]
		name := types.NamespacedName{Namespace: s.pod.Namespace}
		switch {
		case v.PersistentVolumeClaim != nil:
			name.Name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name.Name = ephemeral.VolumeClaimName(s.pod, v)
		default:
			continue
		}
		if what := s.lacks(name); what != "" {
			lacking = append(lacking, fmt.Sprintf("PersistentVolumeClaim %s %s", name, what))
		}
	}
	for _, claim := range s.plugins.mirror.deviceClaims(s.pod) {
		if claim.Status.Allocation == nil {
			lacking = append(lacking, fmt.Sprintf("ResourceClaim %s/%s has no devices and no node has them free", claim.Namespace, claim.Name))
		}
	}
	resolver := s.plugins.mirror.shelf.Devices().DeviceClassResolver()
	requests := resourcehelper.PodRequests(s.pod, resourcehelper.PodResourcesOptions{})
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		if class := resolver.GetDeviceClass(name); class != nil && !requests.Name(name, resource.DecimalSI).IsZero() {
			lacking = append(lacking, fmt.Sprintf("no node has the devices of DeviceClass %s free that %s stands for", class.Name, name))
		}
	}
	return strings.Join(lacking, ", ")
}

// lacks says why a claim has no volume, "" if it has one.
func (s *Supplies) lacks(name types.NamespacedName) string {
	c := s.plugins.mirror.cluster
	claim, ok := c.Supplies().Get(supplies.Key{Kind: supplies.VolumeClaim, NamespacedName: name}).(*corev1.PersistentVolumeClaim)
	switch {
	case !ok:
		return "does not exist"
	case claim.Spec.VolumeName != "":
		return ""
	}
	className := storagehelpers.GetPersistentVolumeClaimClass(claim)
	class, ok := c.Supplies().Get(supplies.Key{Kind: supplies.StorageClass, NamespacedName: types.NamespacedName{Name: className}}).(*storagev1.StorageClass)
	switch {
	case className == "":
		return "is not bound and names no StorageClass"
	case !ok:
		return fmt.Sprintf("is not bound and its StorageClass %s does not exist", className)
	case class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer:
		return fmt.Sprintf("is not bound yet, and its StorageClass %s does not wait for a pod", className)
	case claim.Annotations[storagehelpers.AnnSelectedNode] != "":
		return "is not bound, and its volume is to be on node " + claim.Annotations[storagehelpers.AnnSelectedNode]
	}
	return fmt.Sprintf("is not bound and no volume of StorageClass %s fits", className)
}

// writesVolumes reports whether a plugin is the one that binds volumes. Of the two that reserve, only its writes are
// read from the ledger.
func (p *Plugins) writesVolumes(filter fwk.FilterPlugin) bool {
	return filter.Name() == volumebinding.Name
}
