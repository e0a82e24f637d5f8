package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// JobFlow makes Jobs from JobTemplates of its namespace, each when those that it waits for are far enough.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=jobflows,singular=jobflow,shortName=jf
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.state.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.state.reason`
type JobFlow struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which Jobs to make, and in which order.
	// +optional
	Spec JobFlowSpec `json:"spec,omitempty"`

	// What was last seen of it; written by the flow controller only.
	// +optional
	Status JobFlowStatus `json:"status,omitempty"`
}

// JobFlowSpec says which Jobs to make. It may be changed while the JobFlow is Pending or Running: Jobs that were made
// stay as they are, the others are made by what it says then.
type JobFlowSpec struct {
	// The Jobs to make, at least one for anything to happen.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	Flows []Flow `json:"flows,omitempty"`

	// Whether the Jobs stay when all of them are Completed. Unset means that they do.
	// +optional
	JobRetainPolicy RetainPolicy `json:"jobRetainPolicy,omitempty"`
}

// Flow is one Job of a JobFlow.
type Flow struct {
	// The name of the JobTemplate that the Job is made from. The Job is called <JobFlow>-<name>.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// What must be true before the Job is made. Unset means that it is made at once.
	// +optional
	DependsOn *DependsOn `json:"dependsOn,omitempty"`

	// What the Job has different from the template.
	// +optional
	Patch *Patch `json:"patch,omitempty"`
}

// DependsOn holds back a Job until others are far enough. Without a probe the targets must be Completed.
type DependsOn struct {
	// The names of the flows whose Jobs to wait for.
	// +optional
	Targets []string `json:"targets,omitempty"`

	// What to ask of the targets instead of whether they are Completed. A target of whose tasks nothing is asked must
	// be Completed all the same, and one that is Completed is asked nothing more, except for tasks that must have
	// failed.
	// +optional
	Probe *Probe `json:"probe,omitempty"`
}

// Probe asks the pods of Jobs that run. All that it lists must hold, each of every pod of the task, though not at the
// same time: a pod that has answered is not asked again.
type Probe struct {
	// HTTP requests that must be answered with a status of 200 to 399.
	// +kubebuilder:validation:MaxItems=32
	// +optional
	HttpGetList []HttpGet `json:"httpGetList,omitempty"`

	// Ports that must accept a TCP connection.
	// +kubebuilder:validation:MaxItems=32
	// +optional
	TcpSocketList []TcpSocket `json:"tcpSocketList,omitempty"`

	// Phases that the pods must have reached.
	// +kubebuilder:validation:MaxItems=32
	// +optional
	TaskStatusList []TaskStatus `json:"taskStatusList,omitempty"`
}

// HttpGet asks pods over HTTP, at the address of the pod.
type HttpGet struct {
	// The task, of whichever targets have it, whose pods to ask. Empty means every task of every target.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	TaskName string `json:"taskName,omitempty"`

	// The path, and the query, to ask for. Empty means /.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Path string `json:"path,omitempty"`

	// The port to ask, 1 to 65535; there is no default.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int `json:"port,omitempty"`

	// A header to send.
	// +optional
	HTTPHeader corev1.HTTPHeader `json:"httpHeader,omitempty,omitzero"`
}

// TcpSocket connects to pods, at the address of the pod.
type TcpSocket struct {
	// The task, of whichever targets have it, whose pods to connect to. Empty means every task of every target.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	TaskName string `json:"taskName,omitempty"`

	// The port to connect to, 1 to 65535.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int `json:"port"`
}

// TaskStatus asks how far pods are.
type TaskStatus struct {
	// The task, of whichever targets have it, whose pods to look at. Empty means every task of every target.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	TaskName string `json:"taskName,omitempty"`

	// The phase that all pods of the task must have reached: Pending (they exist), Running (they run, or have
	// succeeded), Succeeded or Failed.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Phase string `json:"phase,omitempty"`
}

// Patch changes what a template says for one flow.
type Patch struct {
	// The fields of the template's spec to change, as a strategic merge patch. A value replaces that of the template,
	// and null removes it. Tasks, containers, env and the like are merged by name, ports by number, mounts by path,
	// plugins by name. Other lists are replaced whole. It is checked when the Job is to be made.
	// +kubebuilder:pruning:PreserveUnknownFields +optional
	JobSpec runtime.RawExtension `json:"jobSpec,omitempty,omitzero"`
}

// RetainPolicy says what becomes of the Jobs of a JobFlow that has succeeded.
// +kubebuilder:validation:Enum=retain;delete
type RetainPolicy string

const (
	// Retain keeps them.
	Retain RetainPolicy = "retain"

	// Delete deletes them.
	Delete RetainPolicy = "delete"
)

// JobFlowList is a list of JobFlows.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type JobFlowList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The JobFlows of the list.
	Items []JobFlow `json:"items"`
}

// JobName is the name of the Job of a flow.
func (f *JobFlow) JobName(flow string) string { return f.Name + "-" + flow }
