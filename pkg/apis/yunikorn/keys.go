// Package yunikorn has the labels and annotations by which users of YuniKorn mark their pods and PriorityClasses.
//
// It must not know what they cause.
package yunikorn

const (
	// AllowPreemptionKey, as an annotation of a pod or a PriorityClass, asks not to evict a pod if it is "false". The
	// annotation of the pod decides.
	AllowPreemptionKey = "yunikorn.apache.org/allow-preemption"

	// AppIDKey, as a label or annotation of a pod, is the id of its application.
	AppIDKey = "yunikorn.apache.org/app-id"

	// SparkSelectorKey, as a label, is the id of the application of a pod of Spark.
	SparkSelectorKey = "spark-app-selector"

	// ApplicationIDKey, as a label or annotation of a pod, is the id of its application, in YuniKorn's older form.
	ApplicationIDKey = "applicationId"
)

// ApplicationID returns the id of the application of a pod with these labels and annotations, "" if they name none.
func ApplicationID(labels, annotations map[string]string) string {
	for _, at := range [...]struct {
		in  map[string]string
		key string
	}{{labels, AppIDKey}, {annotations, AppIDKey}, {labels, SparkSelectorKey}, {labels, ApplicationIDKey}, {annotations, ApplicationIDKey}} {
		if id := at.in[at.key]; id != "" {
			return id
		}
	}
	return ""
}
