{{/* The models and heads of the values as a list of {name, folder, url, sha256, prepare, args}, under `models` and `heads`.
     What is fetched has a folder of its own for each content, so that pods of two releases can share a volume. */}}
{{- define "kindred.sources" -}}
{{- $sources := dict "models" list "heads" list -}}
{{- range $kind := list "models" "heads" -}}
{{- $names := list -}}
{{- range index $.Values $kind -}}
{{- if has .name $names }}{{ fail (printf "%s: the name %q is there twice; give each its own" $kind .name) }}{{ end -}}
{{- $names = append $names .name -}}
{{- $source := dict "name" .name -}}
{{- if .url -}}
{{- $made := printf "%s %s" .sha256 (toJson (.prepareArgs | default list)) | sha256sum | trunc 16 -}}
{{- $folder := printf "/models/%s-%s" (ternary .name (printf "head-%s" .name) (eq $kind "models")) $made -}}
{{- $file := printf "/download/%s-%s" $kind .name -}}
{{- $source = merge $source (dict "folder" $folder "url" .url "sha256" .sha256 "file" $file "args" (.prepareArgs | default list)) -}}
{{- else -}}
{{- $_ := set $source "folder" (printf "/models/%s" .path) -}}
{{- end -}}
{{- $_ := set $sources $kind (append (index $sources $kind) $source) -}}
{{- end -}}
{{- end -}}
{{- toJson $sources -}}
{{- end }}

{{/* "true" if something is fetched. */}}
{{- define "kindred.fetches" -}}
{{- range concat .Values.models .Values.heads }}{{ if .url }}true{{ break }}{{ end }}{{ end -}}
{{- end }}

{{/* Whether the containers that serve may write to /models: "true" or "". */}}
{{- define "kindred.modelsReadOnly" -}}
{{- if and .Values.storage.existingClaim .Values.storage.readOnly }}true{{ end -}}
{{- end }}

{{/* Megabytes of 2²⁰ bytes, as settings count them, of a quantity of Kubernetes such as 1536Mi, 2G or 1.5e9; empty if it is
     none. Helm reads large numbers as floats. */}}
{{- define "kindred.megabytes" -}}
{{- $bytes := dict "m" 0.001 "" 1.0 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 -}}
{{- $bytes = merge $bytes (dict "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0) -}}
{{- $suffix := regexFind "[A-Za-z]*$" (toString .) -}}
{{- $number := toString . | trimSuffix $suffix -}}
{{- if and (hasKey $bytes $suffix) (regexMatch "^[0-9.]+([eE][+-]?[0-9]+)?$" $number) -}}
{{- divf (mulf (float64 $number) (get $bytes $suffix)) 1048576.0 -}}
{{- end -}}
{{- end }}

{{/* The value in force of the setting `key`, and where it is from: a variable of extraEnv comes before config. A variable
     whose value is elsewhere is not known here. */}}
{{- define "kindred.setting" -}}
{{- $found := dict "from" (printf "config.%s" .key) "value" (index .root.Values.config .key | default .default) -}}
{{- $variable := printf "KINDRED_%s" (upper .key) -}}
{{- range .root.Values.extraEnv -}}
{{- if and (eq (toString .name) $variable) (hasKey . "value") -}}
{{- $found = dict "from" (printf "extraEnv %s" $variable) "value" .value -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/* "true" if one of `routes` covers `path`, as the setting public_routes does. */}}
{{- define "kindred.covers" -}}
{{- range .routes -}}
{{- if or (eq . $.path) (and (hasSuffix "/*" .) (hasPrefix (trimSuffix "*" .) $.path)) }}true{{ break }}{{ end -}}
{{- end -}}
{{- end }}

{{/* What can't work, with the cure. The schema checks each value by itself. */}}
{{- define "kindred.check" -}}
{{- $v := .Values -}}
{{- if and (include "kindred.fetches" .) (include "kindred.modelsReadOnly" .) -}}
{{- fail "models with a url are prepared on the volume: set storage.readOnly=false, or leave storage.existingClaim empty" -}}
{{- end -}}
{{- range concat $v.models $v.heads -}}
{{- if and .path (not $v.storage.existingClaim) (not $v.extraVolumeMounts) -}}
{{- fail (printf "%s has a path, but there is no volume: set storage.existingClaim, or give %s a url and sha256" .name .name) -}}
{{- end -}}
{{- end -}}
{{- $surge := include "kindred.maxSurge" . -}}
{{- if and (has $surge (list "0" "0%")) (has (include "kindred.maxUnavailable" .) (list "0" "0%")) -}}
{{- fail "strategy.maxSurge and strategy.maxUnavailable are both 0, so no pod could be replaced: raise one of them" -}}
{{- end -}}
{{- $slowest := include "kindred.setting" (dict "root" . "key" "request_timeout_ms" "default" 30000) | fromJson -}}
{{- if lt (mul 1000 $v.drain.timeoutSeconds | int) ($slowest.value | float64 | int) -}}
{{- fail (printf "drain.timeoutSeconds (%v) is shorter than %s (%d), so requests could be cut off: raise the first, or lower the second" $v.drain.timeoutSeconds $slowest.from ($slowest.value | float64 | int)) -}}
{{- end -}}
{{- $instead := dict "KINDRED_CONFIG" "config" "KINDRED_LISTEN" "listenAddress" "KINDRED_TLS_CERTIFICATE" "tls.existingSecret" "KINDRED_TLS_PRIVATE_KEY" "tls.existingSecret" "KINDRED_DRAIN_DELAY_MS" "drain.delaySeconds" "KINDRED_DRAIN_TIMEOUT_MS" "drain.timeoutSeconds" -}}
{{- range $v.extraEnv -}}
{{- $name := toString .name -}}
{{- with get $instead $name -}}
{{- fail (printf "extraEnv has %s, on which other parts of the pod depend: set %s instead" $name .) -}}
{{- end -}}
{{- end -}}
{{- $device := index $v.config "device" | default "" -}}
{{- if and (hasPrefix "cuda" $device) (eq (int $v.gpu.count) 0) (not $v.image.tag) (not $v.image.digest) -}}
{{- fail (printf "config.device is %s, but gpu.count is 0, for which the image has no CUDA engine: set gpu.count" $device) -}}
{{- end -}}
{{- with ($v.resources.limits | default dict).memory -}}
{{- $limit := include "kindred.megabytes" . -}}
{{- if not $limit -}}
{{- fail (printf "resources.limits.memory (%v) is no quantity: write it like 1536Mi or 2G" .) -}}
{{- end -}}
{{- $body := include "kindred.setting" (dict "root" $ "key" "body_memory_mb" "default" 1024) | fromJson -}}
{{- $answer := include "kindred.setting" (dict "root" $ "key" "answer_memory_mb" "default" 1024) | fromJson -}}
{{- $needed := add ($body.value | float64 | int) ($answer.value | float64 | int) 64 -}}
{{- if lt (float64 $limit) (float64 $needed) -}}
{{- fail (printf "resources.limits.memory (%v) is below %dMi: %s (%v), %s (%v) and 64 for the program; raise the limit, or lower the settings (docs/operating.md, Memory, has the rest of the sum)" . $needed $body.from $body.value $answer.from $answer.value) -}}
{{- end -}}
{{- end -}}
{{- with index $v.config "traces_endpoint" -}}
{{- if not (regexMatch "^https?://[^/]+" .) -}}
{{- fail (printf "config.traces_endpoint (%v) is no address: write it like http://collector:4318" .) -}}
{{- end -}}
{{- end -}}
{{- $routes := index $v.config "public_routes" -}}
{{- if not (kindIs "invalid" $routes) -}}
{{- range $needed := list "/health/live" "/health/ready" -}}
{{- if and $v.apiKeys.existingSecret (not (include "kindred.covers" (dict "routes" $routes "path" $needed))) -}}
{{- fail (printf "config.public_routes lacks %s, which the probes call without a key: add it" $needed) -}}
{{- end -}}
{{- end -}}
{{- if and $v.apiKeys.existingSecret $v.metrics.serviceMonitor.enabled (not (include "kindred.covers" (dict "routes" $routes "path" "/metrics"))) -}}
{{- fail "config.public_routes lacks /metrics, which Prometheus reads without a key: add it, or set metrics.serviceMonitor.enabled=false" -}}
{{- end -}}
{{- end -}}
{{- if and $v.autoscaling.enabled (gt (int $v.autoscaling.minReplicas) (int $v.autoscaling.maxReplicas)) -}}
{{- fail (printf "autoscaling.minReplicas (%v) is above autoscaling.maxReplicas (%v): lower the first, or raise the second" $v.autoscaling.minReplicas $v.autoscaling.maxReplicas) -}}
{{- end -}}
{{- end }}

{{- define "kindred.maxSurge" -}}
{{- $default := ternary "0" "1" (gt (int .Values.gpu.count) 0) -}}
{{ ternary $default (toString .Values.strategy.maxSurge) (eq (toString .Values.strategy.maxSurge) "") }}
{{- end }}

{{- define "kindred.maxUnavailable" -}}
{{- $default := ternary "1" "0" (gt (int .Values.gpu.count) 0) -}}
{{ ternary $default (toString .Values.strategy.maxUnavailable) (eq (toString .Values.strategy.maxUnavailable) "") }}
{{- end }}
