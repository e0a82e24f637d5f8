package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CronJob starts a Job at the times of a schedule.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=cronjobs,singular=cronjob,shortName=cronvcjob;cronvj
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 52",messageExpression="'cronJob name must be no more than 52 characters to accommodate job name suffix (max 63 total), and has %d'.format([self.metadata.name.size()])",message="metadata.name must have at most 52 characters, because the name of a Job adds up to 11",optionalOldSelf=true
// +kubebuilder:printcolumn:name="SCHEDULE",type=string,priority=1,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="TIMEZONE",type=string,priority=1,JSONPath=`.spec.timeZone`
// +kubebuilder:printcolumn:name="SUSPEND",type=boolean,priority=1,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="LAST SCHEDULE",type=date,priority=1,JSONPath=`.status.lastScheduleTime`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type CronJob struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// When to start what.
	// +optional
	Spec CronJobSpec `json:"spec,omitempty"`

	// What was last seen of it; written by the CronJob controller only.
	// +optional
	Status CronJobStatus `json:"status,omitempty"`
}

// CronJobList is a list of CronJobs.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type CronJobList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The CronJobs of the list.
	Items []CronJob `json:"items"`
}

// CronJobSpec says when to start a Job, and which.
type CronJobSpec struct {
	// When to start: five fields (minute, hour, day of the month, month, day of the week), or one of @yearly, @monthly,
	// @weekly, @daily, @hourly and @every with a duration. It must not name a time zone; timeZone does.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self != ''",message="schedule is required, but got empty"
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ')",message="schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"
	Schedule string `json:"schedule"`

	// The time zone of the schedule, by its name in the IANA database: Europe/Reykjavik. Unset means that of the
	// controllers' process, which in a container is UTC.
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self != ''",message="timeZone must be nil or non-empty string, got empty string: leave it out, or name one of the IANA database"
	// +kubebuilder:validation:XValidation:rule="self.lowerAscii() != 'local'",message="timeZone can't be Local, and must be defined in https://www.iana.org/time-zones, or left out"
	// +optional
	TimeZone *string `json:"timeZone,omitempty"`

	// How many seconds late a run may start. A run that could not start by then is left out. Unset means that it may
	// start any time until the next one is due.
	// +kubebuilder:validation:Minimum=0
	// +optional
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// What to do when a run is due while an earlier one has not ended: Allow starts it all the same, Forbid waits for
	// the end of that, Replace deletes that first.
	// +kubebuilder:default=Allow
	// +kubebuilder:validation:Enum=Allow;Forbid;Replace
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// Whether to start nothing for the time being. What runs goes on.
	// +kubebuilder:default=false
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// The Job to start.
	JobTemplate JobTemplateSpec `json:"jobTemplate"`

	// How many Completed Jobs to keep; older ones are deleted. Unset means 3.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +optional
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`

	// How many Failed or Terminated Jobs to keep; older ones are deleted. Unset means 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +optional
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
}

// JobTemplateSpec is the Job that a CronJob starts.
type JobTemplateSpec struct {
	// Labels, annotations and finalizers of the Jobs. Their names and namespace are the CronJob's to give.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the Jobs run.
	// +optional
	Spec JobSpec `json:"spec,omitempty"`
}

// ConcurrencyPolicy says what to do when a run is due while an earlier one has not ended.
type ConcurrencyPolicy string

const (
	// AllowConcurrent starts the run although others have not ended.
	AllowConcurrent ConcurrencyPolicy = "Allow"

	// ForbidConcurrent starts the run when the earlier one has ended, if it is not too late then.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"

	// ReplaceConcurrent deletes those that have not ended and starts the run.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// CronJobStatus is what the controller last saw of a CronJob.
type CronJobStatus struct {
	// The Jobs that have not ended.
	// +listType=atomic
	// +optional
	Active []corev1.ObjectReference `json:"active,omitempty"`

	// The time of the schedule for which a Job was last started.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// When a Job was last Completed.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
}
