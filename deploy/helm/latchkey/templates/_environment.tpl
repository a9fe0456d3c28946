{{/* Variables that the chart sets. The schema forbids them in `settings`. */}}
{{- define "latchkey.environment" -}}
- name: PORT
  value: "8080"
- name: METRICS_PORT
  value: {{ .Values.metrics.port | quote }}
- name: METRICS_HOST
  value: 0.0.0.0
# Many people can read logs: create the first key with `bootstrap`.
- name: FIRST_KEY
  value: hide
- name: SHUTDOWN_GRACE
  value: {{ printf "%vs" .Values.shutdownGraceSeconds }}
- name: WORKERS
{{- include "latchkey.workers" . | nindent 2 }}
{{- if .Values.tls.existingSecret }}
- name: TLS_CERT
  value: /tls/tls.crt
- name: TLS_KEY
  value: /tls/tls.key
{{- end }}
{{- if .Values.gatewayRoutes.existingConfigMap }}
- name: GATEWAY_ROUTES
  value: /gateway/routes.yaml
{{- end }}
{{- if include "latchkey.isEmbedded" . }}
- name: DATA_DIR
  value: /data
{{- else }}
- name: MONGODB_URI
  valueFrom:
    secretKeyRef:
      name: {{ include "latchkey.secret" . }}
      key: MONGODB_URI
{{- end }}
{{- if include "latchkey.hasPepper" . }}
- name: KEY_PEPPER
  valueFrom:
    secretKeyRef:
      name: {{ include "latchkey.secret" . }}
      key: KEY_PEPPER
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  {{- /* Helm reads whole numbers as floats, and would write large ones as 2.097152e+06. */}}
  value: {{ ternary (int64 $value) $value (kindIs "float64" $value) | quote }}
{{- end }}
{{- end -}}

{{/* Kubernetes rounds CPU values up: half a CPU gives one worker. */}}
{{- define "latchkey.workers" -}}
{{- $limits := .Values.resources.limits | default dict -}}
{{- $requests := .Values.resources.requests | default dict -}}
{{- if .Values.workers -}}
value: {{ .Values.workers | quote }}
{{- else if $limits.cpu -}}
valueFrom:
  resourceFieldRef:
    resource: limits.cpu
{{- else if $requests.cpu -}}
valueFrom:
  resourceFieldRef:
    resource: requests.cpu
{{- else -}}
value: "1"
{{- end -}}
{{- end -}}
