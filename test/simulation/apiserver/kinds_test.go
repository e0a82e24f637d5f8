package apiserver

// tried is a kind that the comparison makes requests about. In texts, NAME is an object's name, SPACE its namespace.
type tried struct {
	path    string   // of the collection
	bodies  []string // what is created, and the spec that an update writes; good ones and bad ones
	merges  []string // patches
	applied []string
	status  []string // patches of the status
	fields  []string // field selectors
	isOurs  bool     // a custom resource
	scale   bool
}

const pod = `{"containers":[{"name":"c","image":"i"}]}`

// kinds are those that a scheduler and controllers of batch work with.
var kinds = []tried{
	{
		path: "/api/v1/namespaces/SPACE/pods",
		bodies: []string{
			`{"metadata":{"name":"NAME","labels":{"app":"x"}},"spec":` + pod + `}`,
			`{"metadata":{"name":"NAME","labels":{"app":"x"}},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}}`,
			`{"metadata":{"name":"NAME","labels":{"app":"y"},"finalizers":["example.com/held"]},"spec":{"terminationGracePeriodSeconds":5,"schedulerName":"volcano","containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}}]}}`,
			`{"metadata":{"name":"NAME"},"spec":{"schedulingGates":[{"name":"example.com/gate"}],"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"100m","memory":"1Gi"}}}]}}`,
			`{"metadata":{"name":"NAME"},"spec":{"priorityClassName":"system-node-critical","containers":[{"name":"c","image":"i","securityContext":{"privileged":true}}]}}`,
			`{"metadata":{"name":"NAME"},"spec":{"priorityClassName":"none","containers":[{"name":"c","image":"i"}]}}`,
			`{"metadata":{"name":"NAME"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}}]}}`,
			`{"metadata":{"name":"NAME"},"spec":{"containers":[{"name":"c"},{"name":"c","image":"i"}],"restartPolicy":"Sometimes"}}`,
			`{"metadata":{"name":"NAME"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"many"}}}]}}`,
			`{"metadata":{"name":"NAME","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"1"}]},"spec":{"resourceClaims":[{"name":"r","resourceClaimName":"a"}],"tolerations":[{"operator":"Exists"}],"containers":[{"name":"c","image":"i"}]}}`,
		},
		merges: []string{
			`{"spec":{"schedulingGates":null}}`, `{"spec":{"nodeName":"n2"}}`, `{"spec":{"activeDeadlineSeconds":60}}`, `{"spec":{"nodeSelector":{"a":"b"}}}`,
			`{"spec":{"containers":[{"name":"c","image":"other"}]}}`, `{"spec":{"tolerations":[{"key":"k","operator":"Exists"}]}}`, `{"spec":{"terminationGracePeriodSeconds":7}}`,
		},
		applied: []string{
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"NAME","labels":{"role":"b"}},"spec":` + pod + `}`,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"NAME"},"spec":{"containers":[{"name":"c","image":"j"}]}}`,
		},
		status: []string{
			`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`, `{"status":{"phase":"Succeeded"}}`, `{"status":{"phase":"Failed","reason":"r"}}`,
			`{"status":{"nominatedNodeName":"n1"}}`, `{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}`, `{"status":{"podIP":"none"}}`,
			`{"status":{"containerStatuses":[{"name":"c","state":{"running":{}},"ready":true,"restartCount":1,"image":"i","imageID":"i"}]}}`,
		},
		fields: []string{"spec.nodeName=n1", "spec.nodeName=", "status.phase=Running", "status.phase!=Running", "spec.schedulerName=volcano", "spec.nonsense=1", "metadata.name=a"},
	},
	{
		path: "/api/v1/namespaces/SPACE/configmaps",
		bodies: []string{
			`{"metadata":{"name":"NAME"},"data":{"a":"1"}}`, `{"metadata":{"name":"NAME","labels":{"app":"x"}},"data":{"a":"2","b":"3"},"immutable":true}`,
			`{"metadata":{"name":"NAME","finalizers":["example.com/held","foregroundDeletion"]}}`, `{"metadata":{"name":"NAME"},"data":{"a b":"1"}}`, `{"metadata":{"name":"Bad_Name"}}`,
			`{"metadata":{"name":"NAME","labels":{"a b":"c"}}}`, `{"metadata":{"name":"NAME","namespace":"other"}}`, `{"metadata":{"name":"NAME"},"nonsense":1}`, `{"metadata":{"name":"NAME"`,
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"NAME"}}`, `{"metadata":{"name":"NAME","resourceVersion":"5"}}`, `{"metadata":{}}`,
		},
		merges:  []string{`{"data":{"a":"9","b":null}}`, `{"data":{"a":7}}`, `{"immutable":true}`},
		applied: []string{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME"},"data":{"a":"5"}}`, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME"},"data":{"c":"6"}}`},
		fields:  []string{"metadata.name!=a", "data.a=1"},
	},
	{
		path: "/apis/batch/v1/namespaces/SPACE/jobs",
		bodies: []string{
			`{"metadata":{"name":"NAME","labels":{"app":"x"}},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`,
			`{"metadata":{"name":"NAME"},"spec":{"suspend":true,"parallelism":3,"completions":3,"completionMode":"Indexed","backoffLimitPerIndex":1,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`,
			`{"metadata":{"name":"NAME"},"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}`,
			`{"metadata":{"name":"NAME"},"spec":{"parallelism":-1,"template":{"spec":{"restartPolicy":"Never","containers":[]}}}}`,
		},
		merges:  []string{`{"spec":{"suspend":true}}`, `{"spec":{"suspend":false}}`, `{"spec":{"parallelism":5}}`, `{"spec":{"completions":5}}`, `{"spec":{"template":{"spec":{"nodeSelector":{"a":"b"}}}}}`, `{"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`},
		applied: []string{`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"NAME"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"NAME"},"spec":{"parallelism":2}}`},
		status:  []string{`{"status":{"active":1,"startTime":"2026-01-01T00:00:00Z"}}`, `{"status":{"succeeded":-1}}`, `{"status":{"conditions":[{"type":"Suspended","status":"True"}]}}`},
		fields:  []string{"status.successful=0"},
	},
	{
		path: "/apis/apps/v1/namespaces/SPACE/replicasets",
		bodies: []string{
			`{"metadata":{"name":"NAME"},"spec":{"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},"spec":` + pod + `}}}`,
			`{"metadata":{"name":"NAME"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"y"}},"spec":` + pod + `}}}`,
		},
		merges: []string{`{"spec":{"replicas":4}}`, `{"spec":{"replicas":-4}}`, `{"spec":{"selector":{"matchLabels":{"app":"z"}}}}`},
		status: []string{`{"status":{"replicas":1}}`, `{"spec":{"replicas":9}}`},
		scale:  true,
	},
	{
		path:   "/apis/apps/v1/namespaces/SPACE/statefulsets",
		bodies: []string{`{"metadata":{"name":"NAME"},"spec":{"serviceName":"s","selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},"spec":` + pod + `},"volumeClaimTemplates":[{"metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}]}}`},
		merges: []string{`{"spec":{"replicas":4}}`, `{"spec":{"serviceName":"t"}}`},
		scale:  true,
	},
	{
		path: "/apis/policy/v1/namespaces/SPACE/poddisruptionbudgets",
		bodies: []string{
			`{"metadata":{"name":"NAME"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"x"}}}}`, `{"metadata":{"name":"NAME"},"spec":{"maxUnavailable":"50%","selector":{}}}`,
			`{"metadata":{"name":"NAME"},"spec":{"minAvailable":1,"maxUnavailable":1}}`,
		},
		merges: []string{`{"spec":{"minAvailable":2}}`, `{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}`},
		status: []string{
			`{"status":{"observedGeneration":1,"disruptionsAllowed":1,"currentHealthy":2,"desiredHealthy":1,"expectedPods":2}}`, `{"status":{"observedGeneration":2,"disruptionsAllowed":1,"currentHealthy":1,"desiredHealthy":1,"expectedPods":2}}`,
			`{"status":{"observedGeneration":1,"disruptionsAllowed":0,"currentHealthy":2,"desiredHealthy":1,"expectedPods":2}}`, `{"status":{"disruptionsAllowed":-1}}`,
		},
	},
	{
		path:   "/apis/coordination.k8s.io/v1/namespaces/SPACE/leases",
		bodies: []string{`{"metadata":{"name":"NAME"},"spec":{"holderIdentity":"h","leaseDurationSeconds":15,"renewTime":"2026-01-01T00:00:00.000000Z"}}`, `{"metadata":{"name":"NAME"},"spec":{"leaseDurationSeconds":-1}}`},
		merges: []string{`{"spec":{"holderIdentity":"other","leaseTransitions":1}}`},
	},
	{
		path:   "/api/v1/namespaces/SPACE/persistentvolumeclaims",
		bodies: []string{`{"metadata":{"name":"NAME"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`, `{"metadata":{"name":"NAME"},"spec":{"resources":{"requests":{"storage":"1Gi"}}}}`},
		merges: []string{`{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`, `{"spec":{"volumeName":"v"}}`},
		status: []string{`{"status":{"phase":"Bound"}}`},
	},
	{
		path:   "/api/v1/namespaces/SPACE/resourcequotas",
		bodies: []string{`{"metadata":{"name":"NAME"},"spec":{"hard":{"pods":"2","requests.cpu":"1"}}}`, `{"metadata":{"name":"NAME"},"spec":{"hard":{"count/configmaps":"3","count/podgroups.scheduling.volcano.sh":"1"}}}`, `{"metadata":{"name":"NAME"},"spec":{"hard":{"pods":"-1"}}}`},
		status: []string{
			`{"status":{"hard":{"pods":"2","requests.cpu":"1"},"used":{"pods":"0","requests.cpu":"0"}}}`, `{"status":{"hard":{"count/configmaps":"3","count/podgroups.scheduling.volcano.sh":"1"},"used":{"count/configmaps":"2","count/podgroups.scheduling.volcano.sh":"0"}}}`,
			`{"status":{"hard":{"pods":"9","requests.cpu":null}}}`,
		},
	},
	{
		path:   "/api/v1/namespaces/SPACE/limitranges",
		bodies: []string{`{"metadata":{"name":"NAME"},"spec":{"limits":[{"type":"Container","default":{"cpu":"500m"},"defaultRequest":{"cpu":"200m"},"max":{"cpu":"1500m"}}]}}`},
	},
	{
		path:   "/apis/resource.k8s.io/v1/namespaces/SPACE/resourceclaims",
		bodies: []string{`{"metadata":{"name":"NAME"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c.example.com"}}]}}}`, `{"metadata":{"name":"NAME"},"spec":{"devices":{"requests":[{"name":"R","exactly":{}}]}}}`},
		merges: []string{`{"spec":{"devices":{"requests":null}}}`},
		status: []string{`{"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"d.example.com","pool":"p","device":"d"}]}}}}`, `{"status":{"reservedFor":[{"resource":"pods","name":"a","uid":"1"}]}}`},
	},
	{
		path: "/apis/scheduling.volcano.sh/v1beta1/namespaces/SPACE/podgroups", isOurs: true,
		bodies: []string{
			`{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"NAME","labels":{"app":"x"}},"spec":{"minMember":2,"queue":"default"}}`,
			`{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"NAME","finalizers":["example.com/held"]},"spec":{"minMember":-1,"nonsense":true},"status":{"phase":"Running"}}`,
			`{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"NAME"},"spec":{"minMember":"two"}}`, `{"metadata":{"name":"NAME"}}`,
		},
		merges:  []string{`{"spec":{"minMember":3}}`, `{"spec":{"queue":null}}`, `{"spec":{"minResources":{"cpu":"x"}}}`, `{"status":{"phase":"Inqueue"}}`},
		applied: []string{`{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"NAME"},"spec":{"minMember":4}}`, `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"NAME"},"spec":{"priorityClassName":"p"}}`},
		status:  []string{`{"status":{"phase":"Inqueue"}}`, `{"status":{"phase":"Running","running":1},"spec":{"minMember":9}}`, `{"status":{"phase":7}}`},
		fields:  []string{"metadata.name=a", "spec.queue=default"},
	},
	{
		path: "/apis/batch.volcano.sh/v1alpha1/namespaces/SPACE/jobs", isOurs: true,
		bodies: []string{
			`{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"name":"NAME"},"spec":{"minAvailable":1,"tasks":[{"name":"t","replicas":2,"template":{"spec":` + pod + `}}]}}`,
			`{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"name":"NAME"},"spec":{"minAvailable":-1,"tasks":[{"name":"t","replicas":-2}]}}`,
		},
		merges: []string{`{"spec":{"minAvailable":2}}`, `{"spec":{"queue":"other"}}`, `{"spec":{"tasks":[]}}`},
		status: []string{`{"status":{"state":{"phase":"Running"},"running":1}}`},
	},
	{
		path: "/apis/kueue.x-k8s.io/v1beta2/namespaces/SPACE/workloads", isOurs: true,
		bodies: []string{
			`{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload","metadata":{"name":"NAME"},"spec":{"queueName":"q","podSets":[{"name":"main","count":1,"template":{"spec":` + pod + `}}]}}`,
			`{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload","metadata":{"name":"NAME"},"spec":{"podSets":[{"name":"Main","count":-1,"template":{"spec":` + pod + `}}]}}`,
		},
		merges: []string{`{"spec":{"active":false}}`, `{"spec":{"queueName":"r"}}`, `{"spec":{"priority":7}}`},
		status: []string{
			`{"status":{"conditions":[{"type":"QuotaReserved","status":"True","reason":"r","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}],"admission":{"clusterQueue":"c","podSetAssignments":[{"name":"main"}]}}}`,
			`{"status":{"admission":null}}`, `{"status":{"conditions":[{"type":"Evicted"}]}}`,
		},
	},
	{
		path: "/apis/scheduling.volcano.sh/v1beta1/queues", isOurs: true,
		bodies: []string{`{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":"NAME"},"spec":{"weight":2,"capability":{"cpu":"4"}}}`, `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":"NAME"},"spec":{"weight":-2}}`},
		merges: []string{`{"spec":{"weight":3}}`, `{"spec":{"weight":0}}`, `{"spec":{"parent":"NAME"}}`},
		status: []string{`{"status":{"state":"Open","pending":1}}`},
	},
	{
		path:   "/api/v1/nodes",
		bodies: []string{`{"metadata":{"name":"NAME","labels":{"zone":"a"}},"spec":{"unschedulable":true}}`, `{"metadata":{"name":"NAME"},"spec":{"taints":[{"key":"k","effect":"Sometimes"}]}}`},
		merges: []string{`{"spec":{"unschedulable":null}}`, `{"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}}`, `{"spec":{"providerID":"p"}}`},
		status: []string{`{"status":{"capacity":{"cpu":"8","pods":"110"},"allocatable":{"cpu":"8"},"conditions":[{"type":"Ready","status":"True"}]}}`, `{"status":{"allocatable":{"cpu":"-1"}}}`},
	},
	{
		path:   "/apis/scheduling.k8s.io/v1/priorityclasses",
		bodies: []string{`{"metadata":{"name":"NAME"},"value":10}`, `{"metadata":{"name":"NAME"},"value":2000000000}`, `{"metadata":{"name":"system-NAME"},"value":1}`},
		merges: []string{`{"value":11}`, `{"description":"d"}`},
	},
}

// general are patches for every kind.
var general = []string{
	`{"metadata":{"labels":{"app":"x"}}}`, `{"metadata":{"labels":{"app":null}}}`, `{"metadata":{"annotations":{"a":"1"}}}`, `{"metadata":{"finalizers":["example.com/held"]}}`,
	`{"metadata":{"finalizers":null}}`, `{"metadata":{"name":"other"}}`, `{"metadata":{"generation":9,"uid":"1"}}`, `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`, `{"spec":{"nonsense":1}}`,
	`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"1","controller":true},{"apiVersion":"v1","kind":"ConfigMap","name":"b","uid":"2","controller":true}]}}`,
	`{"metadata":{"resourceVersion":"1"}}`, `{"metadata":{"managedFields":[]}}`, `{}`, `{"metadata":`, `[]`,
}

var jsonPatches = []string{
	`[{"op":"add","path":"/metadata/labels/b","value":"1"}]`, `[{"op":"test","path":"/metadata/name","value":"other"},{"op":"remove","path":"/spec"}]`,
	`[{"op":"replace","path":"/metadata/finalizers","value":[]}]`, `[{"op":"move","path":"/x"}]`, `{}`,
}
