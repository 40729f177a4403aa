{{/* Names and labels. */}}
{{- define "kindred.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kindred.fullname" -}}
{{- $name := include "kindred.name" . -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- /* Room for the longest suffix. */ -}}
{{ .Values.fullnameOverride | default $full | trunc 48 | trimSuffix "-" }}
{{- end }}

{{- define "kindred.selector" -}}
app.kubernetes.io/name: {{ include "kindred.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kindred.labels" -}}
{{ include "kindred.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "kindred.serviceAccount" -}}
{{- $own := ternary (include "kindred.fullname" .) "default" .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default $own }}
{{- end }}

{{- define "kindred.image" -}}
{{- with .Values.image -}}
{{- $tag := .tag | default (ternary "cuda" "cpu" (gt (int $.Values.gpu.count) 0)) -}}
{{ .repository }}{{ ternary (printf "@%s" .digest) (printf ":%s" $tag) (ne .digest "") }}
{{- end }}
{{- end }}

{{- define "kindred.scheme" -}}
{{ ternary "HTTPS" "HTTP" (ne .Values.tls.existingSecret "") }}
{{- end }}

{{/* What every container may not do. */}}
{{- define "kindred.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "kindred.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
# For Secrets, and for volumes that support it.
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* Seconds that the startup probe allows. */}}
{{- define "kindred.startupSeconds" -}}
{{- $gi := 0.0 -}}
{{- range .Values.models }}{{ $gi = addf $gi (.sizeGi | default 1) }}{{ end -}}
{{ int .Values.startupSeconds | default (add 60 (ceil (mulf 30 $gi))) | int }}
{{- end }}

{{/* Seconds that a pod may take to stop: the drain, and some for the engine's threads. */}}
{{- define "kindred.graceSeconds" -}}
{{- with .Values.drain }}{{ add .preStopSeconds .delaySeconds .timeoutSeconds 10 }}{{ end }}
{{- end }}
