{{- define "latchkey.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "latchkey.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "latchkey.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "latchkey.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "latchkey.selector" -}}
app.kubernetes.io/name: {{ include "latchkey.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "latchkey.labels" -}}
{{ include "latchkey.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "latchkey.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "latchkey.serviceAccount" -}}
{{- .Values.serviceAccount.existing | default (include "latchkey.fullname" .) -}}
{{- end -}}

{{- define "latchkey.secret" -}}
{{- .Values.secret.existing | default (include "latchkey.fullname" .) -}}
{{- end -}}

{{/* "true" or nothing. */}}
{{- define "latchkey.hasPepper" -}}
{{- if ternary .Values.secret.hasPepper (ne .Values.secret.keyPepper "") (ne .Values.secret.existing "") -}}true{{- end -}}
{{- end -}}

{{- define "latchkey.isEmbedded" -}}
{{- if eq .Values.store.kind "embedded" -}}true{{- end -}}
{{- end -}}

{{- define "latchkey.isScaled" -}}
{{- if and .Values.autoscaling.enabled (not (include "latchkey.isEmbedded" .)) -}}true{{- end -}}
{{- end -}}

{{/* Fails before the installation if values cannot work together. */}}
{{- define "latchkey.check" -}}
{{- if include "latchkey.isEmbedded" . -}}
{{- if gt (int .Values.replicaCount) 1 -}}
{{- fail "replicaCount must be 1 with store.kind=embedded: pods cannot share its disk. Use store.kind=mongodb for more." -}}
{{- end -}}
{{- if .Values.secret.mongodbUri -}}
{{- fail "secret.mongodbUri needs store.kind=mongodb: remove one of them." -}}
{{- end -}}
{{- else if not (or .Values.secret.existing .Values.secret.mongodbUri) -}}
{{- fail "store.kind=mongodb needs an address: set secret.existing to a Secret with MONGODB_URI, or secret.mongodbUri. For one pod without MongoDB set store.kind=embedded and replicaCount=1." -}}
{{- end -}}
{{- if and (include "latchkey.isScaled" .) (lt (int .Values.autoscaling.maxReplicas) (int .Values.autoscaling.minReplicas)) -}}
{{- fail "autoscaling.maxReplicas must be at least autoscaling.minReplicas." -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled .Values.networkPolicy.enabled (not .Values.networkPolicy.scrapers) -}}
{{- fail "metrics.serviceMonitor needs networkPolicy.scrapers: add Prometheus, or the NetworkPolicy blocks the scrapes." -}}
{{- end -}}
{{- end -}}
