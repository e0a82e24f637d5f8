{{- /*
hekla.plain is a file of plain manifests as it stands, in the namespace of the release. The files name volcano-system, where
hekla.yaml puts everything.
*/ -}}
{{- define "hekla.plain" -}}
{{- $text := .root.Files.Get .file | required (printf "the chart has no %s" .file) -}}
{{- $text = $text | replace "namespace: volcano-system" (printf "namespace: %s" .root.Release.Namespace) | trim -}}
{{- include "hekla.labelled" (dict "root" .root "text" $text) -}}
{{- end -}}

{{- /*
hekla.labelled is a text of manifests with the common labels in addition to the label that every object has, and every pod.
*/ -}}
{{- define "hekla.labelled" -}}
{{- $text := .text -}}
{{- range $key, $value := .root.Values.commonLabels -}}
{{- $text = regexReplaceAll "(?m)^( +)(app\\.kubernetes\\.io/part-of: hekla)$" $text (printf "${1}${2}\n${1}%s: %s" $key (toJson $value)) -}}
{{- end -}}
{{- $text -}}
{{- end -}}
