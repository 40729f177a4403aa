{{/* The settings file: what other values decide, and the keys of `config`. */}}
{{- define "kindred.settings" -}}
{{- $sources := include "kindred.sources" . | fromJson -}}
{{- $gpus := int .Values.gpu.count -}}
{{- $settings := dict
    "listen" (printf "%s:8080" .Values.listenAddress)
    "cache_dir" "/cache"
    "watch_files_ms" 10000
    "drain_delay_ms" (mul 1000 .Values.drain.delaySeconds)
    "drain_timeout_ms" (mul 1000 .Values.drain.timeoutSeconds)
-}}
{{- range $key, $kind := dict "model" "models" "head" "heads" -}}
{{- $all := list -}}
{{- range index $sources $kind }}{{ $all = append $all (printf "%s=%s" .name .folder) }}{{ end -}}
{{- if $all }}{{ $_ := set $settings $key $all }}{{ end -}}
{{- end -}}
{{- if .Values.follow.tables }}{{ $_ := set $settings "models_dir" "/tables" }}{{ end -}}
{{- if .Values.apiKeys.existingSecret -}}
{{- $_ := set $settings "api_keys_file" (printf "/etc/kindred/keys/%s" .Values.apiKeys.key) -}}
{{- end -}}
{{- if .Values.tls.existingSecret -}}
{{- $_ := set $settings "tls_certificate" "/etc/kindred/tls/tls.crt" -}}
{{- $_ := set $settings "tls_private_key" "/etc/kindred/tls/tls.key" -}}
{{- end -}}
{{- /* Without a GPU the pod should fail, and not serve slowly. */ -}}
{{- $device := ternary (ternary "cuda:all" "cuda" (gt $gpus 1)) "cpu" (gt $gpus 0) -}}
{{- /* The CPU engine's derived table, for which there must be a place. */ -}}
{{- $keeps := and (eq $gpus 0) (not (include "kindred.modelsReadOnly" .)) -}}
{{- $settings = merge $settings .Values.config (dict "device" $device "keep_tables" $keeps) -}}
{{- range $key, $value := $settings }}
{{- /* Helm reads numbers as floats, which TOML tells apart from integers; all else is written as in JSON. */}}
{{- $isNumber := or (kindIs "float64" $value) (kindIs "int64" $value) (kindIs "int" $value) }}
{{- $isWhole := and $isNumber (eq (float64 $value) (floor $value)) }}
{{ $key }} = {{ if $isWhole }}{{ int64 $value }}{{ else }}{{ toRawJson $value }}{{ end }}
{{- end }}
{{- end }}
