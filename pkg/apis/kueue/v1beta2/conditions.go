package v1beta2

// ActiveCondition of a ClusterQueue, LocalQueue, Cohort or AdmissionCheck says whether it is in use.
const ActiveCondition = "Active"

// Reasons of the condition Active.
const (
	ReasonReady                    = "Ready"
	ReasonTerminating              = "Terminating"
	ReasonStopped                  = "Stopped"
	ReasonFlavorNotFound           = "FlavorNotFound"
	ReasonAdmissionCheckNotFound   = "AdmissionCheckNotFound"
	ReasonAdmissionCheckInactive   = "AdmissionCheckInactive"
	ReasonNotSupported             = "NotSupported"
	ReasonClusterQueueDoesNotExist = "ClusterQueueDoesNotExist"
	ReasonClusterQueueIsInactive   = "ClusterQueueIsInactive"
)

// Conditions of a Workload.
const (
	// QuotaReserved says whether the workload holds quota and nodes; written by the scheduler, and by the controllers
	// until the scheduler has looked at it.
	QuotaReserved = "QuotaReserved"

	// Admitted says whether it may start; written by the scheduler.
	Admitted = "Admitted"

	// PodsReady says whether all its pods are ready or have succeeded; written by the controllers.
	PodsReady = "PodsReady"

	// Evicted says that it is to be stopped; written by who evicts it.
	Evicted = "Evicted"

	// Preempted says for which workload it was evicted; written by the scheduler.
	Preempted = "Preempted"

	// Requeued says whether it waits in its queue again; written by the controllers.
	Requeued = "Requeued"

	// DeactivationTarget says why it is about to be made inactive; written by the controllers.
	DeactivationTarget = "DeactivationTarget"

	// WaitingForReplacementPods says that a group of pods has fewer than it says, and why; written by the controllers.
	WaitingForReplacementPods = "WaitingForReplacementPods"

	// Finished says that it has ended; written by the controllers.
	Finished = "Finished"
)

// Reasons of QuotaReserved and Admitted.
const (
	// ReasonHeldUp is that of a Workload in a ClusterQueue with StrictFIFO while another comes first. Kueue says
	// PendingEvaluation there.
	ReasonHeldUp = "HeldUp"

	ReasonQuotaReserved                = "QuotaReserved"
	ReasonNoMatchingFlavor             = "NoMatchingFlavor"
	ReasonExceedsMaxQuota              = "ExceedsMaxQuota"
	ReasonWaitingForQuota              = "WaitingForQuota"
	ReasonTopologyPlacementFailed      = "TopologyPlacementFailed"
	ReasonPendingEvaluation            = "PendingEvaluation"
	ReasonWaitingForPreemptedWorkloads = "WaitingForPreemptedWorkloads"
	ReasonMisconfigured                = "Misconfigured"
	ReasonSuspended                    = "Suspended"
	ReasonWaitingForPodsReady          = "WaitingForPodsReady"
	ReasonAdmissionGated               = "AdmissionGated"
	ReasonDeactivated                  = "Deactivated"
	ReasonAdmitted                     = "Admitted"
	ReasonNoReservation                = "NoReservation"
	ReasonUnsatisfiedAdmissionChecks   = "UnsatisfiedAdmissionChecks"
)

// Reasons of Evicted, and of Requeued while it is False. ReasonDeactivated is one as well, and
// ReasonDeactivatedDueTo with the reason of DeactivationTarget behind it.
const (
	ReasonPreempted           = "Preempted"
	ReasonPodsReadyTimeout    = "PodsReadyTimeout"
	ReasonAdmissionCheck      = "AdmissionCheck"
	ReasonClusterQueueStopped = "ClusterQueueStopped"
	ReasonLocalQueueStopped   = "LocalQueueStopped"
	ReasonNodeFailures        = "NodeFailures"
	ReasonDeactivatedDueTo    = "DeactivatedDueTo"
)

// Reasons of Preempted.
const (
	ReasonInClusterQueue                = "InClusterQueue"
	ReasonInCohortReclamation           = "InCohortReclamation"
	ReasonInCohortFairSharing           = "InCohortFairSharing"
	ReasonInCohortReclaimWhileBorrowing = "InCohortReclaimWhileBorrowing"
)

// Reasons of Requeued while it is True.
const (
	ReasonBackoffFinished       = "BackoffFinished"
	ReasonReactivated           = "Reactivated"
	ReasonClusterQueueRestarted = "ClusterQueueRestarted"
	ReasonLocalQueueRestarted   = "LocalQueueRestarted"
)

// Reasons of PodsReady.
const (
	ReasonWaitForStart    = "WaitForStart"
	ReasonWaitForRecovery = "WaitForRecovery"
	ReasonStarted         = "Started"
	ReasonRecovered       = "Recovered"
)

// ReasonPodsFailed is the reason of WaitingForReplacementPods unless the pods were evicted. While it is False that is
// PodsReady.
const ReasonPodsFailed = "PodsFailed"

// Reasons of Finished.
const (
	ReasonSucceeded     = "Succeeded"
	ReasonFailed        = "Failed"
	ReasonOwnerNotFound = "OwnerNotFound"
	ReasonOutOfSync     = "OutOfSync"
)

// Reasons of DeactivationTarget. ReasonAdmissionCheck is one as well.
const (
	ReasonRequeuingLimitExceeded       = "RequeuingLimitExceeded"
	ReasonMaximumExecutionTimeExceeded = "MaximumExecutionTimeExceeded"
)
