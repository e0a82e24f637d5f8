{{- /*
hekla.plain is a file of plain manifests as it stands, in the namespace of the release. The files name volcano-system, where
hekla.yaml puts everything.
*/ -}}
{{- define "hekla.plain" -}}
{{- $text := .root.Files.Get .file | required (printf "the chart has no %s" .file) -}}
{{- $text | replace "namespace: volcano-system" (printf "namespace: %s" .root.Release.Namespace) | trim -}}
{{- end -}}
