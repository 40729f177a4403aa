{{/* Parts of the pod: what runs before the service, resources and placement. */}}
{{- define "kindred.modelsMount" -}}
- name: models
  mountPath: /models
  {{- with .root.Values.storage.subPath }}
  subPath: {{ . | quote }}
  {{- end }}
  {{- if .readOnly }}
  readOnly: true
  {{- end }}
{{- end }}

{{/* For each model: fetch it, and prepare it unless that was done. The image of the service has no shell, and that of the
     fetches has no kindred. */}}
{{- define "kindred.initContainers" -}}
{{- $root := . }}
{{- $sources := include "kindred.sources" . | fromJson }}
{{- range $kind := list "models" "heads" }}
{{- range $number, $source := index $sources $kind }}
{{- if .url }}
- name: fetch-{{ trimSuffix "s" $kind }}-{{ $number }}
  image: {{ $root.Values.fetch.image }}
  command: [sh, /etc/kindred/config/fetch.sh, {{ .url | quote }}, {{ .sha256 | quote }}, {{ .file }}, {{ .folder }}{{ if eq $kind "heads" }}, unpack{{ end }}]
  {{- if $root.Values.fetch.curlConfigSecret }}
  env:
    - {name: CURL_CONFIG, value: /etc/kindred/curl/curlrc}
  {{- end }}
  resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 256Mi}}
  securityContext: {{- include "kindred.containerSecurity" $root | nindent 4 }}
  volumeMounts:
    - {name: config, mountPath: /etc/kindred/config, readOnly: true}
    {{- if $root.Values.fetch.curlConfigSecret }}
    - {name: curl, mountPath: /etc/kindred/curl, readOnly: true}
    {{- end }}
    - {name: download, mountPath: /download}
    {{- include "kindred.modelsMount" (dict "root" $root) | nindent 4 }}
{{- if eq $kind "models" }}
- name: prepare-model-{{ $number }}
  image: {{ include "kindred.image" $root }}
  imagePullPolicy: {{ $root.Values.image.pullPolicy }}
  args: [prepare, {{ .file }}, --out, {{ .folder }}, --if-missing{{ range .args }}, {{ . | quote }}{{ end }}]
  {{- if gt (int $root.Values.gpu.count) 0 }}
  # The image asks the NVIDIA runtime for all GPUs. This needs none.
  env:
    - {name: NVIDIA_VISIBLE_DEVICES, value: void}
  {{- end }}
  resources: {{- toYaml $root.Values.resources | nindent 4 }}
  securityContext: {{- include "kindred.containerSecurity" $root | nindent 4 }}
  volumeMounts:
    - {name: download, mountPath: /download, readOnly: true}
    {{- include "kindred.modelsMount" (dict "root" $root) | nindent 4 }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
- name: remove-downloads
  image: {{ .Values.fetch.image }}
  command: [sh, -c, "rm -f /download/*"]
  resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 64Mi}}
  securityContext: {{- include "kindred.containerSecurity" . | nindent 4 }}
  volumeMounts:
    - {name: download, mountPath: /download}
{{- end }}

{{- define "kindred.resources" -}}
{{- $resources := deepCopy .Values.resources -}}
{{- if gt (int .Values.gpu.count) 0 -}}
{{- $gpus := dict .Values.gpu.resource (int .Values.gpu.count) -}}
{{- $resources = merge $resources (dict "limits" $gpus) -}}
{{- end -}}
{{ toYaml $resources }}
{{- end }}

{{- define "kindred.placement" -}}
{{- $keys := dict "hosts" "kubernetes.io/hostname" "zones" "topology.kubernetes.io/zone" }}
{{- if or .Values.topologySpread.hosts .Values.topologySpread.zones }}
topologySpreadConstraints:
  {{- range $which, $key := $keys }}
  {{- with index $.Values.topologySpread $which }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: {{ . }}
    labelSelector:
      matchLabels: {{- include "kindred.selector" $ | nindent 8 }}
    # Each version by itself, so that a rolling update ends spread as well.
    matchLabelKeys: [{{ ternary "controller-revision-hash" "pod-template-hash" (eq (include "kindred.workload" $) "StatefulSet") }}]
  {{- end }}
  {{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- $tolerations := .Values.tolerations }}
{{- if gt (int .Values.gpu.count) 0 }}
{{- $tolerations = append $tolerations (dict "key" .Values.gpu.resource "operator" "Exists" "effect" "NoSchedule") }}
{{- end }}
{{- with $tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
