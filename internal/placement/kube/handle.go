package kube

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// handle is the framework handle of the plugins. It shows them the mirror and runs their work in the calling goroutine.
// The supported plugins use nothing else. A newer version that does panics at once.
type handle struct{ mirror *mirror }

func newHandle(m *mirror) *handle { return &handle{mirror: m} }

var (
	_ fwk.Handle            = (*handle)(nil)
	_ fwk.SharedLister      = (*handle)(nil)
	_ fwk.StorageInfoLister = (*handle)(nil)
)

// unavailable is called by methods that no supported plugin uses.
func unavailable(method string) {
	panic("invariant: a kube-scheduler plugin calls " + method + ", which it has no use for")
}

// serial runs the plugins' parallel work piece by piece: order and results do not depend on goroutines.
type serial struct{}

func (serial) Until(_ context.Context, pieces int, work workqueue.DoWorkPieceFunc, _ string) {
	for i := range pieces {
		work(i)
	}
}

func (h *handle) SnapshotSharedLister() fwk.SharedLister { return h }
func (h *handle) NodeInfos() fwk.NodeInfoLister          { return &h.mirror.own }
func (h *handle) Parallelizer() fwk.Parallelizer         { return serial{} }

// SharedInformerFactory returns a factory that is never started. Only its listers are used, which the mirror and its
// shelf fill.
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.mirror.informers }

// StorageInfos returns the handle itself.
func (h *handle) StorageInfos() fwk.StorageInfoLister { return h }

// IsPVCUsedByPods reports whether a pod on a node names a claim, given as its namespace, a slash and its name.
func (h *handle) IsPVCUsedByPods(key string) bool {
	namespace, name, _ := strings.Cut(key, "/")
	for _, t := range h.mirror.cluster.Users(types.NamespacedName{Namespace: namespace, Name: name}) {
		if t.Node != nil && h.mirror.shows(t.Status) {
			return true
		}
	}
	return false
}

func (h *handle) PodGroupStates() fwk.PodGroupStateLister {
	unavailable("PodGroupStates")
	return nil
}

func (h *handle) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {
	unavailable("AddNominatedPod")
}

func (h *handle) DeleteNominatedPodIfExists(*corev1.Pod) { unavailable("DeleteNominatedPodIfExists") }

func (h *handle) UpdateNominatedPod(klog.Logger, *corev1.Pod, fwk.PodInfo) {
	unavailable("UpdateNominatedPod")
}

func (h *handle) NominatedPodsForNode(string) []fwk.PodInfo {
	unavailable("NominatedPodsForNode")
	return nil
}

func (h *handle) RunPreScorePlugins(context.Context, fwk.CycleState, *corev1.Pod, []fwk.NodeInfo) *fwk.Status {
	unavailable("RunPreScorePlugins")
	return nil
}

func (h *handle) RunScorePlugins(context.Context, fwk.CycleState, *corev1.Pod, []fwk.NodeInfo) ([]fwk.NodePluginScores, *fwk.Status) {
	unavailable("RunScorePlugins")
	return nil, nil
}

func (h *handle) RunFilterPlugins(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) *fwk.Status {
	unavailable("RunFilterPlugins")
	return nil
}

func (h *handle) RunPreFilterExtensionAddPod(context.Context, fwk.CycleState, *corev1.Pod, fwk.PodInfo, fwk.NodeInfo) *fwk.Status {
	unavailable("RunPreFilterExtensionAddPod")
	return nil
}

func (h *handle) RunPreFilterExtensionRemovePod(context.Context, fwk.CycleState, *corev1.Pod, fwk.PodInfo, fwk.NodeInfo) *fwk.Status {
	unavailable("RunPreFilterExtensionRemovePod")
	return nil
}

func (h *handle) RunFilterPluginsWithNominatedPods(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) *fwk.Status {
	unavailable("RunFilterPluginsWithNominatedPods")
	return nil
}

func (h *handle) Activate(klog.Logger, map[string]*corev1.Pod) { unavailable("Activate") }

func (h *handle) IterateOverWaitingPods(func(fwk.WaitingPod)) { unavailable("IterateOverWaitingPods") }

func (h *handle) GetWaitingPod(types.UID) fwk.WaitingPod {
	unavailable("GetWaitingPod")
	return nil
}

func (h *handle) RejectWaitingPod(types.UID) bool {
	unavailable("RejectWaitingPod")
	return false
}

func (h *handle) AddPodInPreBind(types.UID, context.CancelCauseFunc) { unavailable("AddPodInPreBind") }

func (h *handle) GetPodInPreBind(types.UID) fwk.PodInPreBind {
	unavailable("GetPodInPreBind")
	return nil
}

func (h *handle) RemovePodInPreBind(types.UID) { unavailable("RemovePodInPreBind") }

// ClientSet returns a client that writes nothing.
func (h *handle) ClientSet() kubernetes.Interface { return h.mirror.ledger }

func (h *handle) KubeConfig() *rest.Config {
	unavailable("KubeConfig")
	return nil
}

func (h *handle) EventRecorder() events.EventRecorderLogger {
	unavailable("EventRecorder")
	return nil
}

func (h *handle) SharedDRAManager() fwk.SharedDRAManager { return h.mirror.shelf.Devices() }
func (h *handle) SharedCSIManager() fwk.CSIManager       { return h.mirror.shelf }

func (h *handle) Extenders() []fwk.Extender {
	unavailable("Extenders")
	return nil
}

func (h *handle) APIDispatcher() fwk.APIDispatcher {
	unavailable("APIDispatcher")
	return nil
}

func (h *handle) APICacher() fwk.APICacher {
	unavailable("APICacher")
	return nil
}

func (h *handle) ProfileName() string {
	unavailable("ProfileName")
	return ""
}

func (h *handle) PodGroupManager() fwk.PodGroupManager {
	unavailable("PodGroupManager")
	return nil
}

func (h *handle) SignPod(context.Context, *corev1.Pod) fwk.PodSignature {
	unavailable("SignPod")
	return nil
}
