{{/* The followers of tables: each is a container beside the service, which sends to this pod's service alone. */}}

{{/* "StatefulSet" with tables that follow, because each pod keeps its own; otherwise "Deployment". */}}
{{- define "kindred.workload" -}}
{{ ternary "StatefulSet" "Deployment" (gt (len .Values.follow.tables) 0) }}
{{- end }}

{{/* The name of a replication slot without the pod's index: [a-z0-9_], at most 63 characters with it. */}}
{{- define "kindred.slot" -}}
{{ regexReplaceAll "[^a-z0-9_]" (printf "%s_%s" (include "kindred.fullname" .root) .model | lower) "_" | trunc 56 }}
{{- end }}

{{- define "kindred.followers" -}}
{{- $root := . }}
{{- range $number, $_ := .Values.follow.tables }}
- name: follow-{{ $number }}-{{ .model | lower | replace "_" "-" | replace "." "-" | trunc 40 | trimSuffix "-" }}
  image: {{ include "kindred.followImage" $root }}
  imagePullPolicy: {{ $root.Values.image.pullPolicy }}
  # One that stops, because of a bad row for example, is started again, and the pod stays: its rows are answered as they are. With
  # config.max_lag_seconds, the pod is not ready then.
  command:
    - sh
    - -c
    - 'trap "kill \$!; exit" TERM; until kindred follow "$@" & wait $!; do sleep 10 & wait $!; done'
    - follow
  args:
    - {{ .source | quote }}
    - --to=http://localhost:8080
    - --model={{ .model }}
    - --ready-file=/run/kindred-follow/{{ .model }}
    {{- if hasPrefix "postgres" .source }}
    # Each replica has a slot of its own.
    - --slot={{ include "kindred.slot" (dict "root" $root "model" .model) }}_$(POD_INDEX)
    {{- end }}
    {{- range .args }}
    - {{ . | quote }}
    {{- end }}
  env:
    - name: POD_INDEX
      valueFrom: {fieldRef: {fieldPath: "metadata.labels['apps.kubernetes.io/pod-index']"}}
  {{- with $root.Values.follow.existingSecret }}
  envFrom:
    - secretRef: {name: {{ . | quote }}}
  {{- end }}
  # A pod is ready when its tables have everything that was there when it started.
  readinessProbe:
    exec: {command: [test, -e, /run/kindred-follow/{{ .model }}]}
    periodSeconds: 5
  resources: {{- toYaml $root.Values.follow.resources | nindent 4 }}
  securityContext: {{- include "kindred.containerSecurity" $root | nindent 4 }}
  volumeMounts:
    - {name: followed, mountPath: /run/kindred-follow}
    {{- if $root.Values.follow.existingSecret }}
    - {name: follow, mountPath: /etc/kindred/follow, readOnly: true}
    {{- end }}
{{- end }}
{{- end }}

{{- define "kindred.followImage" -}}
{{- with .Values.follow.image -}}
{{ .repository }}{{ ternary (printf "@%s" .digest) (printf ":%s" .tag) (ne .digest "") }}
{{- end }}
{{- end }}

{{/* What can't work, with the cure. */}}
{{- define "kindred.checkFollow" -}}
{{- $v := .Values -}}
{{- if $v.follow.tables -}}
{{- if not $v.apiKeys.existingSecret -}}
{{- fail "follow.tables needs API keys, so that nobody else changes the rows: set apiKeys.existingSecret, and put the key of the followers into follow.existingSecret as KINDRED_API_KEY" -}}
{{- end -}}
{{- if $v.tls.existingSecret -}}
{{- fail "followers reach the service as localhost, for which no certificate is: leave tls.existingSecret empty with follow.tables, and end TLS before the pods" -}}
{{- end -}}
{{- if and $v.networkPolicy.enabled (not $v.networkPolicy.egress) -}}
{{- fail "the network policy lets pods open no connection to a source of follow.tables: add a rule for it to networkPolicy.egress, and one for port 53" -}}
{{- end -}}
{{- if not (has (include "kindred.maxSurge" .) (list "0" "0%" "1")) -}}
{{- fail "pods of follow.tables are replaced in their places, one after another: leave strategy.maxSurge empty" -}}
{{- end -}}
{{- $names := list -}}
{{- range $v.follow.tables -}}
{{- if has .model $names }}{{ fail (printf "follow.tables: the model %q is there twice; give each its own" .model) }}{{ end -}}
{{- $names = append $names .model -}}
{{- end -}}
{{- end -}}
{{- end }}
