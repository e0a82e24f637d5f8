{{- /*
hekla.program is a program with several replicas, of which one works: its Deployment, how many of its pods may be away, and
where its metrics are. Given are
  root         what a template is given
  name         of all three objects; the Service's ends in -service
  command      of the image
  args         before the values' own
  metricsPort  where the program is told to listen
  values       of this program
and, if the program is one of which all replicas work and are called,
  webhookPort  where it is told to listen for the API server, which finds it at the Service's port 443
  configMap    the name of a ConfigMap that need not exist, and
  mountPath    the folder where the program finds it
and, if the one that works answers questions,
  answersPort  where it is told to listen for those that the API server passes on
*/ -}}
{{- define "hekla.program" -}}
{{- include "hekla.labelled" (dict "root" .root "text" (include "hekla.program.plain" .)) -}}
{{- end -}}

{{- define "hekla.program.plain" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    app: {{ .name }}
    app.kubernetes.io/part-of: hekla
spec:
  replicas: {{ .values.replicas }} # {{ if .webhookPort }}all answer{{ else }}one works, the others take over{{ end }}
  selector:
    matchLabels:
      app: {{ .name }}
  template:
    metadata:
      labels:
        app: {{ .name }}
        app.kubernetes.io/part-of: hekla
      {{- with .values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ .name }}
      automountServiceAccountToken: true
      {{- with .root.Values.image.pullSecrets }}
      imagePullSecrets:
      {{- range . }}
      - name: {{ . }}
      {{- end }}
      {{- end }}
      {{- with .values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with .values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.tolerations }}
      tolerations:
      {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- with .values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
      - topologyKey: kubernetes.io/hostname
        maxSkew: 1
        whenUnsatisfiable: ScheduleAnyway # all run on a cluster of one node, too
        labelSelector:
          matchLabels:
            app: {{ .name }}
        matchLabelKeys: [pod-template-hash]
      securityContext:
        {{- $pod := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") }}
        {{- mergeOverwrite $pod (.values.podSecurityContext | default dict | deepCopy) | toYaml | nindent 8 }}
      containers:
      - name: {{ .name }}
        image: {{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
        imagePullPolicy: {{ .root.Values.image.pullPolicy }}
        command: [{{ .command }}]
        args:
        {{- $args := .args }}
        {{- if .root.Values.metrics.authenticated }}
        {{- $args = append $args "--authenticate-metrics=true" }}
        {{- end }}
        {{- if and .root.Values.queueAdmissionGates (ne .name "volcano-controllers") }}
        {{- $args = append $args "--feature-gates=SchedulingGatesQueueAdmission=true" }}
        {{- end }}
        {{- if and .root.Values.yunikorn.labels (eq .name "volcano-controllers") }}
        {{- $args = append $args "--yunikorn-labels=true" }}
        {{- end }}
        {{- range concat $args (.values.extraArgs | default list) }}
        - {{ if regexMatch "^--[a-z-]+=[-a-z0-9:/]+$" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
        {{- end }}
        {{- if .answersPort }}
        env:
        - name: POD_IP
          valueFrom:
            fieldRef:
              fieldPath: status.podIP
        {{- end }}
        ports:
        - name: metrics
          containerPort: {{ .metricsPort }}
        {{- with .answersPort }}
        - name: answers
          containerPort: {{ . }}
        {{- end }}
        {{- with .webhookPort }}
        - name: webhooks
          containerPort: {{ . }}
        {{- end }}
        - name: health
          containerPort: 11251
        livenessProbe:
          httpGet:
            path: /healthz
            port: health
          initialDelaySeconds: 10
          periodSeconds: 10
          failureThreshold: 6
        readinessProbe:
          httpGet:
            path: /readyz
            port: health
          periodSeconds: 5
        {{- if .webhookPort }}
        lifecycle:
          preStop:
            sleep:
              seconds: 5 # until no client calls it any more
        {{- end }}
        {{- with .values.resources }}
        resources:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        securityContext:
          {{- $container := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) }}
          {{- mergeOverwrite $container (.values.securityContext | default dict | deepCopy) | toYaml | nindent 10 }}
        {{- with .mountPath }}
        volumeMounts:
        - name: configuration
          mountPath: {{ . }}
          readOnly: true
        {{- end }}
      {{- with .configMap }}
      volumes:
      - name: configuration
        configMap:
          name: {{ . }}
          optional: true
      {{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    app.kubernetes.io/part-of: hekla
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      app: {{ .name }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}-service
  namespace: {{ .root.Release.Namespace }}
  labels:
    app: {{ .name }}
    app.kubernetes.io/part-of: hekla
  annotations:
    prometheus.io/scrape: "true"
    prometheus.io/path: /metrics
    prometheus.io/port: "{{ .metricsPort }}"
    {{- if .root.Values.metrics.authenticated }}
    prometheus.io/scheme: https
    {{- end }}
spec:
  selector:
    app: {{ .name }}
  ports:
  - name: metrics
    port: {{ .metricsPort }}
    targetPort: metrics
  {{- if .webhookPort }}
  - name: webhooks
    port: 443
    targetPort: webhooks
  {{- end }}
{{- if .root.Values.metrics.authenticated }}
---
# Lets the program ask the API server who asks for metrics, and whether they may.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .name }}-auth-delegator
  labels:
    app.kubernetes.io/part-of: hekla
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: system:auth-delegator
subjects:
- kind: ServiceAccount
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
{{- end }}
{{- if .root.Values.networkPolicy.enabled }}
---
# What may reach the program: who asks for metrics and, of the webhooks, the API server, which no selector knows. The kubelet's
# probes come from the node and are always let through.
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    app.kubernetes.io/part-of: hekla
spec:
  podSelector:
    matchLabels:
      app: {{ .name }}
  policyTypes: [Ingress]
  ingress:
  - ports:
    - port: metrics
    {{- with .root.Values.networkPolicy.metricsFrom }}
    from:
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if .webhookPort }}
  - ports:
    - port: webhooks
  {{- end }}
  {{- if .answersPort }}
  - ports:
    - port: answers # the API server, too; who asks must say who it is
  {{- end }}
{{- end }}
{{- end -}}
