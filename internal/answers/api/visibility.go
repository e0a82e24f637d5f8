package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VisibilityGroup is Kueue's group for the places of Workloads that wait. Its clients are those of Kueue, so its forms
// are Kueue's.
const VisibilityGroup = "visibility.kueue.x-k8s.io"

// VisibilityVersions are those that are served, the preferred one first. They have the same forms.
var VisibilityVersions = []string{"v1beta2", "v1beta1"}

// PendingWorkloadsKind is the kind of a [PendingWorkloadsSummary].
const PendingWorkloadsKind = "PendingWorkloadsSummary"

// PendingWorkloadsSummary lists Workloads that wait in a ClusterQueue or LocalQueue.
type PendingWorkloadsSummary struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Items             []PendingWorkload `json:"items"`
}

// PendingWorkload is a Workload that waits. Positions count from 0.
type PendingWorkload struct {
	metav1.ObjectMeta      `json:"metadata,omitempty"`
	Priority               int32  `json:"priority"`
	LocalQueueName         string `json:"localQueueName"`
	PositionInClusterQueue int32  `json:"positionInClusterQueue"`
	PositionInLocalQueue   int32  `json:"positionInLocalQueue"`
}
